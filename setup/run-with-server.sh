#!/usr/bin/env bash
# Runs a command with TALLYLOCK_REDIS_URL pointing to a server, and ends with the command's exit code.
#
# The server is, in this order: the one that TALLYLOCK_REDIS_URL names; redis-server or valkey-server on PATH; the
# cached Valkey of setup/servers.sh. One that is started here keeps nothing on disk and is stopped with the command. Where
# the system can do so (Linux), both end with this script even if that is killed by SIGKILL.
set -euo pipefail

if [[ $# -eq 0 ]]; then
    echo "usage: setup/run-with-server.sh COMMAND [ARGUMENT...]" >&2
    exit 2
fi

if [[ -n ${TALLYLOCK_REDIS_URL:-} ]]; then
    exec "$@"
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if ! server=$(command -v redis-server || command -v valkey-server); then
    bash "$root/setup/servers.sh" >/dev/null
    server=$root/.cache/servers/valkey-server
fi

# (To an older bash an empty list is not set.)
tied=()
if setpriv --pdeathsig TERM true 2>/dev/null; then
    tied=(setpriv --pdeathsig TERM)
fi

private=$(mktemp -d)
server_pid=
stop() {
    if [[ -n $server_pid ]]; then
        kill "$server_pid" 2>/dev/null || true
        wait "$server_pid" 2>/dev/null || true
    fi
    rm -rf "$private"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# By PING over a plain socket, so that no client program is needed.
answers() {
    python3 - "$1" <<'PYTHON'
import socket
import sys

try:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=1) as connection:
        connection.sendall(b"PING\r\n")
        sys.exit(0 if connection.recv(16).startswith(b"+PONG") else 1)
except OSError:
    sys.exit(1)
PYTHON
}

# Another program may take the port between the look and the start: the server then ends at once, and the next port is tried.
start() {
    local port=$1 tries
    ${tied[@]+"${tied[@]}"} "$server" --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$private" \
        >"$private/server.log" 2>&1 &
    server_pid=$!
    for ((tries = 0; tries < 100; tries++)); do
        if ! kill -0 "$server_pid" 2>/dev/null; then
            server_pid=
            return 1
        fi
        if answers "$port"; then
            return 0
        fi
        sleep 0.05
    done
    kill "$server_pid"
    wait "$server_pid" || true
    server_pid=
    return 1
}

for _ in 1 2 3; do
    port=$(free_port)
    if start "$port"; then
        break
    fi
done
if [[ -z $server_pid ]]; then
    echo "run-with-server: $server did not start:" >&2
    tail -n 5 "$private/server.log" >&2
    exit 1
fi

export TALLYLOCK_REDIS_URL="redis://127.0.0.1:$port"
code=0
${tied[@]+"${tied[@]}"} "$@" || code=$?
exit "$code"
