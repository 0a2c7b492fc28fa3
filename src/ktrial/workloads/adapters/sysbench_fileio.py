"""sysbench fileio: reads, writes and fsync of some files."""

from ktrial.workloads.adapter import (
    Command,
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
from ktrial.workloads.adapters import sysbench


def _files(settings: Settings) -> tuple[str, ...]:
    return (
        "fileio",
        f"--file-num={settings['files']}",
        f"--file-total-size={settings['total-size']}",
        f"--file-block-size={settings['block-size']}",
        f"--file-io-mode={settings['io-mode']}",
        f"--file-fsync-freq={settings['fsync-freq']}",
    )


def _arguments(settings: Settings) -> tuple[str, ...]:
    return (
        *_files(settings),
        f"--file-test-mode={settings['test-mode']}",
        *sysbench.limits(settings),
        "run",
    )


def _read(output: str, _settings: Settings) -> dict[str, float]:
    rates = {
        "read rate": number(r"reads/s:\s+([0-9.]+)", output),
        "write rate": number(r"writes/s:\s+([0-9.]+)", output),
        "fsync rate": number(r"fsyncs/s:\s+([0-9.]+)", output),
    }
    return {name: rate for name, rate in rates.items() if rate} | sysbench.latency(output)


WORKLOAD = InstalledProgram(
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
            sysbench.THREADS,
            sysbench.TIME,
        ),
        sysbench.SOURCE,
    ),
    sysbench.PROGRAM,
    _arguments,
    _read,
    before=(Command(lambda settings: (*_files(settings), "prepare")),),
    after=(Command(lambda settings: (*_files(settings), "cleanup")),),
    directory=lambda settings: str(settings["directory"]),
)
