"""What a host program needs in the guest: itself, its interpreter, their shared libraries.

Nothing is executed to find out (`ldd` runs the program's loader): the files are read.
"""

import shlex
import shutil
from collections import deque
from pathlib import Path

from ktrial.model.boot import CarriedFile
from ktrial.workloads.errors import FileNotCarried, ProgramNotFound
from ktrial.workloads.shared_libraries import needed_by

_LOADER_CACHE = "/etc/ld.so.cache"

_Wanted = tuple[str, tuple[Path, ...]]
"""A file, and where its libraries are looked for besides the usual places."""


def program_path(workload: str, program: str) -> str:
    """Where the host has the program: a path as it is, a name by the host's PATH. Raises ProgramNotFound."""
    found = shutil.which(program) if "/" not in program else program
    if found is None or not Path(found).is_file():
        raise ProgramNotFound(workload=workload, program=program)
    return str(Path(found).absolute())


def with_all_they_need(workload: str, files: tuple[str, ...]) -> tuple[CarriedFile, ...]:
    """The files, and everything that the programs among them need, each once, at the host's own paths.

    Raises FileNotCarried, ProgramNotFound (an interpreter), LibraryNotFound.
    """
    carried: dict[str, CarriedFile] = {}
    waiting: deque[_Wanted] = deque((file, ()) for file in files)
    while waiting:
        file, search = waiting.popleft()
        if file in carried:
            continue
        carried[file] = _carried(workload, file)
        waiting += _needs(workload, file, search)
    return tuple(carried.values())


def _carried(workload: str, file: str) -> CarriedFile:
    path = Path(file)
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode & 0o777
        with real.open("rb"):
            pass
    except OSError as error:
        raise FileNotCarried(workload=workload, path=file, problem=error.strerror) from None
    return CarriedFile(host=real, guest=str(path.absolute()), mode=mode)


def _needs(workload: str, file: str, search: tuple[Path, ...]) -> list[_Wanted]:
    with Path(file).open("rb") as opened:
        start = opened.read(256)
    if start.startswith(b"#!"):
        return [(program, ()) for program in _interpreters(workload, start)]
    if not start.startswith(b"\x7fELF"):
        return []
    needed = needed_by(workload, Path(file), search)
    found: list[_Wanted] = [(library, needed.search) for library in needed.files]
    return [*found, (_LOADER_CACHE, ())] if needed.by_cache_only else found


def _interpreters(workload: str, start: bytes) -> list[str]:
    """The program in a script's first line; after env(1), the one that env is to find as well."""
    words = shlex.split(start.split(b"\n")[0][2:].decode(errors="replace"))
    if not words:
        return []
    found = [program_path(workload, words[0])]
    if Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found += [program_path(workload, name) for name in names[:1]]
    return found
