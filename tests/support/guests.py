"""Boots, programs and load for the tests of the exact machine."""

import contextlib
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from filelock import FileLock
from tests.support.places import SUPPORT

from ktrial.kernels import silent
from ktrial.kernels.packages.apt import Package, PrivateApt, configured_sources, run_tool
from ktrial.kernels.providers.debian import debian_archives
from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, CarriedFile
from ktrial.model.profile import Profile
from ktrial.model.workload import WorkloadUse
from ktrial.target import Push, Read, Run, Step, StepResult, Target
from ktrial.target.errors import GuestEnded
from ktrial.workloads.host_files import program_path, with_all_they_need

# Boots, programs and load for the tests of the exact machine.

UPTIME = Read(path="/proc/uptime")


COUNTERS = ("/proc/vmstat", "/proc/stat")


LITTLE_MEMORY_MIB = 128
"""For guests whose memory is to be used up."""


PROGRAMS = ("cat", "head", "setsid", "sh", "sleep", "sort", "tail", "yes")
"""Of the host, for guests that run more than the agent and the workloads."""


def boot_of(kernel: Kernel, **changes: object) -> Boot:
    """The system that studies boot: unless it is changed, its snapshot is the one that all tests share."""
    return Boot(kernel=kernel).model_copy(update=changes)


def boot_with_programs(kernel: Kernel, **changes: object) -> Boot:
    """The same with a shell and a few programs, always the same ones: one more snapshot for all tests."""
    files = {file for name in PROGRAMS for file in host_program(name)[0]}
    return boot_of(kernel, files=tuple(sorted(files, key=lambda file: file.guest)), **changes)


def work(*argv: str) -> Run:
    """A built-in workload, counted in instructions."""
    return Run(argv=("/ktrial/work", *argv, "--clock", "tsc"), watch=COUNTERS)


ENDLESS = work("nqueens", "--board", "14", "--operations", "100000")


def host_program(name: str) -> tuple[tuple[CarriedFile, ...], str]:
    """A host's program with its libraries, and its path."""
    path = program_path("a test", name)
    return with_all_they_need("a test", (path,)), path


def perform(machine: ExactMachine, boot: Boot, *steps: Step) -> tuple[StepResult, ...]:
    """Start, do the steps, end."""
    with machine.start(boot) as target:
        return target.perform(steps)


def ending(machine: ExactMachine, boot: Boot, *steps: Step) -> GuestEnded:
    """How a guest ended that must not reach its end."""
    try:
        results = perform(machine, boot, *steps)
    except GuestEnded as error:
        return error
    raise AssertionError(f"the guest did all its steps: {results}")


def wrong_pair_flags(target: Target, directory: Path) -> int:
    """In how many of 1000 cases the flags behind a `cmpxchg16b` are not a processor's."""
    built = directory / "pair_flags"
    subprocess.run(["cc", "-O1", "-Wall", "-static", "-o", built, SUPPORT / "pair_flags.c"], check=True)
    program = Push(path="/pair_flags", base64=b64encode(built.read_bytes()).decode(), mode=0o755)
    return int(target.perform((program, Run(argv=("/pair_flags",))))[1].stdout)


@contextlib.contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Other programs that want all the CPU they can get."""
    spin = (sys.executable, "-c", "while True: pass")
    spinning = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def qemu_children(parent: int) -> list[int]:
    """Process ids of the guests' QEMUs that `parent` has started and that are alive; of no probe's."""
    children = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, KeyError):  # ended meanwhile
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            alive = facts["Name"].startswith("qemu-system") and not facts["State"].startswith("Z")
            is_probe = b"-machine\0none\0" in (status.parent / "cmdline").read_bytes()
            if alive and int(facts["PPid"]) == parent and not is_probe:
                children.append(int(status.parent.name))
    return children


# Kernel modules built against a distribution's headers, which ktrial's own apt fetches.

NAMES = r"linux-(headers|kbuild)-\d\S*"


@dataclass(frozen=True)
class Headers:
    """What modules of one kernel are built against, unpacked."""

    tree: Path
    """As /usr/src/linux-headers-<release> would be, were it installed."""

    def build(self, source: Path, **defined: int | str) -> Path:
        """Build the one file `source` where it lies. Returns the module: the same bytes wherever that is."""
        flags = " ".join(f"-D{name}={_c_constant(value)}" for name, value in defined.items())
        (source.parent / "Kbuild").write_text(f"obj-m := {source.stem}.o\nccflags-y := {flags}\n")
        # The headers name the compiler of their distribution's release, the host may have another one.
        # Debugging information names the directory: a longer path is a larger file in the guest, which moves
        # all that lies in its memory, and refaults differ by a third.
        command = ["make", "-C", str(self.tree), f"M={source.parent}", "CC=gcc", "KCFLAGS=-g0", "modules"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return source.with_suffix(".ko")


def headers(kernel: Kernel, place: Path) -> Headers:
    """The headers of a Debian kernel, below `place`: fetched once, whoever else wants them meanwhile."""
    root = place / kernel.release
    tree = root / "usr" / "src" / f"linux-headers-{kernel.release}"
    with FileLock(place / "headers.lock"):
        if not root.exists():
            _unpack(kernel, root, tree)
    return Headers(tree)


def _unpack(kernel: Kernel, root: Path, tree: Path) -> None:
    place = root.parent
    unpacking = place / f"{kernel.release}.unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    debs = unpacking / "debs"
    debs.mkdir(parents=True)
    for file in _fetched(kernel, place / "apt", debs):
        subprocess.run(["dpkg-deb", "-x", file, unpacking], check=True)
    makefile = unpacking / tree.relative_to(root) / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    unpacking.rename(root)


def _fetched(kernel: Kernel, state: Path, into: Path) -> list[Path]:
    apt = PrivateApt(state, "Debian", "amd64", NAMES)
    targets = [["apt-get", "indextargets", *more] for more in ([], ["--no-release-info"])]
    resources = configured_sources("\n".join(run_tool(kernel.name, each).stdout for each in targets))
    packages = apt.packages(debian_archives(kernel.name, resources), kernel.name, silent)
    return apt.download(_needed(kernel, packages), into, kernel.name, silent)


def _needed(kernel: Kernel, packages: tuple[Package, ...]) -> list[Package]:
    version = kernel.origin.version
    there = {package.name: package for package in packages if package.version == version}
    first = there[f"linux-headers-{kernel.release}"]
    wanted = [name.strip().split(" ")[0] for name in first.depends.split(",")]
    return [first, *(there[name] for name in wanted if name in there)]


def _c_constant(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f'\\"{value}\\"'


# Boot parameters that make a workload dearer in a function that is known, and some that do nothing.


@dataclass(frozen=True)
class Planted:
    """A boot parameter, and the functions that do what it asks for."""

    parameter: str
    instead_of: str
    workload: str
    functions: frozenset[str]
    given: Mapping[str, int | str] = field(default_factory=dict)
    """The workload's parameters."""

    def __str__(self) -> str:
        return f"{self.parameter}-{self.workload}"

    def profiles(self, profile: Callable[..., Profile]) -> tuple[Profile, Profile]:
        """Without the parameter and with it, by a function of a workload and boot parameters."""
        use = WorkloadUse(name=self.workload, parameters=dict(self.given))
        before, after = (filter(None, (one,)) for one in (self.instead_of, self.parameter))
        return profile(use, *before), profile(use, *after)


PLANTED = (
    # kernel/auditsc.c: what the first function that is met on the way into a system call writes down.
    Planted("audit=1", "", "syscall", frozenset({"__audit_syscall_entry"})),
    # mm/memcontrol.c: each page is charged to the program's control group, and counted there.
    Planted("cgroup_disable=memory", "", "mmap", frozenset({"__mod_memcg_lruvec_state"})),
    # mm/page_alloc.c: a page of the page cache is written wholly, and cleared before that all the same.
    Planted(
        "init_on_alloc=1",
        "init_on_alloc=0",
        "aio-stress",
        frozenset({"clear_page_erms", "clear_page_rep"}),
        {"size": 4, "stage": "write"},
    ),
    # kernel/sched/psi.c
    Planted("psi=1", "psi=0", "context-switch", frozenset({"psi_group_change"})),
    # arch/x86/entry: another page table on the way in, and again on the way out.
    Planted("pti=on", "pti=off", "syscall", frozenset({"entry_SYSCALL_64", "syscall_return_via_sysret"})),
    # security/selinux/hooks.c: asked for each directory on the way to the file.
    Planted("security=selinux", "", "open", frozenset({"selinux_inode_permission"})),
    # mm/slub.c: is an object that is freed among those that are free already?
    Planted("slub_debug=FZ", "", "fork", frozenset({"on_freelist"})),
    # arch/x86/lib/retpoline.S: calls through pointers go through it.
    Planted("spectre_v2=retpoline", "spectre_v2=off", "pipe", frozenset({"__x86_indirect_thunk_rax"})),
)


WITHOUT_EFFECT = tuple(
    Planted(parameter, "", "mmap", frozenset())
    for parameter in ("debug_pagealloc=on", "page_owner=on", "page_poison=1")
)
"""Debian's kernels are built without what they ask for. `mmap` allocates and frees pages."""


OPTIONS = {
    "debug_pagealloc=on": "CONFIG_DEBUG_PAGEALLOC",
    "page_owner=on": "CONFIG_PAGE_OWNER",
    "page_poison=1": "CONFIG_PAGE_POISONING",
}
"""What each of those needs."""


SAME_MEDIAN, SAME_MEAN = 1e-3, 5e-3
"""A parameter without effect makes the command line longer: all lies elsewhere, and the kernel's own work in
the background falls into other operations. Medians hardly move by that, means a little.
"""


# Which kernels tests boot for each change, and which ones nightly.

EACH_CHANGE = ("debian:6.1", "debian:6.12")


ALL = ("debian:5.10", *EACH_CHANGE, "debian:6.18", "debian:7.2")


def versions(*names: str) -> list[ParameterSet]:
    """The kernels as parameters of a test; marked `nightly` are those that are not booted for each change."""
    return [pytest.param(name, marks=() if name in EACH_CHANGE else pytest.mark.nightly) for name in names]


def newest_for_each_change(*names: str) -> list[ParameterSet]:
    """As `versions`, of what costs much: for each change the newer kernel alone."""
    return [
        pytest.param(name, marks=() if name == EACH_CHANGE[-1] else pytest.mark.nightly) for name in names
    ]
