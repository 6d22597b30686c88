#!/usr/bin/env bash
# The demo: bills the flights of January 2013, with two services that add and two jobs that bill, while much goes wrong.
#
# Needs what `make setup` builds, and a server in TALLYLOCK_REDIS_URL (`make demo` sees to both). DEMO_SEED=N repeats what
# goes wrong in a run; DEMO_ROWS=all bills the whole year. Ends with 0 only if enough went wrong, every second was billed
# exactly once all the same, and every key has a TTL.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh
# Two at a time would take each other's files away.
alone demo

url=${TALLYLOCK_REDIS_URL:?"the demo needs a server: run \`make demo\`, or set TALLYLOCK_REDIS_URL"}
python=.venv/bin/python
work=target/demo

case ${DEMO_ROWS:-january} in
    january) data=examples/data/flights-2013-01.csv day_ms=700 lasts="half a minute" ;;
    all) data=target/flights-2013.csv day_ms=400 lasts="three minutes" ;;
    *) echo "demo: DEMO_ROWS is 'all' or not set, not '$DEMO_ROWS'" >&2 && exit 2 ;;
esac

bash examples/build.sh
[[ -e $data ]] || bash examples/data/year.sh "$data"
"$python" examples/python/preflight.py --url "$url"
rm -rf "$work"
mkdir -p "$work"

echo "two services add, two jobs bill and are killed all the while; this takes $lasts"
failed=0
"$python" examples/python/chaos.py --url "$url" --proxy target/release/tallylock-fault-proxy --data "$data" --work "$work" --day-ms "$day_ms" \
    ${DEMO_SEED:+--seed "$DEMO_SEED"} || failed=$?
# It leaves this file unless it was told to end.
[[ -e $work/chaos.json ]] || exit "$failed"

# Not by our code: the eighth column of the data, in minutes. (To some awk %d has 32 bits, and a year has more.)
expected=$(awk -F, 'NR > 1 && $8 != "" { minutes += $8 } END { printf "%.0f", minutes * 60 }' "$data")
echo
"$python" examples/python/report.py --url "$url" --ledger "$work/invoices.db" --chaos "$work/chaos.json" \
    --expected-seconds "$expected" "$work/refused-kotlin.csv" "$work/refused-node.csv"
exit "$failed"
