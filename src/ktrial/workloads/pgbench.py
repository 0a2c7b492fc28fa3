"""pgbench: PostgreSQL's own benchmark, on a server of its own."""

from ktrial.workloads.installed import (
    InstalledProgram,
    Program,
    Settings,
    choice,
    described,
    less,
    more,
    number,
    whole,
    word,
)
from ktrial.workloads.postgres import SCRIPT
from ktrial.workloads.server_script import SHELL

_SCRIPT = (
    SCRIPT
    + """
quietly pgbench -h "$scratch" -U postgres -i -q -s "$1" bench
pgbench --version
pgbench -h "$scratch" -U postgres -c "$2" -j "$3" -T "$4" -b "$5" bench
"""
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    names = ("fsync", "shared-buffers", "scale", "clients", "threads", "time", "script")
    return ("-c", _SCRIPT, "pgbench", *(str(settings[name]) for name in names))


def _read(output: str, _settings: Settings) -> dict[str, float]:
    return {
        "transactions": number(r"^tps = ([0-9.]+) \(without initial connection time\)", output),
        "latency": number(r"^latency average = ([0-9.]+) ms", output),
    }


WORKLOAD = InstalledProgram(
    described(
        "pgbench",
        "PostgreSQL under pgbench",
        "Starts a PostgreSQL server of its own in a scratch directory below /tmp, fills a database of "
        "`scale`, runs pgbench for `time` seconds, and ends the server. Filling is not in the number.",
        (more("transactions", "1/s"), less("latency", "ms")),
        (
            choice("script", "what a transaction does", "tpcb-like", "simple-update", "select-only"),
            whole("scale", "hundred thousands of accounts", 10, high=100_000),
            whole("clients", "connections", 4, high=900),
            whole("threads", "of pgbench", 1, high=900),
            whole("time", "seconds", 30, high=86400),
            choice("fsync", "whether a commit waits for the disk", "on", "off"),
            word("shared-buffers", "the server's own cache", "128MB"),
        ),
        "PostgreSQL's src/bin/pgbench",
    ),
    SHELL,
    _arguments,
    _read,
    others=(Program("pgbench", "postgresql", version_pattern=r"(pgbench \(.*)"),),
)
