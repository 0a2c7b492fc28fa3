"""pgbench: PostgreSQL's own benchmark, on a server of its own."""

from ktrial.workloads.adapter import Program, choice, less, more, whole
from ktrial.workloads.adapters.postgres import on_a_server
from ktrial.workloads.reported_metrics import Reported

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
