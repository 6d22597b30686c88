#!/usr/bin/env bash
# Checks that the tools which only the machine can bring are there and new enough; says in one line each how to get them.
set -uo pipefail

missing=0

# need WHAT FOUND_VERSION LEAST_VERSION HOW_TO_INSTALL
need() {
    local what=$1 found=$2 least=$3 how=$4
    if [[ -z $found ]]; then
        echo "missing: $what $least or newer: $how" >&2
        missing=1
    elif [[ $(printf '%s\n' "$least" "$found" | sort -V | head -n 1) != "$least" ]]; then
        echo "too old: $what $found, needed is $least or newer: $how" >&2
        missing=1
    fi
}

# The first number with dots in what a tool says of its version, or nothing if there is no such tool.
version() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1; }

need Rust "$(version rustc --version)" 1.88 "install rustup (see rust-lang.org), then 'rustup toolchain install stable'"
need Cargo "$(version cargo --version)" 1.88 "install rustup (see rust-lang.org), then 'rustup toolchain install stable'"
need Python "$(version python3 --version)" 3.10 "apt-get install python3 python3-venv python3-pip"
need JDK "$(version javac -version)" 17 "apt-get install openjdk-17-jdk-headless"
need Maven "$(version mvn --version)" 3.6 "apt-get install maven"
need Node.js "$(version node --version)" 20 "install Node.js 20 (see nodejs.org); Debian's is older"
need npm "$(version npm --version)" 9 "it comes with Node.js (see nodejs.org)"
need gcc "$(version gcc -dumpfullversion)" 8 "apt-get install gcc libc6-dev"
need git "$(version git --version)" 2.20 "apt-get install git"

for module in venv ensurepip pip; do
    if command -v python3 >/dev/null && ! python3 -c "import $module" 2>/dev/null; then
        echo "missing: Python's module $module: apt-get install python3-venv python3-pip" >&2
        missing=1
    fi
done

exit "$missing"
