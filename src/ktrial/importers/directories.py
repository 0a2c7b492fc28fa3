"""Directories of results, as suites keep them: the files in them that hold the numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ktrial import program_outputs
from ktrial.importers import mmtests_logs
from ktrial.importers.errors import ImportFailed, some_of
from ktrial.importers.protocol import source_file

_PHORONIX = "composite.xml"
_UNITED = ("matrix.json", "matrix.json.gz")
_OF_A_RUN = ("stats.json", "stats.json.gz")
_MOST = 1000


class ResultFile(NamedTuple):
    """A file to be read."""

    label: str
    path: Path
    part: str = ""
    """What was measured in it, where the directory's names say that: it may be repeated, or missing."""
    note: str = ""
    """What is in the directory and is not read."""


def files_of(paths: Sequence[tuple[str, Path]]) -> list[ResultFile]:
    """The files with their labels; for a directory those that its suite wrote. Raises ImportFailed.

    Of the Phoronix Test Suite: a saved result, or all that are saved (test-results). Of LKP: the result root
    of one run, or the one above it, with the runs 0, 1, 2; its runs are one group. Of MMTests: a run, or the
    directory of all of them (work/log); each is a group.
    """
    return [file for label, path in paths for file in _files(label, path)]


def _files(label: str, path: Path) -> list[ResultFile]:
    if not path.is_dir():
        return [ResultFile(label, path)]
    try:
        below = sorted(path.iterdir(), key=lambda entry: (len(entry.name), entry.name))
        runs = mmtests_logs.runs_of(path)
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}.", hint="give its files") from error
    if runs:
        return [file for run in runs for file in _of_mmtests(label, run, len(runs))]
    results = [entry / _PHORONIX for entry in below if (entry / _PHORONIX).is_file()]
    if (path / _PHORONIX).is_file() or results:
        return [
            ResultFile(label, file)
            for file in ([path / _PHORONIX] if (path / _PHORONIX).is_file() else results)
        ]
    of_runs = [file for entry in below if entry.name.isdecimal() and (file := _first(entry, _OF_A_RUN))]
    united = _first(path, _OF_A_RUN) or _first(path, _UNITED)
    files = of_runs or ([united] if united else [])
    if not files or len(files) > _MOST:
        raise ImportFailed(
            f"{path} is a directory, and no result of Phoronix, LKP or MMTests.",
            hint="give the files in it: LABEL=FILE for each",
        )
    return [ResultFile(label or path.name, file) for file in files]


def _of_mmtests(label: str, run: Path, runs: int) -> list[ResultFile]:
    """A run's logs that are in a format that is read; the first one's note names the others."""
    name = label if label and runs == 1 else " ".join(filter(None, (label, run.name)))
    logs = mmtests_logs.logs_of(run)
    read, left = mmtests_logs.results_of(logs, {log.path for log in logs if _has_format(log.path)})
    if not read or len(read) > _MOST:
        names = some_of([file.path.name for file in logs]) or "there is no log"
        problem = f"more than {_MOST} logs" if read else f"no log is in a format that is read: {names}"
        raise ImportFailed(
            f"{run.name}, a run of MMTests: {problem}.",
            hint="MMTests' compare-kernels.sh prints a table of all benchmarks, which is read",
        )
    unread = "; ".join(f"{benchmark}: {some_of(names)}" for benchmark, names in left.items())
    note = f"not read in the logs of {unread}" if unread else ""
    return [ResultFile(name, log.path, log.part, note if at == 0 else "") for at, log in enumerate(read)]


def _has_format(path: Path) -> bool:
    try:
        text = source_file(path).text
    except ImportFailed:
        return False
    return any(format.recognises(text) for format in program_outputs.installed()[0].values())


def _first(directory: Path, names: Sequence[str]) -> Path | None:
    return next((directory / name for name in names if (directory / name).is_file()), None)
