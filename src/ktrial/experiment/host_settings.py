"""Settings of this system in a study: made through the journal of ktrial.knobs, undone after each trial."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ktrial import machines
from ktrial.knobs.apply import Applied, Changes, KnobSetting, apply, changing, undoing
from ktrial.knobs.errors import KnobError, KnobForbidden, KnobRefused
from ktrial.knobs.journal import Entry, Kind, Stage
from ktrial.knobs.lookup import KnobInstance, System, coupled_paths, find
from ktrial.machines import Machine, RemoteMachine
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.machines.ssh.target import RemoteFiles
from ktrial.model.base import Model
from ktrial.model.study import Study
from ktrial.target import Failure, Read, StepResult, Target, Write
from ktrial.target.local import LocalTarget


@contextmanager
def machine_for(
    study: Study, *, allow_host_changes: bool, say: Callable[[str], None] | None = None
) -> Iterator[Machine | None]:
    """The machine that a study on this system runs on; None where it runs elsewhere.

    With leave, it is the only ktrial that changes knobs here as long as the block lasts; what is left of its
    changes at the end is taken back. Raises JournalHeld, JournalError, JournalError.
    """
    machine = machines.find(study.machine.kind)
    if isinstance(machine, RemoteMachine):
        machine.reach(study.machine.host)
        if allow_host_changes and isinstance(machine, SshMachine):
            machine.writer = RemoteSettings(machine)
            machine.say = say or machine.say
        try:
            yield machine
        finally:
            machine.close()
        return
    if not isinstance(machine, HostMachine):
        yield None
        return
    machine.allow_changes = allow_host_changes
    if not allow_host_changes:
        yield machine
        return
    with changing(LocalTarget(), f"study {study.name}", say=say) as changes:
        machine.writer = Journaled(changes)
        yield machine


class Journaled:
    """Makes settings, noted on disk before they are made."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def write(self, step: Write) -> StepResult:
        """Make one. A kernel that refuses is the step's failure. Raises KnobForbidden, JournalError."""
        return result_of(step, lambda setting: self._changes.apply(setting, exactly=False))

    def attach(self, kind: Literal["mount", "module"], name: str, attach: Callable[[], None]) -> None:
        """Mount or load something by calling `attach`. Raises what that raises, JournalError."""
        self._changes.attach(Kind(kind), name, attach)

    def undo(self) -> None:
        """Take back all that was made so far."""
        self._changes.undo()


# Settings of another machine in a study: noted there before they are made, and put back by that machine.

_UNSET = {"", "0"}


class RemoteSettings:
    """Makes settings on the machine, whose keeper knows each before it is made."""

    def __init__(self, machine: SshMachine) -> None:
        self._machine = machine

    def write(self, step: Write) -> StepResult:
        """Make one. A kernel that refuses is the step's failure. Raises KnobForbidden, MachineError."""
        files = RemoteFiles(self._machine.connection())
        return result_of(step, lambda setting: apply(files, (setting,), _NotedThere(files), exactly=False))


class _NotedThere:
    """Tells the keeper what is to be put back."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def planned(self, system: System, knob: KnobInstance, before: str, value: str) -> Entry | None:
        """Note it there, what the kernel clears with it first: the keeper puts back the latest first."""
        old = undoing(knob, before, value)
        for path in coupled_paths(system, knob):
            (beside,) = self._files.perform((Read(path=path),))
            if (text := beside.content.removesuffix("\n")) not in _UNSET:
                self._files.note(path, text)
        self._files.note(knob.path, old)
        return None

    def noted(self, entry: Entry, stage: Stage, value: str = "") -> Entry:
        """The keeper needs to know no more."""
        return entry


def result_of(step: Write, change: Callable[[KnobSetting], tuple[Applied, ...]]) -> StepResult:
    """What came of a setting as the step's result. Raises KnobForbidden, and what is no KnobError."""
    result = StepResult(step=0, do=step.do)
    try:
        (applied,) = change((step.knob or step.path, step.value))
    except KnobForbidden:
        raise
    except KnobRefused as error:
        # Which knob, and which value, says whoever wanted it.
        return result.model_copy(update={"failure": Failure(text=error.answer)})
    except KnobError as error:
        return result.model_copy(update={"failure": Failure(text=error.message)})
    return result.model_copy(update={"before": applied.before, "after": applied.now})


# What makes this machine quieter for measuring: which settings, to what, and why these.
#
# Only what adds noise is taken away. What is a policy that people compare (transparent huge pages,
# swappiness, address-space randomization, mitigations) stays as it is: a study that wants another one has
# it as a factor.

PURPOSE = "quiesce"
"""What the journal calls it."""
_SLOW_EXIT_US = 20
_IDLE_STATES = "sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*"


@dataclass(frozen=True)
class _Wish:
    knob: str
    value: str
    why: str


_WISHES = (
    _Wish("cpufreq/scaling_governor@*", "performance", "one frequency, whatever the load"),
    _Wish("cpufreq/energy_performance_preference@*", "performance", "the CPU saves no energy"),
    _Wish("intel_pstate/no_turbo", "1", "no frequency that depends on heat and on other cores"),
    _Wish("cpufreq/boost", "0", "no frequency that depends on heat and on other cores"),
    _Wish("kernel.numa_balancing", "0", "no pages are taken away to see who misses them"),
    _Wish("kernel.nmi_watchdog", "0", "no interrupts to see whether a CPU hangs"),
    _Wish("/sys/kernel/mm/ksm/run", "0", "no thread that compares pages"),
    _Wish("vm.stat_interval", "120", "per-CPU statistics are folded every other minute, not every second"),
)
"""The governor comes before the preference, which some drivers take only with another governor."""


class QuietingStep(Model):
    """One setting, or why it is not made."""

    name: str
    value: str
    why: str
    before: str = ""
    """What it is, or was."""
    left_out: str = ""
    """Why it is not made here; empty where it is."""
    advice: str = ""
    """Where it was tried, and refused: what to do about that."""


def quieting_plan(target: Target, root: Path = Path("/")) -> tuple[QuietingStep, ...]:
    """What `quiesce` does here. Nothing is changed."""
    system = System(target)
    return tuple(step for wish in (*_WISHES, *_deep_idle_states(root)) for step in _steps(system, wish))


def apply_quieting(
    changes: Changes, steps: tuple[QuietingStep, ...], say: Callable[[QuietingStep], None]
) -> tuple[QuietingStep, ...]:
    """Make the settings that are to be made, one after another; one that is refused does not stop the others.

    Returns what was done, and tells each to `say`.
    """
    steps_done = []
    for step in steps:
        steps_done.append(step if step.left_out else _made(changes, step))
        say(steps_done[-1])
    return tuple(steps_done)


def _made(changes: Changes, step: QuietingStep) -> QuietingStep:
    try:
        changes.apply((step.name, step.value), exactly=False)
    except KnobError as error:
        return step.model_copy(update={"left_out": error.message, "advice": error.advice})
    return step


def _steps(system: System, wish: _Wish) -> Iterator[QuietingStep]:
    step = QuietingStep(name=wish.knob, value=wish.value, why=wish.why)
    try:
        knobs = find(system, wish.knob)
    except KnobError as error:
        yield step.model_copy(update={"left_out": error.message})
        return
    for knob in knobs:
        already = "it is so already" if knob.value == wish.value else ""
        yield step.model_copy(update={"name": knob.name, "before": knob.value, "left_out": already})


def _deep_idle_states(root: Path) -> Iterator[_Wish]:
    """Those that take long to leave: the driver says how long."""
    for state in sorted(root.glob(_IDLE_STATES)):
        latency = int((state / "latency").read_text())
        if latency > _SLOW_EXIT_US:
            why = f"waking up from {(state / 'name').read_text().strip()} takes {latency} µs"
            yield _Wish(f"/{state.relative_to(root)}/disable", "1", why)
