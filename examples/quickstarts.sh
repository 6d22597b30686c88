#!/usr/bin/env bash
# Runs the short example of each language, in memory and then on one server, where each has to see the fence grow.
#
# Needs what `make setup` builds, and a server in TALLYLOCK_REDIS_URL.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
server=${TALLYLOCK_REDIS_URL:?"the examples need a server in TALLYLOCK_REDIS_URL"}

bash examples/build.sh
cargo build --quiet -p tallylock-examples

quickstart() {
    local language=$1 url=$2
    case $language in
        rust) target/debug/quickstart "$url" ;;
        python) .venv/bin/python examples/python/quickstart.py "$url" ;;
        kotlin) java -cp 'examples/kotlin/target/classes:examples/kotlin/target/dependency/*' quickstart.QuickstartKt "$url" ;;
        node) node examples/node/quickstart.mjs "$url" ;;
    esac
}

# Prints the fence of an example's invoice, once its seconds are right.
fence_of() {
    local said
    said=$(quickstart "$@")
    if [[ ! $said =~ ^invoice:\ 75\ seconds,\ fence\ ([0-9]+)$ ]]; then
        echo "quickstarts: $1 on $2 said: $said" >&2
        return 1
    fi
    echo "${BASH_REMATCH[1]}"
}

last=0
for language in rust python kotlin node; do
    fence_of "$language" memory:// >/dev/null
    fence=$(fence_of "$language" "$server")
    if ((fence <= last)); then
        echo "quickstarts: $language was granted the fence $fence, which is not above the last, $last" >&2
        exit 1
    fi
    echo "$language billed 75 seconds under the fence $fence"
    last=$fence
done
