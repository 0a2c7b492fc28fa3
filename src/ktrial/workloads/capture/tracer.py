"""Runs a command once, under strace, in the environment that it will have in a guest."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.system_tools import Tool
from ktrial.workloads.capture.accesses import TRACED, Accesses, read
from ktrial.workloads.errors import NotCaptured, NotTraced, TracerMissing

STRACE = Tool("strace", "strace", "finds what a program of yours needs in a guest")
_LONGEST_QUOTE = 400
_CLOCK_STEP = 0.02
"""Seconds: file systems stamp files in steps of a tick; what is made next must be younger than `began`."""


@dataclass(frozen=True)
class Traced:
    """A command that ran."""

    accesses: Accesses
    began: float
    """Seconds since 1970: what was made later, the command made, or another program meanwhile."""
    seconds: float


def trace(
    workload: str, argv: tuple[str, ...], directory: Path, environment: dict[str, str], limit: float
) -> Traced:
    """Run it, and say what it did. `limit`: seconds of the clock after which it is ended.

    Raises TracerMissing, NotTraced, NotCaptured (it failed, or did not end).
    """
    strace = shutil.which(STRACE.name)
    if strace is None:
        raise TracerMissing(workload=workload)
    with tempfile.TemporaryDirectory(prefix="ktrial-capture-") as place:
        command = (strace, "-ff", "-y", "-qq", "-s", "0", "-e", "signal=none", "-e", f"trace={TRACED}")
        words = (*command, "-o", f"{place}/t", "--", *argv)
        began = time.time()
        time.sleep(_CLOCK_STEP)
        status, said = _run(words, directory, environment, limit)
        seconds = time.time() - began - _CLOCK_STEP
        if not any(Path(place).glob("t.*")) or said.startswith("strace: "):
            raise NotTraced(workload=workload, said=said or "it wrote nothing")
        if status != 0:
            raise NotCaptured(
                workload=workload, problem=_ending(status, limit), said=said, directory=directory
            )
        return Traced(read(Path(place), str(directory)), began, seconds)


def _ending(status: int | None, limit: float) -> str:
    if status is None:
        return f"did not end within {limit:g} s"
    return f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"


def _run(
    words: tuple[str, ...], directory: Path, environment: dict[str, str], limit: float
) -> tuple[int | None, str]:
    """Its status (None: it was ended after the limit), and the end of what it said."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _group(words, directory, environment, output.fileno(), errors.fileno()) as process:
            try:
                status: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
        said = _end_of(errors.fileno()) or _end_of(output.fileno()) or "it said nothing"
    return status, said


@contextlib.contextmanager
def _group(
    words: tuple[str, ...], directory: Path, environment: dict[str, str], output: int, errors: int
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, in a group of its own, all of which is ended at the end."""
    process = subprocess.Popen(
        words,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        process_group=0,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(size - _LONGEST_QUOTE, 0)
    text = os.pread(descriptor, _LONGEST_QUOTE, start).decode(errors="replace").strip()
    return f"…{text}" if text and start else text
