#!/usr/bin/env bash
# Builds the Python wheel into target/wheels and installs it, with the tools of development, into a virtual environment.
#
# usage: setup/python.sh [FOLDER]    .venv if no folder is given
# One that is asked for by `make test` is made from nothing whenever the wheel or a pinned tool has changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh
alone python

environment=${1:-.venv}
requirements=bindings/python/requirements-dev.txt
wheels=target/wheels
wheel_sources=(Cargo.toml Cargo.lock core bindings/rust bindings/cli bindings/ffi bindings/python ':(exclude)bindings/python/tests')

say() { echo "python: $*" >&2; }

has_maturin() { fresh python-tools "$requirements" && [[ -x .venv/bin/maturin ]]; }

if ! has_maturin; then
    say "installing the tools of $requirements into .venv"
    python3 -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
    remember python-tools
fi

if ! fresh wheel "${wheel_sources[@]}" || ! compgen -G "$wheels/tallylock-*.whl" >/dev/null; then
    say "building the wheel"
    rm -f "$wheels"/tallylock-*.whl
    (cd bindings/python && "$root/.venv/bin/maturin" build --release --out "$root/$wheels")
    remember wheel
fi
wheel=$(compgen -G "$wheels/tallylock-*.whl")

installed=$environment/.tallylock-installed
wanted=$(cat "$wheel" "$requirements" | sha256sum)
if [[ -f $installed && $(cat "$installed") == "$wanted" ]]; then
    exit 0
fi
say "installing the wheel into $environment"
if [[ $environment != .venv ]]; then
    python3 -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
fi
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
"$environment/bin/python" -c 'import tallylock'
echo "$wanted" >"$installed"
