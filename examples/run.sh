#!/usr/bin/env bash
# The demo: bills the flights of January 2013, with two services that add and two jobs that bill, all at once.
#
# Needs what `make setup` builds, and a server in TALLYLOCK_REDIS_URL (`make demo` sees to both). Ends with 0 only if
# every second was billed exactly once and every key has a TTL.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
url=${TALLYLOCK_REDIS_URL:?"the demo needs a server: run \`make demo\`, or set TALLYLOCK_REDIS_URL"}
data=examples/data/flights-2013-01.csv
python=.venv/bin/python
work=target/demo

bash examples/build.sh
"$python" examples/python/preflight.py --url "$url"
rm -rf "$work"
mkdir -p "$work"

children=()
start() {
    "$@" &
    children+=("$!")
}
stop_children() {
    kill "${children[@]}" 2>/dev/null || true
    wait
}
trap stop_children EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits for processes, and remembers if one of them failed: the report must be seen all the same.
failures=0
await() {
    local child
    for child in "$@"; do
        wait "$child" || failures=$((failures + 1))
    done
}

echo "two services add, two jobs bill; January takes five seconds"
job() { start "$python" examples/python/billing_job.py "$1" --url "$url" --ledger "$work/invoices.db" --finished "$work/finished.csv"; }
job job-1
job job-2
service() { start "$@" --url "$url" --data "$data" --finished "$work/finished.csv"; }
service java -cp 'examples/kotlin/target/classes:examples/kotlin/target/dependency/*' flights.MainKt --refused "$work/refused-kotlin.csv"
service node examples/node/main.mjs --refused "$work/refused-node.csv"

await "${children[@]:2}"
# To the jobs this means: one last pass. One that has failed is gone already.
kill -TERM "${children[@]:0:2}" 2>/dev/null || true
await "${children[@]:0:2}"
children=()

# Not by our code: the eighth column of the data, in minutes.
expected=$(awk -F, 'NR > 1 && $8 != "" { minutes += $8 } END { printf "%d", minutes * 60 }' "$data")
echo
if ((failures > 0)); then
    echo "demo: $failures of its programs failed, see above" >&2
fi
"$python" examples/python/report.py --url "$url" --ledger "$work/invoices.db" --expected-seconds "$expected" \
    "$work/refused-kotlin.csv" "$work/refused-node.csv"
exit $((failures > 0))
