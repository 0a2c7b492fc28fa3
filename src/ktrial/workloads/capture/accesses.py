"""What a traced command did with files and sockets, from the calls of all its processes."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ktrial.workloads.capture.strace_lines import Call, calls, unescaped

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
TRACED = (
    "%file,fchdir,getdents,getdents64,connect,bind,getsockname,clone,clone3,fork,vfork,"
    "chroot,pivot_root,mount,unshare"
)
"""What strace is asked for."""


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


def read(directory: Path, cwd: str) -> Accesses:
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
        done = Path(directory or self._cwd)
        for part in Path(name).parts:
            if part == "..":
                self._to.passed[str(done)] = None
                done = done.resolve().parent
            else:
                done /= part
        return str(done)

    def _network(self, call: Call) -> None:
        own = call.name != "connect"  # the kernel may have chosen the port: getsockname tells which
        if match := _SOCKET.search(call.text):
            path = self._path(unescaped(match[1]))
            if own and call.result >= 0:
                self._to.bound[path] = None
            elif not own and call.error in _CONNECTED:
                self._to.sockets[path] = None
        elif match := _INTERNET.search(call.text):
            port = int(match[1])
            if own:
                self._to.bound[port] = None
            elif call.error in _CONNECTED:
                self._to.addresses[match[2] or "", port] = None

    def _note(self, where: dict[str, None], path: str) -> None:
        if path:
            where.setdefault(path)
