"""Directories of results, as suites keep them: the files in them that hold the numbers."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.importers.errors import ImportFailed

_PHORONIX = "composite.xml"
_UNITED = ("matrix.json", "matrix.json.gz")
_OF_A_RUN = ("stats.json", "stats.json.gz")
_MOST = 1000


def files_of(paths: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """The files with their labels; for a directory those that its suite wrote. Raises ImportFailed.

    Of the Phoronix Test Suite: a saved result, or all that are saved (test-results). Of LKP: the result root
    of one run, or the one above it, with the runs 0, 1, 2; its runs are one group.
    """
    return [pair for label, path in paths for pair in _files(label, path)]


def _files(label: str, path: Path) -> list[tuple[str, Path]]:
    if not path.is_dir():
        return [(label, path)]
    try:
        below = sorted(path.iterdir(), key=lambda entry: (len(entry.name), entry.name))
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}.", hint="give its files") from error
    results = [entry / _PHORONIX for entry in below if (entry / _PHORONIX).is_file()]
    if (path / _PHORONIX).is_file() or results:
        return [(label, file) for file in ([path / _PHORONIX] if (path / _PHORONIX).is_file() else results)]
    runs = [file for entry in below if entry.name.isdecimal() and (file := _first(entry, _OF_A_RUN))]
    united = _first(path, _OF_A_RUN) or _first(path, _UNITED)
    files = runs or ([united] if united else [])
    if not files or len(files) > _MOST:
        raise ImportFailed(
            f"{path} is a directory, and no result of the Phoronix Test Suite or of LKP.",
            hint="give the files in it: LABEL=FILE for each",
        )
    return [(label or path.name, file) for file in files]


def _first(directory: Path, names: Sequence[str]) -> Path | None:
    return next((directory / name for name in names if (directory / name).is_file()), None)
