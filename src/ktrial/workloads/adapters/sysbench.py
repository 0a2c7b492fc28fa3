"""sysbench: prime numbers, memory, files, and PostgreSQL under its oltp tests."""

from ktrial.workloads.adapter import (
    AdapterCommand,
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
from ktrial.workloads.adapters.postgres import on_a_server

PROGRAM = Program("sysbench", "sysbench", version_pattern=r"(sysbench \S+)")
SOURCE = "https://github.com/akopytov/sysbench"
THREADS = whole("threads", "threads", 1, high=65536)
TIME = whole("time", "seconds", 10, high=86400)


def limits(settings: Settings) -> tuple[str, ...]:
    """`--threads` and `--time`."""
    return (f"--threads={settings['threads']}", f"--time={settings['time']}")


def latency(output: str) -> dict[str, float]:
    """Mean and 95th percentile, in milliseconds, which it tells with two decimals."""
    return {
        "latency": number(r"^\s+avg:\s+([0-9.]+)$", output),
        "latency p95": number(r"^\s+95th percentile:\s+([0-9.]+)$", output),
    }


def _cpu_arguments(settings: Settings) -> tuple[str, ...]:
    return ("cpu", f"--cpu-max-prime={settings['max-prime']}", *limits(settings), "run")


def _cpu_read(output: str, _settings: Settings) -> dict[str, float]:
    rate = number(r"events per second:\s+([0-9.]+)", output)
    return {"events": rate, **latency(output)}


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
    _cpu_read,
)


def _memory_arguments(settings: Settings) -> tuple[str, ...]:
    return (
        "memory",
        f"--memory-block-size={settings['block-size']}",
        "--memory-total-size=1024T",
        f"--memory-oper={settings['operation']}",
        f"--memory-access-mode={settings['access']}",
        *limits(settings),
        "run",
    )


def _memory_read(output: str, _settings: Settings) -> dict[str, float]:
    return {"throughput": number(r"transferred \(([0-9.]+) MiB/sec\)", output)}


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
    _memory_read,
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


def _fileio_read(output: str, _settings: Settings) -> dict[str, float]:
    rates = {
        "read rate": number(r"reads/s:\s+([0-9.]+)", output),
        "write rate": number(r"writes/s:\s+([0-9.]+)", output),
        "fsync rate": number(r"fsyncs/s:\s+([0-9.]+)", output),
    }
    return {name: rate for name, rate in rates.items() if rate} | latency(output)


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
    _fileio_read,
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


def _oltp_read(output: str, _settings: Settings) -> dict[str, float]:
    rate = number(r"transactions:\s+[0-9]+\s+\(([0-9.]+) per sec", output)
    return {"transactions": rate, **latency(output)}


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
    _oltp_read,
    PROGRAM,
)

WORKLOADS = (_CPU, _MEMORY, _FILEIO, _OLTP)
