#!/usr/bin/env bash
# Core does no I/O, reads no clock and draws no random number: then nothing in its dependency tree may, whatever features are on.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
forbidden='tokio|mio|socket2|redis|getrandom|rand|async-std|smol|polling|rustix|libc|time|chrono'

tree=$(cargo tree --package tallylock-core --edges normal --all-features --target all --prefix none --format '{p}')
if ! grep -q '^tallylock-core ' <<<"$tree"; then
    echo "core dependencies: cargo tree did not list tallylock-core" >&2
    exit 1
fi
if found=$(grep -E "^($forbidden) " <<<"$tree" | sort -u); then
    echo "core dependencies: core must stay free of I/O, but depends on:" >&2
    echo "$found" >&2
    exit 1
fi
echo "core dependencies: $(sort -u <<<"$tree" | wc -l) crates, none with I/O, clock or randomness"
