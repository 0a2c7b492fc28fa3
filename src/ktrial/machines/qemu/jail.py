"""What QEMU may do on this host: little, since kernels and programs of strangers run in it.

A guest that finds a way out of QEMU has QEMU's rights. So QEMU starts no other program, changes no user and
no limits (its own filter of system calls), gains no rights by what it runs (`no_new_privs`), writes no file
longer than a limit, and none but what it was handed (Landlock, by the program `confine`). Of ktrial's
environment it has named variables only. root's QEMUs are another user's: a number of their own, which owns
nothing, without capabilities. What they read and write they have as open files.

A host may lack a part of it. Then ktrial goes on without that part, and says so once.
"""

import fcntl
import os
import resource
import shutil
import stat
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from ktrial.machines.guest_programs import coalesce
from ktrial.target.confinement import confine_program, words_of
from ktrial.target.errors import GuestProgramsMissing
from ktrial.text_lines import lines_of

TENANT = 61_844
"""The user and group of root's QEMUs: of the numbers that systemd gives to services as they start (61184 to
65519), so that no user has it; and not that of root's builds."""
MORE_MEMORY = 16 << 30
"""Bytes of address space that QEMU may have beside the guest's memory: its translated code is 1 GiB of it."""
SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
_PASSED_VARIABLES = frozenset(
    {
        *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ"),
        *("GLIBC_TUNABLES", "QEMU_MODULE_DIR"),
    }
)
"""Each by its name: ktrial's own variables may hold a store's password."""
_DIES_WITH_KTRIAL = ("--pdeathsig", "KILL")
_WITHOUT_CAPABILITIES = ("--bounding-set=-all", "--inh-caps=-all")
_CAP_KILL = 1 << 5
_SOONER_THAN_KTRIAL = 500
"""Where memory ends, the kernel is to end a QEMU: ktrial, which is larger, would be silent about it."""
KVM_DEVICE = Path("/dev/kvm")
_NOTHING = (
    *("-nodefaults", "-no-user-config", "-display", "none", "-machine", "none"),
    *("-accel", "tcg", "-accel", "kvm", "-qmp", "stdio"),
)
_TALK = '{"execute": "qmp_capabilities"}{"execute": "quit"}'
_PATIENCE = 60.0
_TRIED_BYTES = 1 << 30
_IGNORED = "cannot be preloaded"
_DEVICES = ("/dev",)
"""/dev/kvm and /dev/null are opened to be written, and its rights are those of their files all the same."""
_OF_FILES = frozenset({"-kernel", "-plugin", "-acpitable"})
"""QEMU's options that name files which are there already."""
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Jail:
    """How a QEMU is confined here."""

    before: tuple[str, ...]
    """The programs that start it, with their options."""
    arguments: tuple[str, ...] = ()
    """QEMU's own."""
    is_tenant: bool = False
    """Whether it is another user's: it can open what it is handed, and what everybody may read."""
    is_limited: bool = False
    """Whether its memory and what it writes have limits."""
    lacks: tuple[str, ...] = ()
    """What this host cannot give, a sentence each; nothing where the jail is whole."""

    def start(self, most_written: int, memory: int) -> tuple[str, ...]:
        """The words before the program of a QEMU that writes no file of more than so many bytes.

        `memory`: the guest's, in bytes.
        """
        if not self.is_limited:
            return self.before
        bounds = {
            "fsize": (resource.RLIMIT_FSIZE, most_written),
            "as": (resource.RLIMIT_AS, memory + MORE_MEMORY),
            "core": (resource.RLIMIT_CORE, 0),
        }
        limits = (f"--{name}={_bound(*bound)}" for name, bound in bounds.items())
        return (*self.before, "prlimit", *limits, "--")


def jail_of(program: Path, *, kvm: bool = False) -> Jail:
    """The jail of this QEMU on this host; what it lacks is told, once. `kvm`: it opens /dev/kvm."""
    jail = examined(program, kvm=kvm)
    _tell(jail.lacks)
    return jail


def examined(program: Path, *, kvm: bool = False) -> Jail:
    """As `jail_of`, and nothing is told."""
    return _tried(program, os.geteuid(), kvm)


def forget() -> None:
    """Find out anew what this host can give."""
    _tried.cache_clear()
    _tell.cache_clear()


def environment(preload: Iterable[str] = ()) -> dict[str, str]:
    """Of ours what QEMU may know, with these objects before what the user preloads."""
    passed = {name: value for name, value in os.environ.items() if name in _PASSED_VARIABLES}
    preloaded = [*preload, *filter(None, [passed.get("LD_PRELOAD")])]
    return passed | ({"LD_PRELOAD": ":".join(preloaded)} if preloaded else {})


# What a tenant cannot open by its name it has as an open file, in a place that shows no more than that file.


@dataclass(frozen=True)
class Handed:
    """Files that QEMU has by a name of its own."""

    names: Mapping[Path, str]
    """The file → by what QEMU opens it."""
    descriptors: tuple[int, ...]
    """To be inherited."""

    def name(self, path: Path) -> str:
        """By what QEMU opens this file."""
        return self.names.get(path, str(path))

    def arguments(self, words: Iterable[str]) -> Iterator[str]:
        """QEMU's arguments, which name the files so."""
        option = ""
        for word in words:
            yield self._renamed(word) if option in _OF_FILES else word
            option = word

    def _renamed(self, word: str) -> str:
        for path in sorted(self.names, key=lambda path: -len(str(path))):
            for written in (str(path).replace(",", ",,"), str(path)):  # QEMU takes a doubled comma for one
                word = word.replace(written, self.names[path])
        return word


@contextmanager
def handed(jail: Jail, files: Iterable[Path]) -> Iterator[Handed]:
    """These files, open until the end of the block where QEMU is a tenant. Raises OSError."""
    with ExitStack() as resources:
        names: dict[Path, str] = {}
        for path in dict.fromkeys(files if jail.is_tenant else ()):
            descriptor = _readable_by_all(path)
            resources.callback(os.close, descriptor)
            names[path] = f"/proc/self/fd/{descriptor}"
        yield Handed(names, tuple(int(name.rpartition("/")[2]) for name in names.values()))


def sealed_copy(name: str, copy: Callable[[int], object]) -> int:
    """A file in memory that everybody may open, to write as well, and nobody can change: `copy` fills it.

    QEMU opens a guest's memory for writing even where it maps it privately.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        copy(descriptor)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _bound(kind: int, most: int) -> int:
    """As much, or what this process may set."""
    _, hard = resource.getrlimit(kind)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _readable_by_all(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if os.fstat(descriptor).st_mode & stat.S_IROTH:
        return descriptor
    try:
        return sealed_copy(path.name, lambda copy: _copy(descriptor, copy))
    finally:
        os.close(descriptor)


def _copy(source: int, target: int) -> None:
    left = os.fstat(source).st_size
    while left and (sent := os.sendfile(target, source, None, left)):
        left -= sent


# What this host gives: tried with this QEMU, in an empty machine.


@lru_cache
def _tell(lacks: tuple[str, ...]) -> None:
    for text in lacks:
        warnings.warn(f"QEMU is not wholly confined here: {text}", stacklevel=2)


@lru_cache
def _tried(program: Path, user: int, kvm: bool) -> Jail:
    parts = list(_parts(user, kvm))
    whole = _together([part for part in parts if not part.problem])
    if not any(part.problem for part in parts) and not _refusal(program, whole):
        return whole
    if _refusal(program, _together([])):
        return whole  # what it is not able to do has nothing to do with the jail: its start will say what
    taken: list[_Part] = []
    lacks = []
    for part in parts:
        problem = part.problem or _refusal(program, _together([*taken, part]))
        if problem:
            lacks.append(f"{part.without} ({problem})")
        else:
            taken.append(part)
    return replace(_together(taken), lacks=tuple(lacks))


@dataclass(frozen=True)
class _Part:
    """A part of the jail."""

    without: str
    """What it means where this host cannot give it."""
    user: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    is_limited: bool = False
    confined: bool = False
    problem: str = ""
    """Why it need not be tried; empty where it has to be."""


def _parts(user: int, kvm: bool) -> Iterator[_Part]:
    no_prlimit = "" if shutil.which("prlimit") else "prlimit is not installed"
    unlimited = "its memory and what it writes have no limit"
    yield _Part(unlimited, is_limited=True, problem=no_prlimit)
    yield _Part("what it starts may have more rights", rights=("--no-new-privs",))
    no_confine = "" if confine_program() else "ktrial's program confine has not been built"
    yield _Part("it can write what its user can", confined=True, problem=no_confine)
    if user == 0:
        yield _tenants(kvm)
    yield _Part("all system calls are open to it", arguments=SANDBOX)


def _tenants(kvm: bool) -> _Part:
    without = "it runs as root"
    groups: tuple[str, ...] = ("--clear-groups",)
    if not _may_end_others():
        return _Part(without, problem="ktrial could not end another user's process: it lacks CAP_KILL")
    if kvm and KVM_DEVICE.exists():
        status = KVM_DEVICE.stat()
        if status.st_mode & stat.S_IRGRP and status.st_mode & stat.S_IWGRP and status.st_gid:
            groups = (f"--groups={status.st_gid}",)
        elif not (status.st_mode & stat.S_IROTH and status.st_mode & stat.S_IWOTH):
            return _Part(without, problem=f"{KVM_DEVICE} is for root alone; a group of its own would do")
    become = (f"--reuid={TENANT}", f"--regid={TENANT}", *groups, *_WITHOUT_CAPABILITIES)
    return _Part(without, user=become)


def _may_end_others() -> bool:
    lines = lines_of(Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return bool(int(facts.get("CapEff", "0"), 16) & _CAP_KILL)


def _together(parts: Sequence[_Part]) -> Jail:
    user = tuple(word for part in parts for word in part.user)
    rights = tuple(word for part in parts for word in part.rights)
    # The kernel forgets the parent's signal where a process changes its user: that is asked for afterwards.
    become = ("setpriv", *user, "--") if user else ()
    first_to_go = ("choom", "-n", str(_SOONER_THAN_KTRIAL), "--") if shutil.which("choom") else ()
    # Before it becomes another user, who may reach no file of ktrial's own; after what writes below /proc.
    within = words_of(str(confine_program()), _DEVICES) if any(part.confined for part in parts) else ()
    return Jail(
        before=(*first_to_go, *within, *become, "setpriv", *_DIES_WITH_KTRIAL, *rights, "--"),
        arguments=tuple(word for part in parts for word in part.arguments),
        is_tenant=bool(user),
        is_limited=any(part.is_limited for part in parts),
    )


def _refusal(program: Path, jail: Jail) -> str:
    """Why this QEMU does not start so, in its last words; empty where it does."""
    try:
        with handed(jail, _preloaded()) as files:
            finished = subprocess.run(
                [*jail.start(_TRIED_BYTES, _TRIED_BYTES), str(program), *jail.arguments, *_NOTHING],
                input=_TALK,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                check=False,
                env=environment(map(files.name, _preloaded())),
                pass_fds=files.descriptors,
                process_group=0,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = lines_of(finished.stderr.strip())
    # The dynamic linker goes on without what it cannot load: numbers would be others.
    if ignored := next((line for line in said if _IGNORED in line), ""):
        return ignored
    return "" if finished.returncode == 0 else (said or [f"exit status {finished.returncode}"])[-1]


def _preloaded() -> tuple[Path, ...]:
    try:
        return (coalesce(),)
    except GuestProgramsMissing:
        return ()
