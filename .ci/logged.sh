#!/usr/bin/env bash
# Runs a test runner, shows what it prints and keeps it in .cache/test-logs/NAME.log, where guarantees.py looks.
#
# usage: .ci/logged.sh NAME COMMAND [ARGUMENT...]    ends with the command's exit code
set -uo pipefail

name=$1
shift
logs=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.cache/test-logs
mkdir -p "$logs"
echo "== $name: $*"
"$@" 2>&1 | tee "$logs/$name.log"
exit "${PIPESTATUS[0]}"
