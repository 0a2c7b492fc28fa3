"""The program `watch` (crates/watch): it marks when something first happens, or tells which calls failed."""

import base64
import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ktrial.installation import package_directory
from ktrial.model.system_calls import NAMES
from ktrial.target import Collect, Push, Run, Step, StepResult
from ktrial.target.errors import GuestProgramsMissing

IN_GUEST = "/usr/lib/ktrial/watch"
"""Where a workload brings it to."""
_FAILURES_TO = "/ktrial-failed-calls"
_MOST_SHOWN = 120


def watch_program() -> Path:
    """Where it is here. Raises GuestProgramsMissing."""
    where = package_directory() / "_guest" / "x86_64"
    if not (where / "watch").is_file():
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing="watch")
    return where / "watch"


# Which system call of a program failed last: its steps are done again, uncounted, and it is watched.


@dataclass(frozen=True)
class FailedCall:
    """One system call that failed."""

    name: str
    errno: int
    arguments: tuple[str, ...]
    """Each as a number, `3 fd /dev/zero` or `94 text /etc/passwd`."""

    @property
    def text(self) -> str:
        """`splice(4, 0, 5, 0, 65536, 0) = EINVAL (Invalid argument); 4 is /dev/zero`."""
        kinds = _KINDS.get(self.name, "")
        shown = [_argument(kind, told) for kind, told in zip(kinds, self.arguments, strict=False)]
        places = [
            f"{told.partition(' ')[0]} is {told.partition(' fd ')[2]}"
            for kind, told in zip(kinds, self.arguments, strict=False)
            if kind == "d" and " fd " in told
        ]
        code = errno.errorcode.get(self.errno, str(self.errno))
        arguments = ", ".join(shown) if kinds else "…"
        answer = f"{self.name}({arguments}) = {code} ({os.strerror(self.errno)})"
        return "; ".join((answer, *dict.fromkeys(places)))


_KINDS = {
    **dict.fromkeys(("read", "write", "getdents64", "readv", "writev", "pwritev", "preadv"), "dxn"),
    **dict.fromkeys(("pread64", "pwrite64"), "dxnn"),
    **dict.fromkeys(("open", "creat", "stat", "lstat", "access", "mkdir", "chmod", "truncate"), "sn"),
    **dict.fromkeys(("unlink", "rmdir", "chdir", "chroot", "statfs", "swapon", "swapoff", "acct"), "s"),
    **dict.fromkeys(("rename", "link", "symlink"), "ss"),
    **dict.fromkeys(("openat", "mkdirat", "unlinkat", "faccessat", "faccessat2", "fchmodat"), "Dsn"),
    **dict.fromkeys(("newfstatat", "readlinkat", "statx", "openat2"), "Ds"),
    **dict.fromkeys(("execve", "readlink", "memfd_create", "chown", "lchown"), "sx"),
    **dict.fromkeys(("close", "fsync", "fdatasync", "fchdir", "dup", "syncfs"), "d"),
    **dict.fromkeys(("connect", "bind", "accept", "accept4", "getsockname", "getpeername"), "dxn"),
    **dict.fromkeys(("ftruncate", "listen", "shutdown", "flock", "fchmod", "dup2"), "dn"),
    **dict.fromkeys(("socket", "kill", "madvise", "mprotect", "munlock", "mlock", "munmap"), "nnn"),
    **dict.fromkeys(("ioctl", "fcntl", "lseek"), "dnn"),
    **dict.fromkeys(("sendto", "recvfrom"), "dxnn"),
    **dict.fromkeys(("sendmsg", "recvmsg"), "dxn"),
    **dict.fromkeys(("setsockopt", "getsockopt"), "dnnx"),
    "splice": "dxdxnn",
    "tee": "ddnn",
    "vmsplice": "dxnn",
    "sendfile": "ddxn",
    "copy_file_range": "dxdxnn",
    "fallocate": "dnnn",
    "mmap": "xnnndn",
    "mount": "sssn",
    "umount2": "sn",
    "bpf": "nxn",
    "prctl": "nnnnn",
    "epoll_ctl": "dndx",
    "fadvise64": "dnnn",
    "setrlimit": "nx",
    "prlimit64": "nnxx",
    "setuid": "n",
    "setgid": "n",
    "sched_setscheduler": "nnx",
    "io_uring_setup": "nx",
    "init_module": "xns",
    "finit_module": "dsn",
}
"""System call → its arguments: d a descriptor, D a directory's, s a text, n a number, x an address."""
_AT_FDCWD = "4294967196"


def _argument(kind: str, told: str) -> str:
    number, _, meaning = told.partition(" ")
    if kind == "s" and meaning.startswith("text "):
        return f'"{meaning.removeprefix("text ")[:_MOST_SHOWN]}"'
    if kind == "D" and (int(number) & 0xFFFFFFFF) == int(_AT_FDCWD):
        return "AT_FDCWD"
    if kind in "xs" and int(number):
        return f"{int(number):#x}"
    return number


_LOOKS = {
    *("open", "openat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
    *("readlink", "readlinkat", "execve", "getxattr", "lgetxattr", "connect"),
}
"""Programs look for what need not be there: a file of a locale, a name in each directory of PATH."""
_USUAL = {errno.EAGAIN, errno.EINTR, errno.ECHILD, errno.ENOTTY, errno.EINPROGRESS, errno.ESRCH}


def failed_calls(text: str) -> tuple[FailedCall, ...]:
    """What `watch --failures` wrote, in order. Raises ValueError."""
    calls = []
    for line in text.split("\n"):
        if line:
            number, code, *arguments = line.split("\t")
            name = NAMES.get(int(number), f"system call {number}")
            calls.append(FailedCall(name, int(code), tuple(arguments)))
    return tuple(calls)


def telling_failure(calls: tuple[FailedCall, ...]) -> FailedCall | None:
    """The last that says something; of a file that is looked for in vain, only where there is no other."""
    serious = [call for call in calls if call.errno not in _USUAL and not _is_no_link(call)]
    others = [call for call in serious if not (call.errno == errno.ENOENT and call.name in _LOOKS)]
    looked = [call for call in serious if not _is_looked_for_in_vain(call)]
    telling = others or looked
    return telling[-1] if telling else None


_OF_LOCALES = re.compile(r"/locale|/gconv|\.mo$|/ld\.so|/charset")


def _is_no_link(call: FailedCall) -> bool:
    """Whether it only asked whether a path is a link, as realpath(3) does with each part of one."""
    return call.errno == errno.EINVAL and call.name in {"readlink", "readlinkat"}


def _is_looked_for_in_vain(call: FailedCall) -> bool:
    return any(_OF_LOCALES.search(argument) for argument in call.arguments)


def watched_for_failures(steps: tuple[Step, ...], failed: int) -> tuple[Step, ...]:
    """The steps up to the program that failed, which is watched, and then what came of that.

    Raises GuestProgramsMissing.
    """
    step = steps[failed]
    if not isinstance(step, Run):
        raise ValueError("only programs are watched")
    content = base64.b64encode(watch_program().read_bytes()).decode()
    argv = (IN_GUEST, "--failures", _FAILURES_TO, "--", *step.argv)
    push = Push(path=IN_GUEST, base64=content, mode=0o755)
    watched = step.model_copy(update={"argv": argv, "watch": (), "sample": None})
    return (*steps[:failed], push, watched, Collect(path=_FAILURES_TO))


def last_failure(results: tuple[StepResult, ...]) -> FailedCall | None:
    """From the results of `watched_for_failures`; None where nothing failed, or it cannot be told."""
    told = results[-1] if results else None
    if told is None or told.do != "collect" or told.failure:
        return None
    return telling_failure(failed_calls(base64.b64decode(told.content).decode("utf-8", "replace")))
