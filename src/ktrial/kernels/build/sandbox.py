"""A source's makefiles, scripts and Kconfig run code: in bubblewrap they reach their build directory alone.

No network, no other process, no home; of the system what compilers need, read-only; of the environment what a
build is told; of the kernel the calls that builds make (`system_calls`). Nothing in /proc can be written, and
no other namespace made. Landlock keeps all of it to the same places once more, where the kernel has it. A
user's builds are that user's, in a user namespace. root's are another user's: a number of their own, which
owns what they may write and nothing else. A user namespace would not do there: who is `nobody` in it is root
for /proc/sys.

bwrap's own processes die at once of a signal, and make with them, before it could delete what is half
written. So make's end is asked for through a pipe: who holds its other end closes it, or is killed.
"""

import os
import resource
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.kernels.build import system_calls
from ktrial.kernels.errors import ProcessesSpent
from ktrial.target.confinement import confine_program, words_of

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_SETTINGS = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/perl", "/etc/profile.d/debuginfod.sh"),
)
"""What programs of a build read of a system's configuration. None of it is a secret."""
_PASSED_VARIABLES = frozenset(
    {
        *("PATH", "LANG", "LC_ALL", "LC_MESSAGES", "TZ", "SOURCE_DATE_EPOCH", "TERM", "LOCALVERSION"),
        *(
            "CCACHE_NOHASHDIR",
            "CCACHE_BASEDIR",
            "CCACHE_DISABLE",
            "CCACHE_MAXSIZE",
            "CCACHE_COMPRESS",
            "CCACHE_SLOPPINESS",
        ),
        *("KBUILD_BUILD_TIMESTAMP", "KBUILD_BUILD_USER", "KBUILD_BUILD_HOST", "KBUILD_BUILD_VERSION"),
        *("KCONFIG_ALLCONFIG", "KCONFIG_CONFIG"),
    }
)
"""Each by its name: CCACHE_REMOTE_STORAGE may hold a password."""
_CONFINE = "/confine"
"""Where it is inside."""
_HOME = "/tmp"
"""Inside: empty, and gone afterwards."""
_IN_MEMORY = 2 << 30
"""Bytes that /tmp and /dev/shm hold at most, each."""
_USERS_OWN = ("--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534")
TENANT = 61_843
"""The user and group of root's builds: of the numbers that systemd gives to services as they start (61184 to
65519), so that no user has it."""
_ROOTS = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
"""What it takes to become that user; then they are gone."""
_BECOME_TENANT = (
    *("setpriv", f"--reuid={TENANT}", f"--regid={TENANT}", "--clear-groups"),
    *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--"),
)
_ALONE = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--new-session", "--hostname", "ktrial", "--cap-drop", "ALL", "--die-with-parent"),
)
MOST_WAIT = 60.0
"""Seconds for which another build may have all processes that builds may have."""
_BETWEEN_TRIES = 0.5
_NO_PROCESS = "Resource temporarily unavailable"
_LIMITS = {
    "nproc": (resource.RLIMIT_NPROC, 8192),
    "fsize": (resource.RLIMIT_FSIZE, 16 << 30),
    "as": (resource.RLIMIT_AS, 32 << 30),
    "cpu": (resource.RLIMIT_CPU, 6 * 3600),
    "core": (resource.RLIMIT_CORE, 0),
}
"""Of each process, by prlimit's name: a fork bomb, a file, a loop without end come to theirs."""
_AS_PARENT = (
    *("setsid", "sh", "-c"),
    'echo 500 > /proc/self/oom_score_adj; [ -z "$1" ] || exec 9<"$1"; shift; "$@"; exit $?',
    "sh",
)
"""Starts bubblewrap, which reads its filter of system calls from descriptor 9. Once the command has ended,
bubblewrap ends, and with it all that the command has started and left: `--die-with-parent` is for that. This
shell is its parent, so that it does not end at once where ktrial is killed or a terminal sends a signal.
Where memory ends, the kernel is to end a build before anything else."""
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
    ccache: Path | None = None
    """ccache's directory: what one build puts there is taken by every other that is given it. None: none."""
    seen_as: tuple[Path, Path] | None = None
    """A directory, and where it is seen inside, with all that lies below it; None: everything where it is."""
    processes: int | None = None
    """At once, fewer than builds may have: counted are all of their user's, which root's builds share."""

    def command(self, words: Iterable[str], environment: Mapping[str, str]) -> list[str]:
        """The command that runs these words confined, in an environment of its own.

        The directories that it may write belong to the build's user from now on.
        """
        if self.ccache is not None:
            self.ccache.mkdir(parents=True, exist_ok=True)
        self._give_to_tenant()
        passed = {name: value for name, value in environment.items() if name in _PASSED_VARIABLES}
        passed |= {"HOME": _HOME, "TMPDIR": _HOME}
        passed |= {"CCACHE_DIR": str(self.seen(self.ccache))} if self.ccache is not None else {}
        settings = [word for name, value in passed.items() for word in ("--setenv", name, value)]
        way = _way(shutil.which("bwrap"))
        assert way is not None, "whoever confines has asked before"
        return [
            *way.before,
            *_system(),
            *self._places(),
            "--clearenv",
            *settings,
            "--chdir",
            "/",
            *(("--ro-bind", str(confine_program()), _CONFINE) if way.is_landlocked else ()),
            "--",
            *way.after,
            *(words_of(_CONFINE, self._writable_inside()) if way.is_landlocked else ()),
            *(("prlimit", f"--nproc={self.processes}", "--") if self.processes else ()),
            *words,
        ]

    def _writable_inside(self) -> Iterator[str]:
        yield from (_HOME, "/dev")
        yield from (str(self.seen(path).resolve()) for path in self._all_writable)

    @property
    def _all_writable(self) -> tuple[Path, ...]:
        return self.writable if self.ccache is None else (*self.writable, self.ccache)

    def _give_to_tenant(self) -> None:
        """What root's builds may write becomes theirs: directories and, where they are new, all in them."""
        way = _way(shutil.which("bwrap"))
        if way is None or not way.is_tenant:
            return
        for directory in self._all_writable:
            is_new = directory.stat().st_uid != TENANT
            for path in (directory, *(directory.rglob("*") if is_new else directory.iterdir())):
                if path.lstat().st_uid != TENANT:
                    os.chown(path, TENANT, TENANT, follow_symlinks=False)
        for directory in self.readable:
            if directory.is_relative_to(cache_directory()) and directory.is_dir():
                for path in (directory, *directory.iterdir()):
                    mode = path.lstat().st_mode
                    readable = mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6  # as its owner may
                    if readable != mode and not stat.S_ISLNK(mode):
                        path.chmod(stat.S_IMODE(readable))

    def seen(self, path: Path) -> Path:
        """Where it is seen inside."""
        if self.seen_as is None or not path.is_relative_to(self.seen_as[0]):
            return path
        return self.seen_as[1] / path.relative_to(self.seen_as[0])

    def _places(self) -> Iterator[str]:
        yield from ("--perms", "1777", "--size", str(_IN_MEMORY), "--tmpfs", _HOME)
        yield from ("--perms", "1777", "--size", str(_IN_MEMORY), "--tmpfs", "/dev/shm")
        made: set[Path] = set()
        for option, path in chain(
            (("--ro-bind-try", path) for path in (*_toolchains(self.programs), *self.readable)),
            (("--bind", path) for path in self._all_writable),
        ):
            for name in _names(path, self.seen(path)):
                # Else bubblewrap makes them as they are outside, where root's home is for root alone.
                above = [
                    place for place in reversed(name.parents) if place not in made and not _is_there(place)
                ]
                made.update(above)
                for place in above:
                    yield from ("--perms", "0755", "--dir", str(place))
                yield from (option, str(path.resolve()), str(name))


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
    return _refusal(tuple(Sandbox((), (trees,), {}, ccache_directory()).command(["true"], os.environ)))


@lru_cache
def _refusal(command: tuple[str, ...]) -> str:
    """What bubblewrap says of this command in place of running it; empty where it runs."""
    finished = _run(command)
    if finished.returncode == 0:
        return ""
    reason = refusal_in(finished.stderr) or f"exit status {finished.returncode}"
    return f"bubblewrap cannot give a build its directories: {reason}"


def forget() -> None:
    """Find out anew how bubblewrap separates here: another user asks, or another cache is in use."""
    _tried.cache_clear()
    _refusal.cache_clear()
    _searched.cache_clear()
    system_calls.forget()


def refusal_in(output: str) -> str:
    """Why bubblewrap ran nothing, by what a confined command printed; empty where it ran."""
    first = output.lstrip().partition("\n")[0]
    return first.removeprefix("bwrap: ") if first.startswith("bwrap: ") else ""


def weakness() -> str:
    """What the sandbox of this host lacks, in one sentence; empty where it is whole, or there is none."""
    if problem() or system_calls.filter_file():
        return ""
    return "libseccomp is not installed, so that builds may make every system call"


def ccache_directory() -> Path:
    """ccache's, of confined builds of the user's own sources; nobody else's build is given it."""
    return cache_directory() / "ccache"


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


@dataclass(frozen=True)
class _Way:
    """How bubblewrap separates here."""

    before: tuple[str, ...]
    """The program and its options, before the places."""
    after: tuple[str, ...]
    """What it starts, which starts the command."""
    is_tenant: bool
    """Whether builds are another user's."""
    is_landlocked: bool = False
    """Whether the kernel keeps what is started to the places that it may write, by Landlock too."""


def _way(program: str | None) -> _Way | None:
    """None where it cannot."""
    return _tried(program, str(system_calls.filter_file() or "")) if program else None


@lru_cache
def _tried(program: str, filter_file: str) -> _Way | None:
    opening = (*_AS_PARENT, filter_file)
    calls = ("--seccomp", "9") if filter_file else ()
    limits = ("prlimit", *(f"--{name}={_limit(*limit)}" for name, limit in _LIMITS.items()), "--")
    own = _Way((*opening, program, *_USERS_OWN, *_ALONE, *calls), limits, is_tenant=False)
    # root's bubblewrap becomes another user last of all: the filter is for what that user starts.
    tenant = _Way((*opening, program, *_ALONE, *_ROOTS, *calls), (*limits, *_BECOME_TENANT), is_tenant=True)
    way = tenant if os.geteuid() == 0 else own
    within = replace(way, is_landlocked=True)
    if confine_program() and _works(within):
        return within
    return way if _works(way) else None


def _limit(kind: int, most: int) -> int:
    """As much, or what this process may set."""
    _, hard = resource.getrlimit(kind)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _works(way: _Way) -> bool:
    places: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    if way.is_landlocked:
        places, within = ("--ro-bind", str(confine_program()), _CONFINE), words_of(_CONFINE, (_HOME,))
    return _run((*way.before, *_system(), *places, "--", *way.after, *within, "true")).returncode == 0


def _run(command: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """Run what is tried; again, for a while, where a build of another ktrial leaves no process to be started.

    That says nothing about what the system lets bubblewrap do. Raises ProcessesSpent.
    """
    until = time.monotonic() + MOST_WAIT
    while True:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
        if finished.returncode == 0 or _NO_PROCESS not in finished.stderr:
            return finished
        if time.monotonic() > until:
            raise ProcessesSpent(user=TENANT if os.geteuid() == 0 else os.geteuid())
        time.sleep(_BETWEEN_TRIES)


@lru_cache
def _system() -> tuple[str, ...]:
    """The system's programs and libraries, as they lie."""
    words = ["--perms", "0755", "--dir", "/etc"]
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114 - of a text
            words += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        else:
            words += ["--ro-bind-try", path, path]
    for path in _SETTINGS:
        words += ["--ro-bind-try", path, path]
    return (*words, "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")


def _names(path: Path, seen: Path) -> Iterator[Path]:
    """The names that a place has inside: its real one, and its own; or those of where it is to be seen.

    bubblewrap 0.12 mounts nothing on a symbolic link. One that leads through a directory of the system is
    there already, and needs only what it leads to.
    """
    real = seen.resolve()
    yield real
    if real != seen and not (seen == path and _is_of_the_system(path)):
        yield seen


def _is_there(place: Path) -> bool:
    """Whether the system's directories bring it, or /tmp."""
    return _is_of_the_system(place) or str(place) in {"/", "/etc", "/dev", "/proc", _HOME}


@lru_cache(maxsize=1024)
def _is_of_the_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)


@lru_cache
def _searched(path: str) -> tuple[Path, ...]:
    """The directories of PATH that are not the system's: looked at once, as each build asks several times."""
    directories = map(Path, path.split(os.pathsep))
    return tuple(
        directory
        for directory in directories
        if os.access(directory, os.R_OK | os.X_OK)
        and directory.is_absolute()
        and not (_is_of_the_system(directory) and _is_of_the_system(directory.resolve()))
    )


def _toolchains(programs: Mapping[str, str]) -> Iterator[Path]:
    """Directories of PATH that are not the system's, and of compilers that a variable names by a path."""
    yield from _searched(os.environ.get("PATH", ""))
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
