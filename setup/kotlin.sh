#!/usr/bin/env bash
# Packs the Kotlin jar, with the native library inside, into bindings/kotlin/target.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh

sources=(Cargo.toml Cargo.lock core bindings/rust bindings/ffi bindings/kotlin)
if fresh kotlin "${sources[@]}" && compgen -G "bindings/kotlin/target/tallylock*.jar" >/dev/null; then
    exit 0
fi
echo "kotlin: packing the jar (Maven fetches its plugins the first time)" >&2
mvn --batch-mode --no-transfer-progress --file bindings/kotlin/pom.xml package -DskipTests
remember kotlin
