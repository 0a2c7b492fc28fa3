"""The narrow waist: a target is a running system, and does steps.

The five verbs (read, write, run, push, collect) are data, handed over together: while a guest runs in exact
mode, nothing may be typed into it, so that a conversation step by step is impossible there. A target that can
talk (a host) does the same steps one after another.
"""

from typing import Annotated, Literal, Protocol

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.parallel import ParallelCounts
from ktrial.model.profile import RegionCounts
from ktrial.model.references import KnobRef


class Collect(Model):
    """Bring a file back (at most 64 MiB)."""

    do: Literal["collect"] = "collect"
    path: str


class LoadModule(Model):
    """Load a module (a file in the guest) with parameters; one that is loaded already is no error."""

    do: Literal["module"] = "module"
    path: str
    parameters: str = ""


class MakeDirectory(Model):
    """Make a directory, and those above it. In configfs that makes an object of the kernel's."""

    do: Literal["directory"] = "directory"
    path: str


class Mount(Model):
    """Mount a file system; the mount point is made."""

    do: Literal["mount"] = "mount"
    fstype: str
    source: str
    path: str
    options: str = ""


class Push(Model):
    """Put a file into the target."""

    do: Literal["push"] = "push"
    path: str
    base64: str
    mode: int = 0o644


class Read(Model):
    """Read a kernel's file (at most 1 MiB)."""

    do: Literal["read"] = "read"
    path: str


class Sampling(Model):
    """Files that are read around a row of equal runs, and at an interval while each program runs."""

    files: tuple[str, ...]
    around: tuple[str, ...] = ()
    """Read before and after only: these take long."""
    every_ns: int = Field(default=0, ge=0, lt=2**64)
    """0: only before and after. A program that is shorter is not interrupted."""


class TracerProgram(Model):
    """A program that watches others from outside: from before the first of a row until after the last."""

    name: str
    argv: tuple[str, ...]
    """`{pid}` in an argument stands for the process whose descendants are watched."""
    say: str = ""
    """Written to its standard input once it runs; empty: it has none."""
    ready: str
    """A text in what it prints on its standard output as soon as it watches."""


class Run(Model):
    """Run a program to its end. The files in `watch` are read before and after."""

    do: Literal["run"] = "run"
    argv: tuple[str, ...]
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    limit_ns: int = Field(default=0, ge=0, lt=2**64)
    """Guest nanoseconds after which the program is killed; 0: no limit."""
    layout_seed: int = Field(default=0, ge=0, lt=2**64)
    """0: fixed address-space layout; otherwise address-space randomization on, seeded with this."""
    start_offset_ns: int = Field(default=0, ge=0, lt=2**64)
    """Guest nanoseconds waited before the program starts."""
    watch: tuple[str, ...] = ()
    """Kernel files of counters (`/proc/vmstat`); one that is not there is left out of the result."""
    sample: Sampling | None = Field(default=None, exclude_if=lambda value: value is None)
    """None: nothing is read over time."""
    tracers: tuple[TracerProgram, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Machine host: what watches it, and all that is run with it."""
    user: str = Field(default="", exclude_if=lambda value: not value)
    """Machine host: as whom it runs; empty: as ktrial does."""


class Start(Model):
    """Start a program that goes on during the steps after it, and wait until a file says that it is ready."""

    do: Literal["start"] = "start"
    name: str
    """What it is called in the step that ends it. There is at most one at a time."""
    argv: tuple[str, ...]
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    path: str = ""
    """The file that is waited for; empty: it is not waited for."""
    value: str = ""
    """What that file says then, without its last newline."""
    limit_ns: int = Field(default=10_000_000_000, ge=0, lt=2**64)
    """Guest nanoseconds after which the file has not said so, which is a failure."""


class Stop(Model):
    """End a program that was started: SIGINT, then SIGKILL. One that has ended by itself is a failure."""

    do: Literal["stop"] = "stop"
    name: str
    path: str = ""
    """The file that tells that its work is undone; empty: it is not waited for."""
    value: str = ""
    limit_ns: int = Field(default=10_000_000_000, ge=0, lt=2**64)
    """Guest nanoseconds that its end, and the file, may each take."""


class Walk(Model):
    """Read all small regular files below some directories, twice: settings and their values."""

    do: Literal["walk"] = "walk"
    roots: tuple[str, ...]
    """Directories or files; a component `*` stands for every name. Symbolic links are followed in these
    paths only, not below them."""
    skip: tuple[str, ...] = ()
    """Names of files and directories that are not even opened, wherever they are."""
    limit_bytes: int = Field(default=4096, ge=0, lt=2**64)
    """A longer file is left out."""
    limit_files: int = Field(default=20_000, ge=0, lt=2**64)
    """Files that are read at most; more are a failure, with what was read until then in the result."""
    limit_ns: int = Field(default=20_000_000_000, ge=0, lt=2**64)
    """Nanoseconds by the target's monotonic clock after which it stops, in the same way."""


# The verbs of a target, as data, and what comes of them. The guest's agent speaks the same JSON.


class Write(Model):
    """Write `value` to a kernel's file, and read it back."""

    do: Literal["write"] = "write"
    path: str
    value: str
    knob: KnobRef | None = Field(default=None, exclude=True, repr=False)
    """Which knob that is, for the journal of this system; a guest is told the path alone."""


Step = Annotated[
    Write | Read | Run | Start | Stop | Push | Collect | MakeDirectory | Mount | LoadModule | Walk,
    Field(discriminator="do"),
]


class Failure(Model):
    """Why a step failed: the kernel's own answer."""

    errno: int = 0
    name: str = ""
    """`EINVAL`, `EPERM`, `ENOENT`…; empty where no system call failed."""
    text: str


class SampledFiles(Model):
    """What some files said at several moments, and what it cost to read them."""

    every_ns: int
    """The interval in the end: it doubles when more than 512 moments would be kept."""
    cost_ns: int
    """CPU time of the readings while programs ran."""
    readings: int
    """How many of those there were, those among them that were not kept."""
    at_ns: tuple[int, ...]
    """Nanoseconds since the row began. The first moment is before its programs, the last after them."""
    texts: dict[str, tuple[str, ...]]
    """File → its text at each moment, empty where it was not, or could not be, read then. Files that this
    system does not have, or does not show to this user, are left out."""


class StepResult(Model):
    """What came of one step. Fields that the step does not have are left at their defaults."""

    step: int
    """Index into the steps that were handed over."""
    do: str
    failure: Failure | None = None
    before: str = ""
    """Write: the value that was there, without its last newline; empty where the file cannot be read."""
    after: str = ""
    """Write: the value read back, without its last newline."""
    content: str = ""
    """Read: the text. Collect: base64. Start, stop: what the file that was waited for says, without its last
    newline."""
    exit: int | None = None
    """Run, start, stop: the exit status; None where a signal ended it."""
    signal: int | None = None
    timed_out: bool = False
    oom_kills: int = 0
    """Run: how many processes the kernel killed meanwhile because memory ran out."""
    stdout: str = ""
    stderr: str = ""
    wall_ns: int = 0
    """Run: nanoseconds by the target's monotonic clock."""
    rusage: dict[str, float] = Field(default_factory=dict)
    """Run: wait4's struct rusage of the program and its children: `utime_ns`, `stime_ns`, `minflt`, `majflt`,
    `nvcsw`, `nivcsw`, `inblock`, `oublock`, `maxrss_kib`."""
    watched: dict[str, dict[str, tuple[float, ...]]] = Field(default_factory=dict)
    """Run: file → line's first word → by how much each number on that line rose. Lines without change are
    left out; a colon after the first word is dropped. On the machine `host` the last of a row of equal runs
    has the rises of the whole row: to read them between two runs would slow the second one."""
    sampled: SampledFiles | None = Field(default=None, exclude_if=lambda value: value is None)
    """Run: what was sampled. On the machine `host`, the last of a row of equal runs has it for the row."""
    tracer_output: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Run, on the machine `host`: the tracer's name → what it printed; the last watched run has it."""
    region: RegionCounts | None = Field(default=None, exclude=True)
    """Run: what the QEMU plugin counted in the program's marked region, or around the whole program where it
    marks none; the guest knows nothing of it. None where nothing was counted."""
    parallel: ParallelCounts | None = Field(default=None, exclude=True)
    """Run, on the machine `exact-parallel`: what was counted on all CPUs; the guest knows nothing of it."""
    files: dict[str, str] = Field(default_factory=dict)
    """Walk: file → text, without its last newline."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Walk: file or root → why it is not among `files`: the errno's name (`ENOENT`, `EPERM`), `changing` (two
    readings differ), `long`, or `unreadable` (nobody may read it)."""


class Target(Protocol):
    """A running system that a machine yields."""

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order and return one result for each that was reached.

        A step that fails does not stop the ones after it. Raises GuestEnded where the system itself fails
        (its fact `results` holds what came before), MachineError where the machine does.
        """
        ...


# What the host lays out for the guest's agent: once before the snapshot, and for each trial after it.

PROTOCOL = 1
"""Of plans, frames and results. An agent refuses a plan of another protocol."""
BOOT_PLAN_PATH = "/ktrial/boot.json"
"""Where the initial RAM disk holds the BootPlan."""
PLAN_FW_CFG_NAME = "opt/ktrial/plan"
"""The fw_cfg file that holds the GuestPlan."""


class BootModule(Model):
    """A module that is loaded before the snapshot."""

    path: str
    """A file in the guest, not compressed."""
    parameters: str = ""


class BootPlan(Model):
    """What is done once, before the snapshot."""

    protocol: int = PROTOCOL
    settle_ns: int
    """Guest nanoseconds waited for the work that the kernel puts off at boot."""
    modules: tuple[BootModule, ...] = ()


class GuestPlan(Model):
    """What one trial does: steps in order; one that fails does not stop those after it."""

    protocol: int = PROTOCOL
    steps: tuple[Step, ...]


__all__ = [
    "Collect",
    "Failure",
    "LoadModule",
    "MakeDirectory",
    "Mount",
    "Push",
    "Read",
    "Run",
    "SampledFiles",
    "Sampling",
    "Start",
    "Step",
    "StepResult",
    "Stop",
    "Target",
    "TracerProgram",
    "Walk",
    "Write",
]
