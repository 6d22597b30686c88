#!/usr/bin/env bash
# Prints the path of a rustc that can compile for wasm32-unknown-unknown, or nothing if the machine's own can.
#
# Rust from a package manager mostly comes without wasm32's standard library, and `rustup target add` is not
# everybody's to run. On Debian a matching compiler and the source of its standard library are packages: they are downloaded
# as an ordinary user into .cache/wasm (nothing is installed), std is built once, and a wrapper called `rustc` uses the two.
# The result is kept under the versions that it was made of. Give --refresh to look for newer packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/wasm
# What std is compiled for: the wasm file has to be small. A std that was built for something else is another toolchain.
std_level=s
# A panic is a trap: the host has nowhere to show its message, and what would put that together is several KB of the file.
# setup/wasm.sh compiles the rest for the same.
panic_flags=(-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none)
current=$cache/current-$std_level-trap
target=wasm32-unknown-unknown
# No toolchain is ever fetched on the side.
export RUSTUP_AUTO_INSTALL=0
# The answer must not depend on a wrapper that the caller has set already.
unset RUSTC RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET CARGO_TARGET_DIR

say() { echo "wasm toolchain: $*" >&2; }

has_std() { compgen -G "$1/lib/rustlib/$target/lib/libstd-*.rlib" >/dev/null; }

own_sysroot=$(rustc --print sysroot)
if has_std "$own_sysroot"; then
    exit 0
fi

# rustup's toolchain brings the wasm linker; Debian's compiler looks for it in its own prefix.
link_linker() {
    local prefix=$1 host linker
    host=$(rustc -vV | sed -n 's/^host: //p')
    linker=$own_sysroot/lib/rustlib/$host/bin/rust-lld
    if [[ ! -x $linker ]]; then
        linker=$(command -v wasm-ld || command -v rust-lld || true)
    fi
    if [[ -z $linker ]]; then
        say "no linker for wasm: install the package lld, or Rust by rustup"
        exit 1
    fi
    mkdir -p "$prefix/usr/lib/rustlib/$host/bin"
    ln -sfn "$linker" "$prefix/usr/lib/rustlib/$host/bin/rust-lld"
}

if [[ ${1:-} != --refresh && -x $current/bin/rustc ]] && has_std "$current/prefix/usr"; then
    link_linker "$current/prefix"
    echo "$current/bin/rustc"
    exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    say "this Rust has no standard library for $target: run 'rustup target add $target'"
    exit 1
fi

# apt works on lists and caches of ours, so neither root nor a lock of the system's is needed.
apt_state=$cache/apt
mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
apt_options=(
    -o "Dir::State::lists=$apt_state/lists"
    -o "Dir::Cache=$apt_state/cache"
    -o "Dir::State::status=/var/lib/dpkg/status"
    -o "APT::Sandbox::User=$(id -un)"
    -o "Acquire::Languages=none"
    -o "Debug::NoLocking=true"
    -qq
)

say "looking for Debian's packages of Rust for the web"
# A third party's source that does not answer must not end this: what matters is whether the packages are found below.
apt-get "${apt_options[@]}" update >&2 || say "some package lists could not be read"

depends() { apt-cache "${apt_options[@]}" depends --no-recommends --no-suggests "$1" | sed -n 's/^ *Depends: //p'; }
candidate() { apt-cache "${apt_options[@]}" policy "$1" | sed -n 's/^ *Candidate: //p'; }

std_library=$(depends libstd-rust-web-dev | grep -E '^libstd-rust-web-[0-9.]+$' || true)
if [[ -z $std_library ]]; then
    say "this Rust has no standard library for $target, nor has Debian here: run 'rustup target add $target'"
    exit 1
fi
llvm=$(depends "$std_library" | grep -E '^libllvm[0-9]+$' || true)
if [[ -z $llvm ]]; then
    say "$std_library names no LLVM library: run 'rustup target add $target'"
    exit 1
fi
packages=(rustc-web libstd-rust-web-dev "$std_library" rust-web-src "$llvm")

key=rust-$(candidate rustc-web)_llvm-$(candidate "$llvm")_std-$std_level-trap
key=${key//[^A-Za-z0-9.+_-]/-}
made=$cache/$key

if [[ ! -x $made/bin/rustc ]] || ! has_std "$made/prefix/usr"; then
    rm -rf "$made" "$made.part"
    mkdir -p "$made.part/packages" "$made.part/prefix" "$made.part/std/src"

    unpack() {
        (cd "$made.part/packages" && apt-get "${apt_options[@]}" download "$@" >&2)
        local package
        for package in "$made.part"/packages/*.deb; do
            dpkg -x "$package" "$made.part/prefix"
        done
        rm -f "$made.part"/packages/*.deb
    }
    say "downloading and unpacking ${packages[*]} (about 140 MB)"
    unpack "${packages[@]}"

    library_path=$made.part/prefix/usr/lib/$(gcc -print-multiarch)
    driver=$(compgen -G "$library_path/librustc_driver-*.so")
    needed=$(LD_LIBRARY_PATH=$library_path ldd "$driver")
    if [[ $needed == *'not found'* ]]; then
        mapfile -t libraries < <(apt-cache "${apt_options[@]}" depends --recurse --no-recommends --no-suggests \
            --no-conflicts --no-breaks --no-replaces --no-enhances "$llvm" |
            grep -E '^lib|^zlib' | grep -vxE "libc6|libgcc-s1|libstdc\+\+6|$llvm|.*:.*" | sort -u)
        say "downloading the libraries that this machine lacks"
        unpack "${libraries[@]}"
    fi

    mkdir -p "$made.part/bin"
    # `current` may move to another version while a build runs, so the wrapper names its own folder through its real path.
    cat >"$made.part/bin/rustc" <<'WRAPPER'
#!/usr/bin/env bash
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
libraries=("$here"/prefix/usr/lib/*-linux-gnu*)
export LD_LIBRARY_PATH="${libraries[0]}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/prefix/usr/bin/rustc" --sysroot "$here/prefix/usr" "$@"
WRAPPER
    chmod +x "$made.part/bin/rustc"
    link_linker "$made.part/prefix"

    say "building the standard library for $target (one to two minutes, once)"
    cat >"$made.part/std/Cargo.toml" <<MANIFEST
[package]
name = "carrier"
edition = "2021"

[workspace]

[profile.release]
opt-level = "$std_level"
MANIFEST
    # An empty crate: cargo builds std for it, and only std's rlibs are kept.
    : >"$made.part/std/src/lib.rs"
    # Panic messages quote the paths of std's sources: those of this machine have no place in what is published.
    flags=(
        -Cembed-bitcode=yes
        -Zforce-unstable-if-unmarked
        "${panic_flags[@]}"
        "--remap-path-prefix=$made.part/prefix/usr/lib/rustlib/src/rust=/rustc/std"
    )
    (cd "$made.part/std" && RUSTC_BOOTSTRAP=1 RUSTC=$made.part/bin/rustc \
        CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") \
        cargo build -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size \
        --target "$target" --release >&2)
    rlibs=$made.part/prefix/usr/lib/rustlib/$target/lib
    mkdir -p "$rlibs"
    find "$made.part/std/target/$target/release/deps" -name '*.rlib' ! -name 'libcarrier-*' -exec cp -t "$rlibs" {} +
    # The sources and the build are 700 MB that nothing reads again.
    rm -rf "$made.part/std" "$made.part/packages" "$made.part/prefix/usr/src" "$made.part/prefix/usr/share"
    has_std "$made.part/prefix/usr"
    mv "$made.part" "$made"
fi

link_linker "$made/prefix"
ln -sfn "$key" "$current"
rm -rf "$apt_state"
say "ready: $("$current/bin/rustc" --version)"
echo "$current/bin/rustc"
