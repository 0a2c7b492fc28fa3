"""Runs a command once, under strace, and reads in the trace what it did with files and sockets."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool
from ktrial.workloads.errors import WorkloadError

STRACE = Tool("strace", "strace", "finds what a program of yours needs in a guest")
_LONGEST_QUOTE = 400
_CLOCK_STEP = 0.02
"""Seconds: file systems stamp files in steps of a tick; what is made next must be younger than `began`."""


@dataclass
class Accesses:
    """Paths are absolute, without links followed; in the order in which they were met first."""

    executed: dict[str, None] = field(default_factory=dict)
    found: dict[str, None] = field(default_factory=dict)
    """What was there when it was opened or looked at."""
    listed: dict[str, None] = field(default_factory=dict)
    """Directories whose entries were read."""
    written: dict[str, None] = field(default_factory=dict)
    """Opened for writing, made, changed."""
    passed: dict[str, None] = field(default_factory=dict)
    """Directories that paths lead through and leave again: `DIRECTORY/..`."""
    sockets: dict[str, None] = field(default_factory=dict)
    """Sockets of the file system that it connected to."""
    addresses: dict[tuple[str, int], None] = field(default_factory=dict)
    """Addresses and ports that it connected to."""
    bound: dict[str | int, None] = field(default_factory=dict)
    """Sockets and ports of its own."""
    special: dict[str, None] = field(default_factory=dict)
    """Calls that change the view of the file system."""


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

    Raises WorkloadError: there is no strace, it cannot watch, or the command failed or did not end.
    """
    strace = shutil.which(STRACE.name)
    if strace is None:
        raise WorkloadError(
            f"Workload {workload}: what the command needs is found by strace, which is not installed here.",
            hint=f"{INSTALL} strace; or name the files yourself, in a study file: ktrial help studies",
        )
    with tempfile.TemporaryDirectory(prefix="ktrial-capture-") as place:
        command = (strace, "-ff", "-y", "-qq", "-s", "0", "-e", "signal=none", "-e", f"trace={TRACED}")
        words = (*command, "-o", f"{place}/t", "--", *argv)
        began = time.time()
        time.sleep(_CLOCK_STEP)
        started = time.monotonic()
        status, message = _run(words, directory, environment, limit)
        seconds = time.monotonic() - started
        if not any(Path(place).glob("t.*")) or message.startswith("strace: "):
            raise WorkloadError(
                f"Workload {workload}: strace cannot watch the command here: {message or 'it wrote nothing'}",
                hint="containers may forbid ptrace: docker run --cap-add SYS_PTRACE",
            )
        if status != 0:
            if status is None:
                ending = f"did not end within {limit:g} s"
            elif status < 0:
                ending = f"was ended by signal {-status}"
            else:
                ending = f"exited with status {status}"
            raise WorkloadError(
                f"Workload {workload}: the command {ending} when it was run here: {message}",
                hint=f"a guest would see the same: it ran in {directory}, with PATH and HOME and no other "
                "variable of yours (workload capture --env NAME takes one along), and without input",
            )
        return Traced(read_accesses(Path(place), str(directory)), began, seconds)


def _run(
    words: tuple[str, ...], directory: Path, environment: dict[str, str], limit: float
) -> tuple[int | None, str]:
    """Its status (None: it was ended after the limit), and the end of what it said."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
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
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            # All of its group, also what it has left running.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return status, _end_of(errors.fileno()) or _end_of(output.fileno()) or "it said nothing"


def _end_of(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(size - _LONGEST_QUOTE, 0)
    text = os.pread(descriptor, _LONGEST_QUOTE, start).decode(errors="replace").strip()
    return f"…{text}" if text and start else text


# --- Lines that strace wrote: the call, its arguments, and what it returned.

# --- Lines that strace wrote: the call, its arguments, and what it returned.
_LINE = re.compile(r"(\w+)\((.*)\) += (-?\d+|\?)(?:<((?:[^\\>]|\\.)*)>)?(?: ([A-Z]+))?", re.DOTALL)
_DESCRIPTOR = re.compile(r"(AT_FDCWD|-?\d+)(?:<((?:[^\\>]|\\.)*)>)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
_OPENING, _CLOSING = "[{(<", "]})>"


@dataclass(frozen=True)
class Call:
    """One system call that has returned."""

    name: str
    arguments: tuple[str, ...]
    """As strace wrote them."""
    result: int
    path: str = ""
    """Of the descriptor that it returned."""
    error: str = ""

    @property
    def text(self) -> str:
        """All arguments."""
        return ", ".join(self.arguments)

    def path_at(self, index: int) -> str:
        """The text in quotes that is the argument; empty where it is none."""
        match = _QUOTED.match(self.arguments[index]) if index < len(self.arguments) else None
        return unescaped(match[1]) if match else ""

    def descriptor_at(self, index: int) -> str:
        """The path behind a descriptor that is an argument; empty where strace does not tell it."""
        match = _DESCRIPTOR.match(self.arguments[index]) if index < len(self.arguments) else None
        return unescaped(match[2]) if match and match[2] else ""


def calls(file: Path) -> Iterator[Call]:
    """The calls of one process, in order; what is no call (signals, exits) is skipped."""
    with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for line in lines:
            match = _LINE.match(line)
            if match and match[3] != "?":
                name, text, result, path, error = match.groups()
                yield Call(name, tuple(_split(text)), int(result), unescaped(path or ""), error or "")


def _split(text: str) -> Iterator[str]:
    """The arguments: at commas outside of quotes and brackets."""
    start = depth = 0
    quoted = escaped = False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in _OPENING:
            depth += 1
        elif not quoted and character in _CLOSING:
            depth -= 1
        elif not quoted and character == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def unescaped(text: str) -> str:
    """A text as the program had it: strace writes bytes that are not ASCII as octal numbers."""

    def plain(match: re.Match[str]) -> str:
        octal, hexadecimal, letter = match.groups()
        if octal or hexadecimal:
            number = int(octal, 8) if octal else int(hexadecimal, 16)
            return bytes([number & 255]).decode("latin-1")
        return _CONTROLS.get(letter, str(letter))

    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPE.sub(plain, text).encode("latin-1", errors="replace"))


# --- From the calls of all processes to what the command did.

# --- From the calls of all processes to what the command did.
TRACED = (
    "%file,fchdir,getdents,getdents64,connect,bind,getsockname,clone,clone3,fork,vfork,"
    "chroot,pivot_root,mount,unshare"
)
"""What strace is asked for."""
_CHILD = {"clone", "clone3", "fork", "vfork"}
_BY_PATH = {
    *("stat", "lstat", "access", "readlink", "statfs", "getxattr", "lgetxattr", "listxattr", "llistxattr"),
    *("chdir", "chroot"),
}
"""The path is the first argument."""
_BY_DESCRIPTOR = {"newfstatat", "statx", "faccessat", "faccessat2", "readlinkat", "name_to_handle_at"}
"""A directory's descriptor, then the path."""
_MADE = {"mkdir": 0, "mknod": 0, "symlink": 1, "link": 1, "rename": 1, "creat": 0}
_MADE_AT = {"mkdirat": 0, "mknodat": 0, "symlinkat": 1, "linkat": 2, "renameat": 2, "renameat2": 2}
"""Call → the argument before the path that it makes."""
_CHANGED = {"chmod", "chown", "lchown", "truncate", "utime", "utimes"}
_CHANGED_AT = {"fchmodat", "fchownat", "utimensat"}
_WRITES = re.compile(r"\bO_(WRONLY|RDWR|TRUNC|CREAT)\b")
_SOCKET = re.compile(r'sa_family=AF_UNIX, sun_path=@?"((?:[^"\\]|\\.)*)"')
_INTERNET = re.compile(
    r'sa_family=AF_INET6?, sin6?_port=htons\((\d+)\)(?:.*?inet_(?:addr|pton)\((?:AF_INET6, )?"([^"]*)")?'
)
_CONNECTED = {"", "EINPROGRESS"}


def read_accesses(directory: Path, cwd: str) -> Accesses:
    """From the files `t.PID` that `strace -ff` wrote there; the first process began in `cwd`."""
    accesses = Accesses()
    files = {int(file.suffix[1:]): file for file in directory.glob("t.*")}
    waiting = [(pid, cwd) for pid in sorted(files)[:1]]
    while waiting:
        pid, place = waiting.pop(0)
        if file := files.pop(pid, None):
            waiting += _Process(accesses, place).read(file)
        if not waiting and files:  # one whose parent was not seen
            waiting = [(min(files), cwd)]
    return accesses


class _Process:
    """One process: its working directory goes to its children as it is when they are made."""

    def __init__(self, accesses: Accesses, cwd: str) -> None:
        self._to = accesses
        self._cwd = cwd

    def read(self, file: Path) -> list[tuple[int, str]]:
        children = []
        for call in calls(file):
            if call.name in _CHILD and call.result > 0:
                children.append((call.result, self._cwd))
            elif call.name in {"connect", "bind", "getsockname"}:
                self._network(call)
            elif call.result >= 0:
                self._file(call)
        return children

    def _file(self, call: Call) -> None:
        name = call.name
        if name in {"open", "openat", "openat2", "creat"}:
            self._opened(call)
        elif name in {"execve", "execveat"}:
            path = self._at(call, 0) if name == "execveat" else self._path(call.path_at(0))
            self._note(self._to.executed, path)
        elif name in {"getdents", "getdents64"}:
            self._note(self._to.listed, call.descriptor_at(0))
        elif name in _MADE or name in _CHANGED:
            self._note(self._to.written, self._path(call.path_at(_MADE.get(name, 0))))
        elif name in _MADE_AT or name in _CHANGED_AT:
            self._note(self._to.written, self._at(call, _MADE_AT.get(name, 0)))
        elif name in _BY_DESCRIPTOR:
            self._note(self._to.found, self._at(call, 0))
        elif name in _BY_PATH:
            self._note(self._to.found, self._path(call.path_at(0)))
        self._moved(call)

    def _moved(self, call: Call) -> None:
        if call.name in {"chroot", "pivot_root", "mount", "unshare"}:
            self._to.special[call.name] = None
        if call.name == "chdir":
            self._cwd = self._path(call.path_at(0)) or self._cwd
        if call.name == "fchdir":
            self._cwd = call.descriptor_at(0) or self._cwd

    def _opened(self, call: Call) -> None:
        path = self._at(call, 0) if call.name.startswith("openat") else self._path(call.path_at(0))
        if _WRITES.search(call.text) or call.name == "creat":
            self._note(self._to.written, path)
        self._note(self._to.found, path)

    def _at(self, call: Call, index: int) -> str:
        """The path that the arguments at `index` and after it mean."""
        name = call.path_at(index + 1)
        return self._path(name, call.descriptor_at(index)) if name else ""

    def _path(self, name: str, directory: str = "") -> str:
        """Absolute; where it holds `..`, by what its first part leads to, as the kernel reads it."""
        if not name:
            return ""
        path = os.path.normpath(name) if ".." not in name.split("/") else self._through(name, directory)
        return os.path.normpath(Path(directory or self._cwd, path))

    def _through(self, name: str, directory: str) -> str:
        place = Path(directory or self._cwd)
        for part in Path(name).parts:
            if part == "..":
                self._to.passed[str(place)] = None
                place = place.resolve().parent
            else:
                place /= part
        return str(place)

    def _network(self, call: Call) -> None:
        listens = call.name != "connect"  # the kernel may have chosen the port: getsockname tells which
        if match := _SOCKET.search(call.text):
            path = self._path(unescaped(match[1]))
            if listens and call.result >= 0:
                self._to.bound[path] = None
            elif not listens and call.error in _CONNECTED:
                self._to.sockets[path] = None
        elif match := _INTERNET.search(call.text):
            port = int(match[1])
            if listens:
                self._to.bound[port] = None
            elif call.error in _CONNECTED:
                self._to.addresses[match[2] or "", port] = None

    def _note(self, where: dict[str, None], path: str) -> None:
        if path:
            where.setdefault(path)
