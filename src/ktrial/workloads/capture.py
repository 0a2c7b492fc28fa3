"""A command of the user's, run once here and watched, becomes a workload with all that it needs in a guest.

`capture_command` runs it under strace (`strace.py`), collects the files that it met (`Collector`), and notes
what a guest will not have (`notes`).
"""

import contextlib
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ktrial.file_digests import digest_of_file, sealed, unsealed
from ktrial.format import number_format
from ktrial.installation import cache_directory
from ktrial.model.base import Model, digest
from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.text_lines import lines_of
from ktrial.workloads.command import ENVIRONMENT, WORKLOAD
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.host_files import program_path, size_of
from ktrial.workloads.later_start import problem_of_start
from ktrial.workloads.strace import Accesses, trace

DEFAULT_LIMIT = 600.0
USUAL_MEMORY_MIB = 512
_MEMORY_STEP_MIB = 256
_BESIDE_FILES_MIB = 256
"""What a kernel and a program need beside the files, which lie in memory twice while the guest boots."""


@dataclass(frozen=True)
class CaptureOptions:
    """What may be said about a capture."""

    name: str = ""
    variables: tuple[str, ...] = ()
    """Further variables of the environment that it has, here and in a guest."""
    include: tuple[str, ...] = ()
    """Paths that are carried, secrets or not."""
    limit: float = DEFAULT_LIMIT
    after: str = ""
    """What it prints where counting begins."""
    skip_start: str = ""
    """The system call, signal or output at which counting begins."""


class Note(Model):
    """Something that is otherwise in a guest."""

    text: str
    advice: str = ""


class Captured(Model):
    """A command that was run once, and what it needs."""

    use: WorkloadUse
    notes: tuple[Note, ...]
    seconds: float
    """That it took here, under strace."""
    files: int
    """That a guest gets, with those that programs among them need."""
    size: int
    """Of those, in bytes."""
    changed: tuple[str, ...] = ()
    """Files that the run itself has changed."""

    @property
    def memory_mib(self) -> int:
        """That a guest needs to hold them."""
        needed = 2 * (self.size >> 20) + _BESIDE_FILES_MIB
        steps = -(-needed // _MEMORY_STEP_MIB)
        return max(USUAL_MEMORY_MIB, steps * _MEMORY_STEP_MIB)


def problem_of(options: CaptureOptions, format: str | None = None) -> str:
    """What of the options cannot be meant, before the command runs; empty where all can."""
    metrics = (MetricRule(format=format),) if format else ()
    start = Command(argv=("command",), metrics=metrics, after=options.after, skip_start=options.skip_start)
    return problem_of_start(start)


def capture_command(words: tuple[str, ...], directory: Path, options: CaptureOptions) -> Captured:
    """Run the command once in the directory, and collect what it needs.

    Raises WorkloadError: it failed here, or what it needs cannot be carried.
    """
    name = options.name or name_of(words[0])
    program = program_path(name, words[0])
    environment = environment_of(options.variables)
    traced = trace(name, (program, *words[1:]), directory, environment, options.limit)
    home = environment["HOME"]
    included = tuple(str(Path(path).absolute()) for path in options.include)
    collected = Collector(traced.accesses, traced.began, str(directory), home, included).collected()
    command = Command(
        argv=(program, *words[1:]),
        files=tuple(needed for needed in collected.files if needed != program),
        directories=tuple(collected.directories),
        keep_links=True,
        directory=str(directory),
        environment=_needed(
            environment, options.variables, (*traced.accesses.found, *traced.accesses.executed)
        ),
        after=options.after,
        skip_start=options.skip_start,
    )
    use = WorkloadUse(name=name, command=command)
    remarks = tuple(notes(traced.accesses, collected, traced.seconds))
    use = use.model_copy(
        update={"command": command.model_copy(update={"notes": tuple(note.text for note in remarks)})}
    )
    carried = [file for file in WORKLOAD.files(use) if not file.directory and not file.link]
    return Captured(
        use=use,
        notes=remarks,
        seconds=traced.seconds,
        files=len(carried),
        size=sum(size_of(str(carried_file.host)) for carried_file in carried),
        changed=tuple(collected.changed),
    )


def name_of(program: str, taken: frozenset[str] = frozenset()) -> str:
    """`bench` of `./bench.sh`; a workload of ktrial's own of this name is another."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(program).stem).strip("-._")[:60] or "command"
    return f"my-{stem}" if stem in taken else stem


def environment_of(variables: tuple[str, ...] = ()) -> dict[str, str]:
    """What a command has in its environment while it is watched: a guest's, with PATH and HOME from here."""
    host = {name: os.environ[name] for name in ("PATH", "HOME", *variables) if name in os.environ}
    return ENVIRONMENT | host


def _needed(environment: dict[str, str], variables: tuple[str, ...], met: tuple[str, ...]) -> dict[str, str]:
    """Of PATH and HOME only what the command used: no one else need know them."""
    usual = ENVIRONMENT["PATH"].split(":")
    places = {str(Path(path).parent) for path in met}
    elsewhere = [
        directory
        for directory in environment["PATH"].split(":")
        if directory in places and directory not in usual
    ]
    needed = {"PATH": ":".join((*elsewhere, ENVIRONMENT["PATH"]))} if elsewhere else {}
    if any(below(path_met, environment["HOME"]) for path_met in met):
        needed["HOME"] = environment["HOME"]
    return needed | {name: environment[name] for name in variables if name in environment}


def with_format(captured: Captured, format: str | None) -> Captured:
    """Its metrics are those of the format that it prints; None: it stays as it is."""
    if not format or captured.use.command is None:
        return captured
    command = captured.use.command.model_copy(update={"metrics": (MetricRule(format=format),)})
    use = captured.use.model_copy(update={"command": command})
    return captured.model_copy(update={"use": use})


def with_start(captured: Captured, after: str, skip_start: str) -> Captured:
    """Its counting begins there; of two empty texts it stays as it is."""
    if not (after or skip_start) or captured.use.command is None:
        return captured
    start = {"after": after, "skip_start": skip_start}
    use = captured.use.model_copy(update={"command": captured.use.command.model_copy(update=start)})
    return captured.model_copy(update={"use": use})


def table(use: WorkloadUse) -> dict[str, Any]:
    """The use as a workload's file, and a study's, has it."""
    command = use.command or Command(argv=())
    lists = {"files": command.files, "directories": command.directories}
    return {
        "name": use.name,
        "command": list(command.argv),
        "directory": command.directory,
        **({"environment": command.environment} if command.environment else {}),
        "keep_links": command.keep_links,
        **{key: list(paths) for key, paths in lists.items() if paths},
        **({"metrics": command.metrics[0].format} if command.metrics else {}),
        **({"after": command.after} if command.after else {}),
        **({"skip_start": command.skip_start} if command.skip_start else {}),
        **({"notes": list(command.notes)} if command.notes else {}),
    }


def summary(captured: Captured) -> str:
    """`61 files, 35.2 MiB; it took 0.12 s here`."""
    files = number_format.counted(captured.files, "file")
    size, took = number_format.size(captured.size), number_format.duration(captured.seconds)
    return f"{files}, {size}; it took {took} here"


# --- What the command needs: from what it did to files and directories.

KERNELS = ("/dev", "/proc", "/sys")
"""The guest's kernel has its own."""
_SYSTEMS = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/run", "/sbin", "/usr", "/var")
_SECRET_BELOW_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".mozilla", ".config/gcloud"),
    *(".config/gh", ".config/google-chrome", ".config/chromium", ".local/share/keyrings", ".docker"),
    *(".netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".npmrc", ".cargo/credentials.toml"),
)
_SECRET = ("/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d")
_SECRET_NAMES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".env")
_SHALLOW = 3
"""Parts of `/usr/share`."""
_MOST_UNREAD = 32 << 20
"""Bytes of files that a directory holds, whose names a command read, and not the files."""
_PLAIN_MODE = 0o755
_AT_ONCE = 500
"""Names on a command line."""


@dataclass
class Collected:
    """What is to be carried, and what is not."""

    files: list[str] = field(default_factory=list)
    """Files and links; directories of which all is needed."""
    directories: list[str] = field(default_factory=list)
    """Those that must be there, whatever is in them here."""
    secrets: list[str] = field(default_factory=list)
    """Found by the command, and refused."""
    own: list[str] = field(default_factory=list)
    """What this process is writing: they would change between trials."""
    unreadable: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    """Names that are not UTF-8."""
    partial: list[str] = field(default_factory=list)
    """Directories whose names were read, and that hold too much for a guest."""
    made: list[str] = field(default_factory=list)
    """Files that the command made here, and left."""
    changed: list[str] = field(default_factory=list)
    """Files that were there before, and that it changed."""


class Collector:
    """Decides for each path that the command met."""

    def __init__(
        self, accesses: Accesses, began: float, cwd: str, home: str, include: tuple[str, ...] = ()
    ) -> None:
        self._accesses = accesses
        self._began = began
        self._cwd = cwd
        self._home = home
        self._include = include
        self._files: dict[str, None] = {}
        self._directories: dict[str, None] = {}
        self._own = written_by_this_process()
        self._result = Collected()

    def collected(self) -> Collected:
        """What is needed."""
        met = self._accesses
        for path in (*met.executed, *met.found, *self._include):
            self._add(path)
        for path in (
            *met.written,
            *(str(Path(written).parent) for written in met.written),
            *met.passed,
            self._cwd,
        ):
            self._add(path, only_directory=path in met.written)
        for path in met.listed:
            self._add_entries(path)
        carried = self._files.keys() | self._directories.keys()
        self._result.partial = [
            place for place in self._result.partial if not carried.issuperset(_entries(place))
        ]
        for path in met.written:
            if below(path, *KERNELS) or not Path(path).is_file():
                continue
            if path in self._young:
                self._result.made.append(path)
            elif Path(path).stat().st_mtime > self._began:
                self._result.changed.append(path)
        self._compact()
        return self._result

    @cached_property
    def _young(self) -> set[str]:
        """Of all paths that were met, and those in directories that were read: made since it began."""
        met = self._accesses
        entries = (entry for place in self._listed for entry in _entries(place))
        return younger(dict.fromkeys((*met.found, *met.written, *entries)), self._began)

    @cached_property
    def _listed(self) -> list[str]:
        return [directory for directory in self._accesses.listed if not is_systems(directory)]

    def _add(self, path: str, *, only_directory: bool = False) -> None:
        if below(path, *KERNELS) or path in self._files or path in self._young:
            return
        if path in self._own:
            _once(self._result.own, path)
            return
        if is_secret(path, self._home) and not below(path, *self._include):
            _once(self._result.secrets, path)
            return
        try:
            path.encode()
            mode = os.stat(path).st_mode  # noqa: PTH116
        except UnicodeEncodeError:
            _once(self._result.unnamed, os.fsencode(path).decode(errors="backslashreplace"))
        except OSError:
            self._add_link(path)
        else:
            if stat.S_ISDIR(mode):
                self._add_link(path)
                self._directories[path] = None
            elif stat.S_ISREG(mode) and not only_directory:
                if os.access(path, os.R_OK):
                    self._files[path] = None
                else:
                    _once(self._result.unreadable, path)

    def _add_link(self, path: str) -> None:
        """A link that leads nowhere, or to a directory, is carried as it is; what is gone is not."""
        if Path(path).is_symlink():
            self._files[path] = None

    def _add_entries(self, place: str) -> None:
        """What a directory holds whose names were read; not all of /usr, of which it needs what it opened."""
        if place in self._young or not Path(place).is_dir():
            return
        if is_systems(place):
            if is_listed_for_its_names(place):
                self._result.partial.append(place)
            return
        if is_secret(place, self._home) and not below(place, *self._include):
            return
        self._directories[place] = None
        entries = _entries(place)
        unread = sum(size_of(path) for path in entries if path not in self._files and not Path(path).is_dir())
        if unread > _MOST_UNREAD:
            self._result.partial.append(place)
            return
        for path in entries:
            self._add(path)

    def _compact(self) -> None:
        """One name for a directory of which everything is needed; none for one that comes by itself."""
        listed = [place for place in self._listed if place in self._directories]
        is_whole = Whole(self._files, self._directories, listed)
        tops = [folder for folder in listed if is_whole(folder) and not is_whole(str(Path(folder).parent))]
        files = [file for file in self._files if not below(file, *tops)]
        self._result.files = sorted(dict.fromkeys((*tops, *files)))
        around = {str(above) for path in self._result.files for above in Path(path).parents}
        self._result.directories = sorted(
            directory
            for directory in self._directories
            if not below(directory, *tops) and (directory not in around or _mode(directory) != _PLAIN_MODE)
        )


class Whole:
    """Whether everything in a directory is needed."""

    def __init__(self, files: Iterable[str], directories: Iterable[str], listed: Iterable[str]) -> None:
        self._needed = {*files, *directories}
        self._listed = set(listed)
        self._answers: dict[str, bool] = {}

    def __call__(self, place: str) -> bool:
        """For a directory whose names were read; others are never needed as a whole."""
        if place not in self._answers:
            self._answers[place] = place in self._listed and all(map(self._is_needed, _entries(place)))
        return self._answers[place]

    def _is_needed(self, path: str) -> bool:
        is_directory = Path(path).is_dir() and not Path(path).is_symlink()
        return self(path) if is_directory else path in self._needed


def younger(paths: Iterable[str], moment: float) -> set[str]:
    """Those that were made after the moment (seconds since 1970), where the file system tells it."""
    existing = [path for path in paths if "\n" not in path and os.path.lexists(path)]
    young = set()
    for start in range(0, len(existing), _AT_ONCE):
        some = existing[start : start + _AT_ONCE]
        printed = subprocess.run(
            ["stat", "--printf=%.3W\n", "--", *some], capture_output=True, check=False
        ).stdout
        births = lines_of(printed.decode())
        if len(births) == len(some):
            young |= {path for path, birth in zip(some, births, strict=True) if _number(birth) > moment}
    return young


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _entries(place: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(place))
    except OSError:
        return []


def _mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def _once(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def below(path: str, *places: str) -> bool:
    """Whether the path is one of the places, or lies in one."""
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def is_systems(path: str) -> bool:
    """Whether the directory is the system's: far more is in it than one command needs."""
    return path == "/" or below(path, *KERNELS, *_SYSTEMS)


def is_listed_for_its_names(path: str) -> bool:
    """Whether a program that lists this directory of the system's has its entries for data, as `find /etc`.

    Interpreters list the directories of their modules, deep in /usr and /lib, and read what they need there.
    """
    deep = below(path, "/usr", "/lib", "/lib32", "/lib64") and len(Path(path).parts) > _SHALLOW
    return not deep and not below(path, *KERNELS)


def is_secret(path: str, home: str) -> bool:
    """Whether what usually lies there are keys and passwords."""
    below_home = tuple(f"{home.rstrip('/')}/{name}" for name in _SECRET_BELOW_HOME)
    return below(path, *below_home, *_SECRET) or Path(path).name in _SECRET_NAMES


def written_by_this_process() -> frozenset[str]:
    """Files that are open here for writing: a log, a store. They change while trials run."""
    places = set()
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError, ValueError):
            flags = int(Path(f"/proc/self/fdinfo/{handle.name}").read_text().split("flags:")[1].split()[0], 8)
            if flags & (os.O_WRONLY | os.O_RDWR):
                places.add(str(handle.readlink()))
    return frozenset(places)


# --- What a guest will not have.

_DISPLAYS = ("/tmp/.X11-unix", "/run/user")
_LOOPBACK = ("127.", "::1", "0.0.0.0", "::ffff:127.")
_DNS = 53
_SLOW = 10.0
"""Seconds here, at which the guest's minutes are worth a word: QEMU interprets, and runs it several times."""
_PLAIN_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr", "console"),
    *("fd", "pts", "shm"),
)


def notes(accesses: Accesses, collected: Collected, seconds: float) -> Iterator[Note]:
    """What the command will miss in a guest, and why: said before anything boots."""
    server = "start the server in the command: sh -c 'server & …; client; stop the server'"
    for path in accesses.sockets:
        if path in accesses.bound:
            continue
        if below(path, *_DISPLAYS):
            text = f"it talks to a display ({path}); a guest has none"
            yield Note(text=text, advice="run it without its GUI")
        else:
            text = f"it talks to a daemon by the socket {path}; nobody listens there in a guest"
            yield Note(text=text, advice=server)
    outside = [(host, port) for host, port in accesses.addresses if not _is_loopback(host) or port == _DNS]
    if outside:
        places = _some(f"{host} port {port}" for host, port in outside)
        yield Note(
            text=f"it talks to other machines ({places}); a guest has no network but its own loopback",
            advice="have what it fetches in files here, or start the server in the command",
        )
    for host, port in accesses.addresses:
        if _is_loopback(host) and port not in {*accesses.bound, _DNS, 0}:
            text = f"it talks to a server of this machine ({host} port {port}); a guest does not run it"
            yield Note(text=text, advice=server)
    if devices := [path for path in accesses.found if _is_special_device(path)]:
        yield Note(text=f"it uses devices ({_some(devices)}) that a guest does not have, such as a GPU")
    if raised := [path for path in accesses.executed if _is_setuid(path)]:
        yield Note(
            text=f"it runs programs that change the user ({_some(raised)}); in a guest all runs as root",
            advice="leave sudo and su out of the command",
        )
    if accesses.special:
        yield Note(text=f"it changes its view of the file system ({_some(accesses.special)}), not as here")
    if collected.secrets:
        yield Note(
            text=f"it reads files that usually hold secrets, which are left out: {_some(collected.secrets)}",
            advice="ktrial workload capture --include PATH includes one, in caches and in the guest's memory",
        )
    if collected.own:
        yield Note(text=f"files that ktrial itself writes are left out: {_some(collected.own)}")
    if collected.unreadable:
        yield Note(text=f"it looks at files that cannot be read here: {_some(collected.unreadable)}")
    if collected.unnamed:
        yield Note(text=f"names that are not UTF-8 are left out: {_some(collected.unnamed)}")
    if collected.partial:
        yield Note(
            text=f"it lists {_some(collected.partial)}: a guest has only what it opened there",
            advice="if the others matter: ktrial workload capture --include DIRECTORY has them in a workload",
        )
    if collected.changed:
        yield Note(
            text=f"it changed files that were there: {_some(collected.changed)}; a guest gets them as they "
            "are now, after the run",
            advice="a command is run several times in a row: let it make what it needs at its start",
        )
    if collected.made:
        yield Note(
            text=f"it made {number_format.counted(len(collected.made), 'file')} here "
            f"({_some(collected.made)}); in a guest each run finds what the run before it left",
            advice="if it has to do all its work each time, let it remove them first",
        )
    if seconds > _SLOW:
        yield Note(
            text=(
                f"it took {number_format.duration(seconds)} here, under strace; in a guest each of its "
                "runs takes some 20 times as long"
            ),
            advice="measure a smaller piece of work, or set repeats = 1",
        )


def _is_loopback(host: str) -> bool:
    return not host or host.startswith(_LOOPBACK)


def _is_special_device(path: str) -> bool:
    """Whether it is a device that a guest of ktrial's lacks: a GPU, a disk, /dev/kvm."""
    parts = Path(path).parts
    return (
        below(path, "/dev") and len(parts) > 2 and parts[2] not in _PLAIN_DEVICES and not Path(path).is_dir()
    )


def _is_setuid(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID))  # noqa: PTH116
    except OSError:
        return False


def _some(names: Iterable[str]) -> str:
    listed: Sequence[str] = list(names)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return f"{', '.join(listed[:3])}{more}"


# --- Captures that are kept: the same command in the same place, with the same files, is not run again here.

_FORMAT = 1


class _Kept(Model):
    captured: Captured
    content: str
    """The digest of all that is carried, but for what the command itself changed."""


def find_capture(words: tuple[str, ...], directory: Path) -> Captured | None:
    """What was captured before; None where nothing was, or something of it is not as it was."""
    try:
        data = unsealed(_place(words, directory).read_bytes())
        saved = _Kept.model_validate_json(data) if data else None
    except (OSError, ValidationError):
        return None
    if saved is None or saved.content != _content(saved.captured):
        return None
    return saved.captured


def keep_capture(words: tuple[str, ...], directory: Path, captured: Captured) -> None:
    """Keep it for later commands; without it they capture anew, and nothing else depends on it."""
    content = _content(captured)
    place = _place(words, directory)
    if content:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            new = place.with_suffix(f".{os.getpid()}")
            new.write_bytes(sealed(_Kept(captured=captured, content=content).model_dump_json().encode()))
            new.replace(place)


def _place(words: tuple[str, ...], directory: Path) -> Path:
    variables = {name: os.environ.get(name, "") for name in ("PATH", "HOME")}
    return cache_directory() / "captures" / f"{digest([_FORMAT, words, str(directory), variables])[:32]}.json"


def _content(captured: Captured) -> str:
    """Empty where it cannot be told: then it is not kept."""
    changed = set(captured.changed)
    try:
        carried = WORKLOAD.files(captured.use)
        return digest(
            [
                [
                    file.guest,
                    file.mode,
                    file.link,
                    "" if file.directory or file.link else digest_of_file(file.host),
                ]
                for file in carried
                if str(file.host) not in changed and file.guest not in changed
            ]
        )
    except (OSError, WorkloadError):
        return ""
