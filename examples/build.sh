#!/usr/bin/env bash
# Builds the examples that need it, against the packages that `make setup` has built; quick if nothing changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh

say() { echo "examples: $*" >&2; }

node=(examples/node/package.json examples/node/package-lock.json)
if ! fresh example-node "${node[@]}" || [[ ! -e examples/node/node_modules/tallylock ]]; then
    say "installing the packages of examples/node"
    npm ci --prefix examples/node --no-audit --no-fund --loglevel=error
    remember example-node
fi

# The proxy that loses replies. All that the services add goes through it, so it is to be quick.
cargo build --quiet --release -p tallylock-testkit --bin tallylock-fault-proxy

kotlin=(Cargo.toml Cargo.lock core bindings/rust bindings/ffi bindings/kotlin examples/kotlin)
if ! fresh example-kotlin "${kotlin[@]}" || [[ ! -d examples/kotlin/target/dependency ]]; then
    say "compiling examples/kotlin (Maven fetches its plugins the first time)"
    maven=(mvn --batch-mode --no-transfer-progress --quiet -Dstyle.color=never)
    # The example depends on the library as any program would, so that has to be in the local repository.
    "${maven[@]}" org.apache.maven.plugins:maven-install-plugin:3.1.4:install-file \
        -Dfile=bindings/kotlin/target/tallylock-0.1.0.jar -DpomFile=bindings/kotlin/pom.xml
    "${maven[@]}" --file examples/kotlin/pom.xml package
    remember example-kotlin
fi
