"""This system as a target: its settings are read and written, nothing else is done."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from ktrial.target import Failure, Read, Step, StepResult, Write

_READ_LIMIT = 1 << 20
_READABLE = 0o444
_MAY_READ = ("proc", "sys")
_MAY_WRITE = ("proc/sys", "sys")


class LocalTarget:
    """Reads and writes kernel files as the guest's agent does; any other step fails, and says so.

    Symbolic links are followed, since many paths below /sys are some, but what is read has to lie below /proc
    or /sys, what is written below /proc/sys or /sys. `root` stands for `/`: tests give a tree of their own.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root.resolve()

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order; one that fails does not stop those after it."""
        return tuple(self.step(number, step) for number, step in enumerate(steps))

    def step(self, number: int, step: Step) -> StepResult:
        """Do one step and return its result, numbered `number`."""
        empty = StepResult(step=number, do=step.do)
        match step:
            case Write():
                return self._write(step, empty)
            case Read():
                return self._read(step, empty)
            case _:
                return empty.model_copy(update={"failure": _plain(f"{step.do}: only settings are done here")})

    def mode(self, path: str) -> int:
        """The file's rights, as numbers; 0 where it is not there."""
        try:
            return (self._root / path.lstrip("/")).stat().st_mode
        except OSError:
            return 0

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Paths below /proc/sys and /sys that match the pattern (`*`, and `**` for any depth), sorted."""
        below = pattern.lstrip("/")
        if ".." in below.split("/") or not below.startswith(("proc/sys/", "sys/")):
            return ()
        return tuple(sorted("/" + str(path.relative_to(self._root)) for path in self._root.glob(below)))

    def _write(self, step: Write, empty: StepResult) -> StepResult:
        action = f"write {step.path}"
        contents: dict[str, str] = {}

        def change() -> None:
            path = self._file(step.path, _MAY_WRITE)
            readable = path.stat().st_mode & _READABLE
            # What cannot be read before it is written says so when it is read back.
            contents["before"] = _told_or_empty(path) if readable else ""
            written = write_at_once(path, step.value)
            if written < len(step.value.encode()):
                raise OSError(f"it took {written} of {len(step.value.encode())} bytes")
            contents["after"] = _value(_head(path)[0]) if readable else ""

        failure = _attempt(action, change)
        return empty.model_copy(update={**contents, "failure": failure})

    def _read(self, step: Read, empty: StepResult) -> StepResult:
        action = f"read {step.path}"
        contents: dict[str, str] = {}

        def look() -> None:
            contents["content"], complete = _head(self._file(step.path, _MAY_READ))
            if not complete:
                raise OSError(f"longer than {_READ_LIMIT} bytes; the rest was left out")

        failure = _attempt(action, look)
        return empty.model_copy(update={**contents, "failure": failure})

    def _file(self, path: str, allowed: tuple[str, ...]) -> Path:
        """The regular file that `path` leads to. Raises OSError, also where that lies elsewhere."""
        if "\0" in path:
            raise OSError("a path has no NUL byte in it")
        named = self._root / path.lstrip("/")
        # Before anything is asked of the file system: `..` must not tell what exists elsewhere either.
        self._require_below(Path(os.path.normpath(named)), allowed)
        real_path = Path(os.path.realpath(named, strict=True))
        self._require_below(real_path, allowed)
        if stat.S_ISDIR(real_path.stat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(real_path.stat().st_mode):
            raise OSError("it is not a regular file")
        return real_path

    def _require_below(self, path: Path, allowed: tuple[str, ...]) -> None:
        if not any(path.is_relative_to(self._root / top) for top in allowed):
            places = " and ".join(f"/{top}" for top in allowed)
            raise OSError(f"it leads to {path}, which is not below {places}")


def write_at_once(path: Path, value: str) -> int:
    """Write the value in one system call, as the kernel wants it; return how many bytes it took."""
    # As the shell's `>` does it; to a kernel's file the truncation is nothing.
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _head(path: Path) -> tuple[str, bool]:
    """The first MiB, and whether that is all. What is not UTF-8 is replaced."""
    # O_NONBLOCK: a file that waits for events (trace_pipe) answers EAGAIN.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        pieces, size = [], 0
        while size <= _READ_LIMIT and (piece := os.read(descriptor, _READ_LIMIT + 1 - size)):
            pieces.append(piece)
            size += len(piece)
    finally:
        os.close(descriptor)
    return b"".join(pieces)[:_READ_LIMIT].decode(errors="replace"), size <= _READ_LIMIT


def _told_or_empty(path: Path) -> str:
    try:
        return _value(_head(path)[0])
    except OSError:
        return ""


def _value(text: str) -> str:
    """Without its last newline."""
    return text.removesuffix("\n")


def _attempt(action: str, attempt: Callable[[], None]) -> Failure | None:
    try:
        attempt()
    except OSError as error:
        if error.errno is None:
            return _plain(f"{action}: {error}")
        name = errno.errorcode.get(error.errno, "")
        return Failure(errno=error.errno, name=name, text=f"{action}: {os.strerror(error.errno)}")
    return None


def _plain(text: str) -> Failure:
    """A failure that is no answer of the kernel's."""
    return Failure(text=text)
