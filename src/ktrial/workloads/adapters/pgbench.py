"""pgbench: PostgreSQL's own benchmark, on a server of its own."""

from ktrial.model.workload import Metric, Parameter
from ktrial.package_names import INSTALL
from ktrial.workloads.adapter import (
    PROLOGUE,
    SHELL,
    InstalledProgram,
    Program,
    Reading,
    Reported,
    Settings,
    choice,
    described,
    less,
    more,
    whole,
    word,
)

# A PostgreSQL server of the workload's own, for pgbench and sysbench's oltp tests.
_POSTGRES_SCRIPT = (
    PROLOGUE
    + """
for binaries in $(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -rV) ''; do
    [ -x "$binaries/postgres" ] && break
done
[ -n "$binaries" ] || fail 'there is no PostgreSQL server: """
    + INSTALL
    + """ postgresql'
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
_PARAMETERS = (
    choice("fsync", "whether a commit waits for the disk", "on", "off"),
    word("shared-buffers", "the server's own cache", "128MB"),
)


def on_a_server(
    words: tuple[str, str, str, str],
    metrics: tuple[Metric, ...],
    parameters: tuple[Parameter, ...],
    script: str,
    handed: tuple[str, ...],
    read: Reading,
    program: Program,
) -> InstalledProgram:
    """A program that measures such a server.

    `words`: name, summary, what it does while the server is there, source. The `script` finds the parameters
    that are `handed` to it, in this order, as $1, $2 and so on; the server's own it need not name.
    """
    name, summary, does, source = words
    names = ("fsync", "shared-buffers", *handed)

    def arguments(settings: Settings) -> tuple[str, ...]:
        return ("-c", _POSTGRES_SCRIPT + script, name, *(str(settings[parameter]) for parameter in names))

    does = (
        f"Starts a PostgreSQL server of its own in a scratch directory below /tmp, {does}, and ends the "
        "server. Filling is not in the number."
    )
    return InstalledProgram(
        described(name, summary, does, metrics, (*parameters, *_PARAMETERS), source),
        SHELL,
        arguments,
        read,
        others=(program,),
    )


_SCRIPT = """
quietly pgbench -h "$scratch" -U postgres -i -q -s "$1" bench
pgbench --version
pgbench -h "$scratch" -U postgres -c "$2" -j "$3" -T "$4" -b "$5" bench
"""
WORKLOAD = on_a_server(
    (
        "pgbench",
        "PostgreSQL under pgbench",
        "fills a database of `scale`, runs pgbench for `time` seconds",
        "PostgreSQL's src/bin/pgbench",
    ),
    (more("transactions", "1/s"), less("latency", "ms")),
    (
        choice("script", "what a transaction does", "tpcb-like", "simple-update", "select-only"),
        whole("scale", "hundred thousands of accounts", 10, high=100_000),
        whole("clients", "connections", 4, high=900),
        whole("threads", "of pgbench", 1, high=900),
        whole("time", "seconds", 30, high=86400),
    ),
    _SCRIPT,
    ("scale", "clients", "threads", "time", "script"),
    Reported("pgbench", required=("transactions", "latency")),
    Program("pgbench", "postgresql", version_pattern=r"(pgbench \(.*)"),
)
