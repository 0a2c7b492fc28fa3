"""A C file as a workload: a reproducer, or a program that runs what nothing else does.

It is compiled here, without shared libraries, and runs in guests alone: what it does there is done to nobody.
What was compiled is kept by the digest of the source, its name and the compiler's version.
"""

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from ktrial.file_digests import digest_of_bytes
from ktrial.installation import cache_directory
from ktrial.model.workload import Command, WorkloadUse
from ktrial.system_tools import Tool
from ktrial.text_lines import lines_of
from ktrial.workloads.errors import BadWorkload, WorkloadError

SUFFIX = ".c"
GCC = Tool("gcc", "gcc", "compiles the C file of a workload")
_LARGEST = 1 << 20
"""Bytes of a source."""
_LONGEST = 120.0
"""Seconds that a compiler may take."""
_FLAGS = ("-O1", "-w", "-static", "-pthread")


def program_of(source: Path) -> WorkloadUse:
    """The workload that runs the program once; it is called as the file is. Nothing of it runs here.

    Raises BadWorkload where there is no such file or it does not compile, WorkloadError where there is no
    compiler.
    """
    return program_from(source, _content(source))


def program_from(source: Path, content: bytes) -> WorkloadUse:
    """The same of this content; `source`: what it and the workload are called. Raises as `program_of`."""
    compiler = GCC.path()
    if compiler is None:
        raise WorkloadError(
            f"{source}: there is no gcc here, which compiles it.", hint="apt-get install gcc libc6-dev"
        )
    program = _compiled(source, content, compiler)
    command = Command(argv=(str(program),), files=(str(program),), repeats=1, discarded=0)
    return WorkloadUse(name=source.stem, command=command)


def _content(source: Path) -> bytes:
    if not source.is_file():
        raise BadWorkload(f"{source}: there is no such file.", hint="a candidate is FILE.toml or FILE.c")
    try:
        with source.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise BadWorkload(f"{source} cannot be read: {error.strerror}.") from None
    if len(content) > _LARGEST:
        raise BadWorkload(f"{source} has more than 1 MiB: is it a C file?")
    return content


def _compiled(source: Path, content: bytes, compiler: str) -> Path:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    # The name counts: it is the file's, and two sources may be alike.
    key = digest_of_bytes(b"\0".join((content, version, *(text.encode() for text in (*_FLAGS, source.stem)))))
    place = cache_directory() / "programs" / key
    program = place / source.stem
    if program.is_file():
        return program
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as directory:
        # It is compiled from a copy without its neighbours: the digest has all of it.
        copy = Path(directory) / f"source{SUFFIX}"
        copy.write_bytes(content)
        made = Path(directory) / "made"
        made.mkdir()
        _run([compiler, *_FLAGS, "-o", str(made / source.stem), str(copy)], source, copy)
        with suppress(OSError):  # another process was first
            made.rename(place)
    return program


def _run(command: list[str], source: Path, copy: Path) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise BadWorkload(f"{source} does not compile within {_LONGEST:.0f} s.") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").replace(str(copy), source.name)
        errors = (
            [line for line in lines_of(said) if "error" in line] or lines_of(said) or ["gcc says nothing"]
        )
        raise BadWorkload(
            f"{source} does not compile: {errors[0].strip()[:200]}",
            hint="a C file is compiled alone, by gcc -static; what it needs beside libc stands in it",
        )
