"""sysbench: prime numbers, memory, files, and PostgreSQL under its oltp tests."""

from ktrial.workloads.adapter import (
    AdapterCommand,
    InstalledProgram,
    Program,
    Reported,
    Settings,
    choice,
    described,
    less,
    more,
    whole,
    word,
)
from ktrial.workloads.adapters.pgbench import on_a_server

PROGRAM = Program("sysbench", "sysbench", version_pattern=r"(sysbench \S+)")
SOURCE = "https://github.com/akopytov/sysbench"
THREADS = whole("threads", "threads", 1, high=65536)
_LATENCIES = ("latency", "latency p95")
"""A percentile below what sysbench's two decimals show is left out."""
TIME = whole("time", "seconds", 10, high=86400)


def limits(settings: Settings) -> tuple[str, ...]:
    """`--threads` and `--time`."""
    return (f"--threads={settings['threads']}", f"--time={settings['time']}")


def _cpu_arguments(settings: Settings) -> tuple[str, ...]:
    return ("cpu", f"--cpu-max-prime={settings['max-prime']}", *limits(settings), "run")


_CPU = InstalledProgram(
    described(
        "sysbench-cpu",
        "prime numbers by sysbench: hardly any kernel",
        "One event finds all prime numbers up to `max-prime` by trial division. A null control for most of "
        "what a kernel can be told.",
        (more("events", "1/s"), less("latency", "ms"), less("latency p95", "ms")),
        (whole("max-prime", "the last number looked at", 10_000, low=3), THREADS, TIME),
        SOURCE,
    ),
    PROGRAM,
    _cpu_arguments,
    Reported("sysbench", required=("events",), optional=_LATENCIES),
)


def _memory_arguments(settings: Settings) -> tuple[str, ...]:
    return (
        "memory",
        f"--memory-block-size={settings['block-size']}",
        "--memory-total-size=1024T",
        f"--memory-oper={settings['operation']}",
        f"--memory-access-mode={settings['access']}",
        *limits(settings),
        # Its events take less than the hundredths of a millisecond that it prints.
        "--percentile=0",
        "run",
    )


_MEMORY = InstalledProgram(
    described(
        "sysbench-memory",
        "memory reads and writes by sysbench",
        "Reads or writes a buffer of `block-size` again and again, for `time` seconds.",
        (more("throughput", "MiB/s"),),
        (
            word("block-size", "of the buffer", "1K"),
            choice("operation", "what is done", "write", "read"),
            choice("access", "in which order", "seq", "rnd"),
            THREADS,
            TIME,
        ),
        SOURCE,
    ),
    PROGRAM,
    _memory_arguments,
    Reported("sysbench", required=("throughput",)),
)


def _fileio_files(settings: Settings) -> tuple[str, ...]:
    return (
        "fileio",
        f"--file-num={settings['files']}",
        f"--file-total-size={settings['total-size']}",
        f"--file-block-size={settings['block-size']}",
        f"--file-io-mode={settings['io-mode']}",
        f"--file-fsync-freq={settings['fsync-freq']}",
    )


def _fileio_arguments(settings: Settings) -> tuple[str, ...]:
    return (
        *_fileio_files(settings),
        f"--file-test-mode={settings['test-mode']}",
        *limits(settings),
        "run",
    )


_FILEIO = InstalledProgram(
    described(
        "sysbench-fileio",
        "file reads, writes and fsync by sysbench",
        "Makes `files` files in `directory`, reads and writes them for `time` seconds, and removes them. The "
        "numbers are sysbench's.",
        (
            more("read rate", "1/s"),
            more("write rate", "1/s"),
            more("fsync rate", "1/s"),
            less("latency", "ms"),
            less("latency p95", "ms"),
        ),
        (
            choice("test-mode", "what is done", "rndrw", "rndrd", "rndwr", "seqrd", "seqwr", "seqrewr"),
            whole("files", "how many", 16, high=65536),
            word("total-size", "of all files together", "256M"),
            word("block-size", "of one read or write", "16K"),
            choice("io-mode", "how", "sync", "async", "mmap"),
            whole("fsync-freq", "requests between two fsync; 0: none", 100, low=0),
            word("directory", "where the files are", "/tmp"),
            THREADS,
            TIME,
        ),
        SOURCE,
    ),
    PROGRAM,
    _fileio_arguments,
    Reported("sysbench", optional=("read rate", "write rate", "fsync rate", *_LATENCIES)),
    before=(AdapterCommand(lambda settings: (*_fileio_files(settings), "prepare")),),
    after=(AdapterCommand(lambda settings: (*_fileio_files(settings), "cleanup")),),
    directory=lambda settings: str(settings["directory"]),
)


_OLTP_SCRIPT = """
test=oltp_$1
sysbench --version
set -- --db-driver=pgsql --pgsql-host="$scratch" --pgsql-user=postgres --pgsql-db=bench \\
    --tables="$2" --table-size="$3" --threads="$4" --time="$5" --rand-type=uniform
quietly sysbench "$test" "$@" prepare
sysbench "$test" "$@" run
"""


_OLTP = on_a_server(
    (
        "sysbench-oltp",
        "PostgreSQL under sysbench's oltp tests",
        "fills `tables` tables, runs the test for `time` seconds",
        SOURCE,
    ),
    (more("transactions", "1/s"), less("latency", "ms"), less("latency p95", "ms")),
    (
        choice("test", "which", "read_write", "read_only", "write_only", "point_select", "update_index"),
        whole("tables", "how many", 4, high=1000),
        whole("table-size", "rows of each", 10_000),
        whole("threads", "connections", 4, high=900),
        TIME,
    ),
    _OLTP_SCRIPT,
    ("test", "tables", "table-size", "threads", "time"),
    Reported("sysbench", required=("transactions",), optional=_LATENCIES),
    PROGRAM,
)

WORKLOADS = (_CPU, _MEMORY, _FILEIO, _OLTP)
