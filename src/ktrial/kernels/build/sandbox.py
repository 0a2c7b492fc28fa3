"""A source's makefiles, scripts and Kconfig run code: in bubblewrap they reach their build directory alone.

No network, no other process, no home; of the system what compilers need, read-only; of the environment what a
build is told. As root too: there the user namespace gives a user without any privilege, and where the system
refuses such a namespace, root runs it without capabilities.

bwrap's own processes die at once of a signal, and make with them, before it could delete what is half
written. So make's end is asked for through a pipe: who holds its other end closes it, or is killed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.kernels.errors import BUBBLEWRAP, KernelUsageError
from ktrial.package_names import INSTALL

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_SETTINGS = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/perl", "/etc/profile.d/debuginfod.sh"),
)
"""What programs of a build read of a system's configuration. None of it is a secret."""
_PASSED_VARIABLES = ("PATH", "LANG", "TZ", "SOURCE_DATE_EPOCH", "TERM", "LOCALVERSION")
_PASSED_PREFIXES = ("LC_", "CCACHE_", "KBUILD_", "KCONFIG_")
_HOME = "/tmp"
"""Inside: empty, and gone afterwards."""
_UNPRIVILEGED = ("--unshare-user", "--uid", "65534", "--gid", "65534")
_ALONE = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--new-session", "--hostname", "ktrial"),
)
_UNTIL_CLOSED = (
    'exec 3<&0; "$@" </dev/null 3<&- & program=$!; '
    "{ read -r _ <&3; kill -TERM $program; } 2>/dev/null & "
    "wait $program; status=$?; kill -KILL -1 2>/dev/null; exit $status"
)
"""Runs a program until it ends, or the other end of the pipe is closed; then nothing of it is left."""


@dataclass(frozen=True)
class Sandbox:
    """What a build may reach."""

    readable: tuple[Path, ...]
    """Files and directories, read-only."""
    writable: tuple[Path, ...]
    """Directories; what of them lies below a readable one stays writable."""
    programs: Mapping[str, str]
    """make's variables: compilers that they name by a path are readable."""

    def command(self, words: Iterable[str], environment: Mapping[str, str]) -> list[str]:
        """The command that runs these words confined, in an environment of its own."""
        passed = {
            name: value
            for name, value in environment.items()
            if name in _PASSED_VARIABLES or name.startswith(_PASSED_PREFIXES)
        }
        passed |= {"HOME": _HOME, "TMPDIR": _HOME, "CCACHE_DIR": str(ccache_directory())}
        settings = [word for name, value in passed.items() for word in ("--setenv", name, value)]
        way = _way(shutil.which("bwrap"))
        assert way is not None, "whoever confines has asked before"
        return [*way, *_system(), *self._places(), "--clearenv", *settings, "--chdir", "/", "--", *words]

    def _places(self) -> Iterator[str]:
        yield from ("--tmpfs", _HOME)
        for path in (*_toolchains(self.programs), *self.readable):
            yield from _binding("--ro-bind-try", path)
        for path in (*self.writable, ccache_directory()):
            yield from _binding("--bind", path)


def problem() -> str:
    """Why nothing can be confined here, in one sentence; empty where it can.

    Tried with the very places that a build of this process has: PATH's directories, the trees, ccache's.
    """
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    if _way(program) is None:
        return "this system lets bubblewrap make no namespaces"
    trees = cache_directory() / "trees"
    trees.mkdir(parents=True, exist_ok=True)
    return _refusal(tuple(Sandbox((), (trees,), {}).command(["true"], os.environ)))


@lru_cache
def _refusal(command: tuple[str, ...]) -> str:
    """What bubblewrap says of this command in place of running it; empty where it runs."""
    finished = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if finished.returncode == 0:
        return ""
    reason = refusal_in(finished.stderr) or f"exit status {finished.returncode}"
    return f"bubblewrap cannot give a build its directories: {reason}"


def refusal_in(output: str) -> str:
    """Why bubblewrap ran nothing, by what a confined command printed; empty where it ran."""
    first = output.lstrip().partition("\n")[0]
    return first.removeprefix("bwrap: ") if first.startswith("bwrap: ") else ""


def required() -> None:
    """Raise KernelUsageError where nothing can be confined."""
    if why := problem():
        raise KernelUsageError(
            f"A series from a mailbox is built in a sandbox only, and there is none: {why}.",
            hint=f"{INSTALL} {BUBBLEWRAP.package}; or --trust, if you would run its makefiles as yourself",
        )


def ccache_directory() -> Path:
    """ccache's, of confined builds only: none of them may put anything into the user's own."""
    place = cache_directory() / "ccache"
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def ending_pipe() -> Iterator[tuple[int, int]]:
    """A pipe's ends, to read and to write: who closes the latter ends what `until_closed` runs."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            with suppress(OSError):  # closed before
                os.close(end)


def until_closed(words: Iterable[str]) -> list[str]:
    """The command that runs these words until they end, or the pipe that is its standard input is closed."""
    return ["sh", "-c", _UNTIL_CLOSED, "sh", *words]


def is_plain(path: Path) -> bool:
    """Whether a product is a file, and no link that leads somewhere else."""
    return path.is_file() and not path.is_symlink()


@lru_cache
def _way(program: str | None) -> tuple[str, ...] | None:
    """bwrap and how it separates here; None where it cannot."""
    if program is None:
        return None
    ways: list[tuple[str, ...]] = [(program, *_UNPRIVILEGED, *_ALONE)]
    if os.geteuid() == 0:
        ways.append((program, *_ALONE))
    return next((way for way in ways if _works(way)), None)


def _works(way: tuple[str, ...]) -> bool:
    finished = subprocess.run(
        [*way, *_system(), "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return finished.returncode == 0


@lru_cache
def _system() -> tuple[str, ...]:
    """The system's programs and libraries, as they lie."""
    words: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114 - of a text
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        else:
            words += ["--ro-bind-try", path, path]
    for path in _SETTINGS:
        words += ["--ro-bind-try", path, path]
    return (*words, "--dev", "/dev", "--proc", "/proc")


def _binding(option: str, path: Path) -> Iterator[str]:
    """bwrap's words for a place that is seen inside under its name, and under its real one.

    bubblewrap 0.12 mounts nothing on a symbolic link. One that leads through a directory of the system is
    there already, and needs only what it leads to.
    """
    real = path.resolve()
    yield from (option, str(real), str(real))
    if real != path and not _is_of_the_system(path):
        yield from (option, str(real), str(path))


def _is_of_the_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)


def _toolchains(programs: Mapping[str, str]) -> Iterator[Path]:
    """Directories of PATH that are not the system's, and of compilers that a variable names by a path."""
    for text in os.environ.get("PATH", "").split(os.pathsep):
        directory = Path(text)
        if directory.is_absolute() and not (
            _is_of_the_system(directory) and _is_of_the_system(directory.resolve())
        ):
            yield directory
    for value in programs.values():
        for word in value.split():
            if word.startswith("/") and (compiler := Path(word)).exists():
                yield _of_compiler(compiler.resolve())


def _of_compiler(program: Path) -> Path:
    """What a compiler was installed to, with its headers and libraries; never a home, or all there is."""
    home, directory = Path.home().resolve(), program.parent
    too_much = {Path("/"), home, *home.parents}
    if directory.name == "bin" and directory.parent not in too_much:
        return directory.parent
    return program if directory in too_much else directory
