# To be sourced: decides whether something built is still what its sources say.
#
#   fresh NAME PATH...     is true if these sources are those of the last `remember`
#   remember NAME PATH...  records that what is called NAME was built from them
#   alone NAME             waits until no other run builds what is called NAME, and keeps others waiting until this one ends
#
# Modification times would be wrong after a `git checkout`, so the contents are hashed (all that git knows or would add).

digest_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
digests=$digest_root/.cache/digests

digest() {
    (
        cd "$digest_root"
        rustc --version
        git ls-files -z --cached --others --exclude-standard -- "$@" | LC_ALL=C sort -zu |
            while IFS= read -r -d '' path; do
                # One that git still lists may have been deleted.
                [[ ! -f $path ]] || sha256sum "$path"
            done
    ) | sha256sum
}

fresh() {
    local name=$1
    shift
    [[ -f $digests/$name && $(digest "$@") == "$(cat "$digests/$name")" ]]
}

remember() {
    local name=$1
    shift
    mkdir -p "$digests"
    digest "$@" >"$digests/$name"
}

# Two runs at a time would take each other's half-built files away. (macOS has no flock; there one has to take care.)
alone() {
    if command -v flock >/dev/null; then
        mkdir -p "$digests"
        exec 9>"$digests/$1.lock"
        flock 9
    fi
}
