"""sysbench's oltp tests, on a PostgreSQL server of their own."""

from ktrial.workloads import sysbench
from ktrial.workloads.installed import (
    InstalledProgram,
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
test=oltp_$1
sysbench --version
set -- --db-driver=pgsql --pgsql-host="$scratch" --pgsql-user=postgres --pgsql-db=bench \\
    --tables="$2" --table-size="$3" --threads="$4" --time="$5" --rand-type=uniform
quietly sysbench "$test" "$@" prepare
sysbench "$test" "$@" run
"""
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    names = ("fsync", "shared-buffers", "test", "tables", "table-size", "threads", "time")
    return ("-c", _SCRIPT, "sysbench", *(str(settings[name]) for name in names))


def _read(output: str, _settings: Settings) -> dict[str, float]:
    rate = number(r"transactions:\s+[0-9]+\s+\(([0-9.]+) per sec", output)
    return {"transactions": rate, **sysbench.latency(output)}


WORKLOAD = InstalledProgram(
    described(
        "sysbench-oltp",
        "PostgreSQL under sysbench's oltp tests",
        "Starts a PostgreSQL server of its own in a scratch directory below /tmp, fills `tables` tables, "
        "runs the test for `time` seconds, and ends the server. Filling is not in the number.",
        (more("transactions", "1/s"), less("latency", "ms"), less("latency p95", "ms")),
        (
            choice("test", "which", "read_write", "read_only", "write_only", "point_select", "update_index"),
            whole("tables", "how many", 4, high=1000),
            whole("table-size", "rows of each", 10_000),
            whole("threads", "connections", 4, high=900),
            sysbench.TIME,
            choice("fsync", "whether a commit waits for the disk", "on", "off"),
            word("shared-buffers", "the server's own cache", "128MB"),
        ),
        sysbench.SOURCE,
    ),
    SHELL,
    _arguments,
    _read,
    others=(sysbench.PROGRAM,),
)
