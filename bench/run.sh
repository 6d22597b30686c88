#!/usr/bin/env bash
# Builds the contestants, measures them and prints the table.
#
# usage: bench/run.sh [--json] [--rounds N] [--block SECONDS] [--only TEXT]    after `make setup`; `make bench` does both
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh

if [[ -z ${TALLYLOCK_REDIS_URL:-} ]]; then
    exec bash setup/run-with-server.sh bash bench/run.sh "$@"
fi

say() { echo "bench: $*" >&2; }

environment=.cache/bench-venv
requirements=bench/python/requirements.txt
wheel=$(compgen -G 'target/wheels/tallylock-*.whl') || { say "no wheel in target/wheels: run 'make setup'"; exit 1; }
jar=bindings/kotlin/target/tallylock-0.1.0.jar
[[ -f $jar ]] || { say "no jar in bindings/kotlin/target: run 'make setup'"; exit 1; }
[[ -f wasm/npm/dist/node.js ]] || { say "wasm/npm is not built: run 'make setup'"; exit 1; }

say "building the contestants in Rust"
cargo build --quiet --release -p tallylock-bench

installed=$environment/.installed
wanted=$(cat "$wheel" "$requirements" | sha256sum)
if [[ ! -f $installed || $(cat "$installed") != "$wanted" ]]; then
    say "installing the wheel and redis-py into $environment"
    python3 -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$requirements"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$wheel"
    echo "$wanted" >"$installed"
fi

if ! fresh bench-node bench/node/package-lock.json || [[ ! -d bench/node/node_modules/ioredis ]]; then
    say "installing ioredis and redlock into bench/node"
    npm ci --prefix bench/node --no-audit --no-fund --silent
    remember bench-node
fi

classes=target/bench-kotlin/.built
wanted=$(cat "$jar" bench/kotlin/pom.xml bench/kotlin/src/main/kotlin/bench/*.kt | sha256sum)
if [[ ! -f $classes || $(cat "$classes") != "$wanted" ]]; then
    say "compiling the contestants in Kotlin (Maven fetches Lettuce the first time)"
    maven=(mvn --batch-mode --no-transfer-progress --quiet)
    # Used as by any program that depends on the library: from the local repository.
    "${maven[@]}" install:install-file -Dfile="$jar" -DpomFile=bindings/kotlin/pom.xml
    "${maven[@]}" --file bench/kotlin/pom.xml package
    echo "$wanted" >"$classes"
fi

exec "$environment/bin/python" bench/run.py "$@"
