# To be sourced: decides whether something built is still what its sources say.
#
#   fresh NAME PATH...  is true if these sources are those of the last `remember`
#   remember NAME       records, after the build, that NAME was built from the sources that `fresh` saw before it
#   alone NAME          waits until no other run builds what is called NAME, and keeps others waiting until this one ends
#
# Modification times would be wrong after a `git checkout`, so the contents are hashed (all that git knows or would add).
# They are hashed before the build: what is changed during it must not count as built. So each build asks `fresh` first,
# whatever else may call for it.

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

seen_name= seen_digest=

fresh() {
    seen_name=$1
    shift
    seen_digest=$(digest "$@")
    [[ -f $digests/$seen_name && $seen_digest == "$(cat "$digests/$seen_name")" ]]
}

remember() {
    if [[ $1 != "$seen_name" ]]; then
        echo "digest: 'remember $1' without 'fresh $1' before the build" >&2
        return 1
    fi
    mkdir -p "$digests"
    echo "$seen_digest" >"$digests/$1"
}

# Two runs at a time would take each other's half-built files away. (macOS has no flock; there one has to take care.)
alone() {
    if command -v flock >/dev/null; then
        mkdir -p "$digests"
        exec 9>"$digests/$1.lock"
        flock 9
    fi
}
