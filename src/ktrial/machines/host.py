"""The machine `host`: this system, as it runs, in real time. The unit is a knob setting, not a boot.

Programs are started by `launch` (crates/launch), which sleeps while they run, as ktrial does. Nothing of the
system is changed unless the machine was given leave, and then settings go through what the runner puts into
`writer`: the journal that puts them back.
"""

import base64
import binascii
import contextlib
import gzip
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Literal, Protocol, Self

from ktrial.file_digests import digest_of_file, this_boot
from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.errors import CgroupUnusable, HostChangeForbidden, HostUsageProblem
from ktrial.machines.guest_programs import TASKS, TASKS_IN_GUEST, WORK, WORK_IN_GUEST
from ktrial.machines.launcher import (
    Launchers,
    NumberedRuns,
    WorkingPlace,
    as_run_here,
    launch_program,
    perform_in_rows,
)
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import NO_FILES, Boot, CgroupLimits, FileSet, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target import Collect, Failure, LoadModule, Mount, Push, Read, Step, StepResult, Write
from ktrial.target.local import LocalTarget
from ktrial.text_lines import lines_of

NAME = "host"


# This system as a target, and its running kernel: steps are done on it, one after another, as it runs.


class Writer(Protocol):
    """Changes this system so that the changes are taken back, whatever happens."""

    def write(self, step: Write) -> StepResult:
        """Make one; its result is the step's."""
        ...

    def attach(self, kind: Literal["mount", "module"], name: str, attach: Callable[[], None]) -> None:
        """Mount something at `name`, or load the module `name`, by calling `attach`."""
        ...

    def undo(self) -> None:
        """Take back all that was changed."""
        ...


class HostTarget:
    """This system. A context manager: what its steps set, mounted and loaded is taken back at the end."""

    def __init__(
        self,
        boot: Boot,
        launchers: Launchers,
        *,
        guest: Path,
        cgroup: str,
        allow_changes: bool,
        writer: Writer | None,
    ) -> None:
        self._boot = boot
        self._launchers = launchers
        self._guest = guest
        self._launch = launch_program(guest)
        self._place = WorkingPlace(boot.pin, cgroup)
        self._allow_changes = allow_changes
        self._writer = writer
        self._local = LocalTarget()
        self._undo: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.undo()
        for command in reversed(self._undo):
            # What is in use now, or gone, is the system's; there is nobody left to tell.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)

    @property
    def identity(self) -> MachineIdentity:
        """What of this system can change a result, beside its settings."""
        return MachineIdentity(
            machine=NAME,
            mode=Mode.TIMED,
            cpu_model=cpu_model(),
            arguments=tuple(_placed(self._boot)),
            command_line=Path("/proc/cmdline").read_text(errors="replace").strip(),
            agent_digest=digest_of_file(self._launch),
            boot=this_boot(),
        )

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order; programs that follow each other are handed to one launcher.

        Raises HostChangeForbidden before the first step where one of them would change this system without
        leave, GuestEnded where a program passes the boot's limit, MachineError.
        """
        self._check(steps)
        return perform_in_rows(steps, self._boot, self._run, self._do)

    def _check(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            change = _change(step)
            if change and not self._allow_changes:
                raise HostChangeForbidden(machine=NAME, what=change)
            if isinstance(step, Write) and self._writer is None:
                change = f"{change} without a journal that takes it back"
                raise HostChangeForbidden(machine=NAME, what=change, hint="ktrial run brings the journal")

    def _run(self, runs: NumberedRuns) -> tuple[StepResult, ...]:
        local_runs = [(number, as_run_here(run, self._boot, self._argv(run.argv))) for number, run in runs]
        return self._launchers.run(self._launch, local_runs, self._place)

    def _argv(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The built-in workloads' programs are elsewhere in a guest."""
        program = {WORK_IN_GUEST: WORK, TASKS_IN_GUEST: TASKS}.get(argv[0]) if argv else None
        return (str(self._guest / program), *argv[1:]) if program else argv

    def _do(self, number: int, step: Step) -> StepResult:
        match step:
            case Write():
                if self._writer is None:
                    raise AssertionError("a write without a writer was refused before")
                return self._writer.write(step).model_copy(update={"step": number})
            case Read():
                return self._local.step(number, step)
            case Push():
                failure, content = _attempt(f"push {step.path}", lambda: _push(step)), ""
            case Collect():
                content, failure = _collect(step)
            case Mount():
                failure, content = self._mount(step), ""
            case LoadModule():
                failure, content = self._load(step), ""
            case _:
                failure, content = Failure(text=f"{step.do}: the machine host does not do this"), ""
        return StepResult(step=number, do=step.do, failure=failure, content=content)

    def _mount(self, step: Mount) -> Failure | None:
        def mount() -> None:
            Path(step.path).mkdir(parents=True, exist_ok=True)
            options = ("-o", step.options) if step.options else ()
            _command("mount", "-t", step.fstype, *options, "--", step.source, step.path)

        return _attempt(f"mount {step.path}", lambda: self._attach("mount", step.path, mount))

    def _load(self, step: LoadModule) -> Failure | None:
        name = Path(step.path).name.partition(".")[0].replace("-", "_")
        if Path("/sys/module", name).exists():
            return None

        def load() -> None:
            _command("insmod", step.path, *step.parameters.split())

        return _attempt(f"module {step.path}", lambda: self._attach("module", name, load))

    def _attach(self, kind: Literal["mount", "module"], name: str, attach: Callable[[], None]) -> None:
        if self._writer is not None:
            self._writer.attach(kind, name, attach)
            return
        attach()
        self._undo.append(("umount" if kind == "mount" else "rmmod", name))


class HostMachine:
    """Trials on this system. Without `allow_changes` it only looks at it, and runs programs."""

    name = NAME
    host_matters = True
    """What else this host does can change the numbers: it is looked at before each trial."""
    mode = Mode.TIMED

    def __init__(
        self,
        *,
        allow_changes: bool = False,
        writer: Writer | None = None,
        guest: Path | None = None,
    ) -> None:
        """`writer` does the steps that write settings; without one none is written. `guest`: the programs."""
        self.allow_changes = allow_changes
        self.writer = writer
        self._guest = guest or guest_programs.directory()
        self._launchers = Launchers(NAME)

    def check(self) -> None:
        """Raise GuestProgramsMissing or MachineStopped."""
        self._launchers.check()
        launch_program(self._guest)
        guest_programs.programs(self._guest)

    def kernel(self) -> Kernel:
        """The running kernel: the one kernel that trials on this machine can have."""
        return running_kernel()

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Look whether CPUs and control group can be had. Raises MachineError."""
        self._launchers.check()
        check_pin(boot.pin, NAME)
        with self._control_group(boot):
            progress("ready")

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[HostTarget]:
        """Yield this system, which has all files. What is mounted or loaded is taken back at the end.

        Raises MachineError.
        """
        self._launchers.check()
        check_pin(boot.pin, NAME)
        with self._control_group(boot) as group:
            target = HostTarget(
                boot,
                self._launchers,
                guest=self._guest,
                cgroup=group,
                allow_changes=self.allow_changes,
                writer=self.writer,
            )
            with target:
                yield target

    def stop(self) -> None:
        """End all programs at once; this machine is of no more use."""
        self._launchers.stop()

    def _control_group(self, boot: Boot) -> AbstractContextManager[str]:
        if boot.cgroup is None:
            return nullcontext("")
        return control_group(boot.cgroup, NAME, allowed=self.allow_changes)


MACHINE = HostMachine
_COLLECT_LIMIT = 64 << 20
_PATIENCE = 60.0


def cpu_model() -> str:
    """`Intel(R) Xeon(R) … (stepping 3, microcode 0x…)`, as /proc/cpuinfo has it."""
    facts: dict[str, str] = {}
    for line in lines_of(Path("/proc/cpuinfo").read_text()):
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    details = [f"{key} {facts[key]}" for key in ("stepping", "microcode") if facts.get(key)]
    name = facts.get("model name", "unknown")
    return f"{name} ({', '.join(details)})" if details else name


def _placed(boot: Boot) -> list[str]:
    arguments = [f"pin={cpu_list(set(boot.pin))}"] if boot.pin else []
    if boot.cgroup:
        arguments.append(f"cgroup={boot.cgroup.model_dump_json(exclude_none=True)}")
    return arguments


def _change(step: Step) -> str:
    """What a step would change of this system, in words; empty where it changes nothing."""
    match step:
        case Write(path=path, value=value):
            return f"write {value!r} to {path}"
        case Push(path=path):
            return f"write the file {path}"
        case Mount(path=path):
            return f"mount something at {path}"
        case LoadModule(path=path):
            return f"load the module {path}"
        case _:
            return ""


def _push(step: Push) -> None:
    path = Path(step.path)
    try:
        content = base64.b64decode(step.base64, validate=True)
    except binascii.Error as error:
        raise OSError(f"its content is not base64: {error}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(step.mode)


def _collect(step: Collect) -> tuple[str, Failure | None]:
    result: dict[str, str] = {}

    def collect() -> None:
        with Path(step.path).open("rb") as file:
            content = file.read(_COLLECT_LIMIT + 1)
        if len(content) > _COLLECT_LIMIT:
            raise OSError(f"longer than {_COLLECT_LIMIT} bytes")
        result["content"] = base64.b64encode(content).decode()

    failure = _attempt(f"collect {step.path}", collect)
    return result.get("content", ""), failure


def _command(*argv: str) -> None:
    finished = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if finished.returncode:
        raise OSError(finished.stderr.strip() or f"{argv[0]} ended with status {finished.returncode}")


def _attempt(action: str, attempt: Callable[[], None]) -> Failure | None:
    try:
        attempt()
    except subprocess.TimeoutExpired:
        return Failure(text=f"{action}: it did not end within {_PATIENCE:g} s")
    except OSError as error:
        return Failure(errno=error.errno or 0, text=f"{action}: {error.strerror or error}")
    return None


RUNNING = "running"
"""What studies and results call the kernel of the machine `host`."""
_IMAGES = ("/boot/vmlinuz-{release}", "/lib/modules/{release}/vmlinuz", "/usr/lib/modules/{release}/vmlinuz")


def running_kernel() -> Kernel:
    """It has no image where the system keeps none: it is not booted.

    Its digest is over release, version (which holds the build's date) and configuration, as far as they are
    to be read.
    """
    facts = os.uname()
    config = _config(facts.release)
    config_digest = digest(config) if config else ""
    images = (Path(image.format(release=facts.release)) for image in _IMAGES)
    return Kernel(
        name=RUNNING,
        release=facts.release,
        architecture=facts.machine,
        origin=Origin(provider="running", source=_distribution(), version=facts.version),
        digest=digest([facts.release, facts.version, config_digest]),
        config_digest=config_digest,
        image=next((image for image in images if image.exists()), Path()),
        vmlinux_reason="it runs already",
    )


def _distribution() -> str:
    with contextlib.suppress(OSError):  # a system without the file has no name
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return ""


def _config(release: str) -> str:
    """Of /proc/config.gz (CONFIG_IKCONFIG_PROC), or where distributions put it; empty where it is unknown."""
    for path, opened in (("/proc/config.gz", gzip.open), (f"/boot/config-{release}", open)):
        with contextlib.suppress(OSError), opened(path, "rt") as file:  # absent, or for root only
            return str(file.read())
    return ""


# CPUs and control groups (Documentation/admin-guide/cgroup-v2.rst) for the programs of a trial.

_PERIOD_US = 100_000
"""The kernel's own default for cpu.max."""
_PREFIX = "ktrial-"
MOUNTS = Path("/proc/self/mountinfo")
"""What this process sees mounted, cgroup v2's tree among it."""
OWN_GROUPS = Path("/proc/self/cgroup")
"""The control groups that this process is in."""


def check_pin(pin: tuple[int, ...], machine: str) -> None:
    """Raise HostUsageProblem where a CPU is not among those that this process may use."""
    allowed = os.sched_getaffinity(0)
    wrong = [cpu for cpu in pin if cpu not in allowed]
    if wrong:
        raise HostUsageProblem(
            f"Machine {machine}: CPU {wrong[0]} is not among those that ktrial may use: {cpu_list(allowed)}.",
            hint="name others in [machine] pin; taskset -pc $$ shows what this shell may use",
        )


def cpu_list(cpus: set[int]) -> str:
    """As the kernel writes it: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


@contextmanager
def control_group(limits: CgroupLimits, machine: str, *, allowed: bool) -> Iterator[str]:
    """A new control group with these limits, removed at the end; its directory.

    Only limits of the new group are set: controllers that the system has not handed on to its children are
    asked for, not switched on. Raises HostChangeForbidden, CgroupUnusable.
    """
    if not allowed:
        raise HostChangeForbidden(machine=machine, what="make a control group")
    settings = _settings(limits)
    parent = _parent({file.partition(".")[0] for file, _ in settings}, machine)
    _sweep(parent)
    group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(3).hex()}"
    try:
        group.mkdir()
    except OSError as error:
        raise CgroupUnusable(
            machine=machine, problem=f"{group} cannot be made: {error.strerror}", hint=_DELEGATE
        ) from None
    try:
        for file, value in settings:
            _limit(group / file, value, machine)
        yield str(group)
    finally:
        # A process that takes its time to die keeps it: the next trial sweeps it away.
        with contextlib.suppress(OSError):
            group.rmdir()


_DELEGATE = "as root, or in a scope of your own: systemd-run --user --scope -p Delegate=yes ktrial …"


def _settings(limits: CgroupLimits) -> list[tuple[str, str]]:
    settings = []
    if limits.cpus is not None:
        settings.append(("cpu.max", f"{round(limits.cpus * _PERIOD_US)} {_PERIOD_US}"))
    if limits.memory_mib is not None:
        settings.append(("memory.max", str(limits.memory_mib << 20)))
    return settings + [("io.max", line) for line in limits.io]


def _limit(file: Path, value: str, machine: str) -> None:
    try:
        file.write_text(value)
    except OSError as error:
        problem = f"{file.name} = {value} was refused: {error.strerror}"
        raise CgroupUnusable(machine=machine, problem=problem, hint=_DELEGATE) from None


def _parent(controllers: set[str], machine: str) -> Path:
    """The nearest group above this process's own that hands the controllers on to its children.

    Not its own: a group with processes in it cannot (the rule of no internal processes), but for the root.
    """
    root, own_group = _root(machine), _own_group()
    chain = [root / own_group, *(root / own_group).parents]
    above = [entry for entry in chain if entry.is_relative_to(root)][0 if own_group == Path() else 1 :]
    for group in above:
        if controllers <= _handed_on(group) and os.access(group, os.W_OK):
            return group
    has = _words(root / "cgroup.controllers")
    absent = sorted(controllers - has)
    if absent:
        problem = f"{root} has no controller {', '.join(absent)}; cgroup v1 may have it"
        hint = "boot with systemd.unified_cgroup_hierarchy=1 (cgroup_no_v1=all)"
    else:
        problem = f"no group that ktrial may write to hands on {', '.join(sorted(controllers)) or 'anything'}"
        switch = " ".join(f"+{entry}" for entry in sorted(controllers))
        hint = f'as root: echo "{switch}" > {root}/cgroup.subtree_control; or {_DELEGATE}'
        hint = hint if controllers else _DELEGATE
    raise CgroupUnusable(machine=machine, problem=problem, hint=hint)


def _root(machine: str) -> Path:
    for line in lines_of(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")):
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(re.sub(r"\\040", " ", before.split()[4]))
    hint = "mount -t cgroup2 none /sys/fs/cgroup"
    raise CgroupUnusable(machine=machine, problem="cgroup v2 is not mounted", hint=hint)


def _own_group() -> Path:
    for line in lines_of(OWN_GROUPS.read_text(encoding="utf-8", errors="surrogateescape")):
        if line.startswith("0::"):
            return Path(line[3:].lstrip("/"))
    return Path()


def _handed_on(group: Path) -> set[str]:
    return _words(group / "cgroup.subtree_control")


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text().split())
    except OSError:
        return set()


def _sweep(parent: Path) -> None:
    """Remove the empty groups of ktrials that were killed."""
    for left in parent.glob(f"{_PREFIX}*"):
        process = left.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdecimal() and not Path("/proc", process).exists():
            with contextlib.suppress(OSError):  # somebody may have put a process there, or was faster
                left.rmdir()
