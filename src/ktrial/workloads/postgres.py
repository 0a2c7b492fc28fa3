"""A PostgreSQL server of the workload's own, for pgbench and sysbench's oltp tests."""

from ktrial.workloads.server_script import PROLOGUE

SCRIPT = (
    PROLOGUE
    + """
for binaries in $(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -rV) ''; do
    [ -x "$binaries/postgres" ] && break
done
[ -n "$binaries" ] || fail 'there is no PostgreSQL server: sudo apt-get install postgresql'
PATH="$binaries:$PATH"
# The server does not run as root.
as=''
if [ "$(id -u)" -eq 0 ]; then
    as='setpriv --reuid=postgres --regid=postgres --init-groups'
    chown postgres: "$scratch"
fi
cd "$scratch"
stop_server() { $as pg_ctl -D "$scratch/data" -m immediate -w stop >/dev/null 2>&1 || :; }
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }; }
quietly $as initdb -D "$scratch/data" -U postgres --auth=trust --no-sync
# A socket in the scratch directory, and no port: beside a server that runs already.
quietly $as pg_ctl -D "$scratch/data" -w -l "$scratch/server.log" \\
    -o "-k $scratch -c listen_addresses= -c fsync=$1 -c shared_buffers=$2 -c max_connections=1000" start
quietly createdb -h "$scratch" -U postgres bench
shift 2
"""
)
"""$1: fsync, $2: shared_buffers; the other words are left for what follows. The database is `bench`."""
