"""sysbench's oltp tests, on a PostgreSQL server of their own."""

from ktrial.workloads.adapter import Settings, choice, less, more, number, whole
from ktrial.workloads.adapters import sysbench
from ktrial.workloads.adapters.postgres import on_a_server

_SCRIPT = """
test=oltp_$1
sysbench --version
set -- --db-driver=pgsql --pgsql-host="$scratch" --pgsql-user=postgres --pgsql-db=bench \\
    --tables="$2" --table-size="$3" --threads="$4" --time="$5" --rand-type=uniform
quietly sysbench "$test" "$@" prepare
sysbench "$test" "$@" run
"""


def _read(output: str, _settings: Settings) -> dict[str, float]:
    rate = number(r"transactions:\s+[0-9]+\s+\(([0-9.]+) per sec", output)
    return {"transactions": rate, **sysbench.latency(output)}


WORKLOAD = on_a_server(
    (
        "sysbench-oltp",
        "PostgreSQL under sysbench's oltp tests",
        "fills `tables` tables, runs the test for `time` seconds",
        sysbench.SOURCE,
    ),
    (more("transactions", "1/s"), less("latency", "ms"), less("latency p95", "ms")),
    (
        choice("test", "which", "read_write", "read_only", "write_only", "point_select", "update_index"),
        whole("tables", "how many", 4, high=1000),
        whole("table-size", "rows of each", 10_000),
        whole("threads", "connections", 4, high=900),
        sysbench.TIME,
    ),
    _SCRIPT,
    ("test", "tables", "table-size", "threads", "time"),
    _read,
    sysbench.PROGRAM,
)
