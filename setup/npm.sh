#!/usr/bin/env bash
# Builds the npm package in wasm/npm: its pinned tools, the wasm files with their glue, and the TypeScript.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh

lock=(wasm/npm/package.json wasm/npm/package-lock.json)
if ! fresh npm-tools "${lock[@]}" || [[ ! -x wasm/npm/node_modules/.bin/wasm-opt ]]; then
    echo "npm: installing the pinned packages of wasm/npm" >&2
    # No install script runs: what a package needs must be in a package.
    npm ci --prefix wasm/npm --ignore-scripts --no-audit --no-fund
    remember npm-tools
fi

bash setup/wasm.sh

echo "npm: compiling the TypeScript" >&2
npm run --silent --prefix wasm/npm build
(cd wasm/npm && node --input-type=module --eval 'await import("tallylock")')
