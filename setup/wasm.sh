#!/usr/bin/env bash
# Builds the wasm file of the npm package, three times, with its JavaScript glue, into wasm/npm/dist.
#
#   dist/tallylock_wasm*.{js,d.ts,wasm}          production, for the edge
#   dist/memory/tallylock_wasm*.{js,d.ts,wasm}   the same with the in-memory node, for `tallylock/memory`
#   dist/full/tallylock_wasm*.{js,d.ts,wasm}     with all that the edge has no room for: for Node, and for `tallylock/redlock`
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source setup/digest.sh
dist=wasm/npm/dist
wasm_opt=wasm/npm/node_modules/.bin/wasm-opt
stamps=.cache/wasm-glue

say() { echo "wasm: $*" >&2; }

if [[ ! -x $wasm_opt ]]; then
    say "$wasm_opt is missing: run 'npm ci --prefix wasm/npm'"
    exit 1
fi

mkdir -p "$stamps"
# All builds end in the same file of cargo's.
alone wasm

compiler=$(bash setup/wasm-toolchain.sh)
# The compiler for wasm is often another one than the host's: it gets a folder of its own, so that neither throws away
# what the other has built. Cargo cannot tell one standard library from another: each toolchain of ours has its own.
wasm_target=target/wasm-build
if [[ -n $compiler ]]; then
    wasm_target+=/$(basename "$(realpath "$(dirname "$compiler")/..")")
fi
built=$wasm_target/wasm32-unknown-unknown/wasm/tallylock_wasm.wasm
say "building the generator of the glue (a minute and a half, once)"
cargo build -p tallylock-wasm-bindgen
generator=${CARGO_TARGET_DIR:-target}/debug/tallylock-wasm-bindgen

# Panic messages quote the paths of sources: those of this machine have no place in what is published.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags=("--remap-path-prefix=$root=.")
# The folder of each registry is named by its host, which has no place there either.
for registry in "$cargo_home"/registry/src/*/; do
    flags+=("--remap-path-prefix=${registry%/}=/crates")
done

# What the output is made of: if neither the wasm nor a tool has changed, the files of the last run stay.
fingerprint() { sha256sum "$built" "$generator" wasm/npm/package-lock.json "${BASH_SOURCE[0]}"; }

# build NAME OUT_DIR [CARGO_ARGUMENT...]
build() {
    local name=$1 out=$2 stamp=$stamps/$1
    shift 2
    say "compiling ($name)"
    (
        if [[ -n $compiler ]]; then
            export RUSTC=$compiler RUSTC_BOOTSTRAP=1
            # As in its std, see setup/wasm-toolchain.sh.
            flags+=(-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none)
        fi
        CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
            CARGO_TARGET_DIR=$wasm_target cargo build -p tallylock-wasm --profile wasm \
            --target wasm32-unknown-unknown "$@"
    )
    if [[ -f $out/tallylock_wasm_bg.wasm && -f $out/tallylock_wasm.js ]] && fingerprint | cmp -s - "$stamp"; then
        return
    fi
    say "generating the glue and optimising ($name)"
    rm -f "$stamp"
    mkdir -p "$out"
    "$generator" --target web --out-dir "$out" --out-name tallylock_wasm "$built"
    # With the control flow laid out anew it is smaller once gzipped than with -Oz.
    "$wasm_opt" --flatten --rereloop -O3 --flatten --rereloop -O3 "$out/tallylock_wasm_bg.wasm" -o "$out/.optimised.wasm"
    mv "$out/.optimised.wasm" "$out/tallylock_wasm_bg.wasm"
    fingerprint >"$stamp"
}

build production "$dist"
build memory "$dist/memory" --features memory
build full "$dist/full" --features nodes,waiting
node .ci/wasm-file.mjs
