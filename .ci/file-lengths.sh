#!/usr/bin/env bash
# A source file that no longer fits in one's head gets split: none may be over 600 lines.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=600

mapfile -d '' -t sources < <(git ls-files -z --cached --others --exclude-standard -- \
    '*.rs' '*.lua' '*.py' '*.pyi' '*.kt' '*.kts' '*.java' '*.js' '*.mjs' '*.cjs' '*.ts' '*.mts' '*.sh' '.ci/run' Makefile)
if [[ ${#sources[@]} -eq 0 ]]; then
    echo "file lengths: git lists no source file" >&2
    exit 1
fi

too_long=0
for source in "${sources[@]}"; do
    [[ -f $source ]] || continue
    lines=$(wc -l <"$source")
    if ((lines > most)); then
        echo "file lengths: $source has $lines lines, over $most: split it" >&2
        too_long=1
    fi
done
[[ $too_long -eq 0 ]]
echo "file lengths: ${#sources[@]} source files, none over $most lines"
