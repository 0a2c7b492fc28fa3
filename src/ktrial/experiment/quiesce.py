"""What makes this machine quieter for measuring: which settings, to what, and why these.

Only what adds noise is taken away. What is a policy that people compare (transparent huge pages, swappiness,
address-space randomization, mitigations) stays as it is: a study that wants another one has it as a factor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.knobs import Changes, System, find
from ktrial.knobs.errors import KnobError
from ktrial.model.base import Model
from ktrial.target import Target

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


def plan(target: Target, root: Path = Path("/")) -> tuple[QuietingStep, ...]:
    """What `quiesce` does here. Nothing is changed."""
    system = System(target)
    return tuple(step for wish in (*_WISHES, *_deep_idle_states(root)) for step in _steps(system, wish))


def apply(
    changes: Changes, steps: tuple[QuietingStep, ...], say: Callable[[QuietingStep], None]
) -> tuple[QuietingStep, ...]:
    """Make the settings that are to be made, one after another; one that is refused does not stop the others.

    Returns what was done, and tells each to `say`.
    """
    done = []
    for step in steps:
        done.append(step if step.left_out else _made(changes, step))
        say(done[-1])
    return tuple(done)


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
    for one in knobs:
        already = "it is so already" if one.value == wish.value else ""
        yield step.model_copy(update={"name": one.name, "before": one.value, "left_out": already})


def _deep_idle_states(root: Path) -> Iterator[_Wish]:
    """Those that take long to leave: the driver says how long."""
    for state in sorted(root.glob(_IDLE_STATES)):
        latency = int((state / "latency").read_text())
        if latency > _SLOW_EXIT_US:
            why = f"waking up from {(state / 'name').read_text().strip()} takes {latency} µs"
            yield _Wish(f"/{state.relative_to(root)}/disable", "1", why)
