#!/usr/bin/env bash
# Builds the native library, generates the Kotlin glue for it, and lays the library where JNA looks inside a jar.
#
# usage: generate.sh FOLDER_OF_THE_GLUE FOLDER_OF_THE_LIBRARY    run by Maven
set -euo pipefail

glue=$1
resources=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

case "$(uname -s) $(uname -m)" in
    "Linux x86_64") folder=linux-x86-64 library=libtallylock_ffi.so ;;
    "Linux aarch64") folder=linux-aarch64 library=libtallylock_ffi.so ;;
    "Darwin x86_64") folder=darwin-x86-64 library=libtallylock_ffi.dylib ;;
    "Darwin arm64") folder=darwin-aarch64 library=libtallylock_ffi.dylib ;;
    *)
        echo "generate.sh: tallylock has no native library for $(uname -s) $(uname -m)" >&2
        exit 1
        ;;
esac

cd "$root"
# Two commands: together they would compile the generator's features into the library.
cargo build --quiet --release --package tallylock-ffi
built=$root/target/release/$library
cargo run --quiet --package tallylock-ffi-bindgen --bin uniffi-bindgen -- \
    generate --library "$built" --language kotlin --no-format --config "$here/uniffi.toml" --out-dir "$glue.new"

# The compiler takes every file of the folder: one that an older version generated must not stay.
rm -rf "$glue"
mv "$glue.new" "$glue"
mkdir -p "$resources/$folder"
install -m 644 "$built" "$resources/$folder/$library"
