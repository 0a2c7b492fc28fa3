"""A machine whose numbers follow from its knobs: what searches are tried on without a kernel."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from tests.support.scripted import ScriptedMachine, refused

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.kernel import Build
from ktrial.model.machine import Boot
from ktrial.model.study import LeftOut, MachineSettings, Search, Study
from ktrial.model.tuning import (
    Budget,
    Configuration,
    Dimension,
    Effect,
    Finalist,
    FrontPoint,
    Goal,
    Guard,
    Importance,
    Objective,
    Observation,
    Order,
    Purpose,
    Range,
    Space,
    Tuned,
    TunedInteraction,
)
from ktrial.model.workload import Direction, Mode, WorkloadUse
from ktrial.optimize.evaluation_log import Ask
from ktrial.target import Failure, Read, Run, Step, StepResult, Write

if TYPE_CHECKING:
    from ktrial.optimize.encoding import Encoding
    from ktrial.optimize.response_model import Surrogate

# A machine whose numbers follow from its knobs: what searches are tried on without a kernel.

FILES = {
    "/proc/mounts": "proc /proc proc rw 0 0\n",
    "/proc/sys/kernel/osrelease": "6.12.1-test\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/proc/sys/vm/dirty_bytes": "0\n",
    "/proc/sys/vm/dirty_background_ratio": "10\n",
    "/proc/sys/vm/vfs_cache_pressure": "100\n",
    "/proc/sys/vm/watermark_scale_factor": "10\n",
    "/proc/sys/vm/zone_reclaim_mode": "0\n",
    "/proc/sys/vm/numa_stat": "1\n",
    "/proc/sys/kernel/randomize_va_space": "2\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}


ABSENT = Failure(errno=2, name="ENOENT", text="No such file or directory")


Number = Callable[[Boot, Mapping[str, str]], float]
"""Boot, and file → value of all that was written → what the workload prints."""


TUNABLE_GOAL = Goal(objectives=(Objective(metric="instructions", direction=Direction.LOWER),))


def a_search(*knobs: str, kind: str = "exact", builds: dict[str, Build] | None = None) -> Study:
    """For fewer instructions in the workload `fork`."""
    kernel = "mine" if builds else "debian:6.12"
    return Study(
        name="tune",
        machine=MachineSettings(kind=kind, kernel=kernel),
        factors=(),
        workloads=(WorkloadUse(name="fork"),),
        builds=builds or {},
        search=Search(knobs=knobs, goal=TUNABLE_GOAL, budget=Budget(runs=20)),
    )


class TunableMachine(ScriptedMachine):
    """Every `perform` starts from the same files, as a snapshot does."""

    def __init__(
        self,
        number: Number,
        mode: Mode = Mode.EXACT_CLOCK,
        files: Mapping[str, str] = FILES,
        read_only: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(mode=mode)
        self.files, self.number, self.read_only = files, number, read_only
        self.refuses: Callable[[Write], bool] = lambda step: False
        self.ran: list[dict[str, str]] = []

    def perform(self, boot: Boot, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        written: dict[str, str] = {}
        results = [self._step(boot, step, written) for step in steps]
        return tuple(result.model_copy(update={"step": at}) for at, result in enumerate(results))

    def _step(self, boot: Boot, step: Step, written: dict[str, str]) -> StepResult:
        if isinstance(step, Read):
            content = self.files.get(step.path)
            failure = ABSENT if content is None else None
            return StepResult(step=0, do="read", content=content or "", failure=failure)
        if isinstance(step, Write):
            if step.path in self.read_only or step.path not in self.files or self.refuses(step):
                return refused("EINVAL", f"write {step.path}: Invalid argument")
            written[step.path] = step.value
            return StepResult(step=0, do="write", after=f"{step.value}\n")
        assert isinstance(step, Run)
        self.ran.append(dict(written))
        return StepResult(step=0, do="run", exit=0, stdout=str(self.number(boot, written)))


# A machine that is a formula: 12 mixed knobs, 3 interactions, noise, outliers, drift; for simulations.
#
# The knobs are shaped like a kernel's: wide logarithmic ranges with a peak somewhere, percentages,
# switches, choices, two that do nothing at all, defaults that are sensible and not best. The best
# configuration is 27 % above the default; most random ones are below it.

METRIC = "rate"


BASE = 1000.0


GOAL = Goal(
    objectives=(Objective(metric=METRIC, direction=Direction.HIGHER, unit="1/s"),), workload="formula"
)


def _span(name: str, low: float, high: float, default: str, *, log: bool = False) -> Dimension:
    return Dimension(name=name, range=Range(low=low, high=high, log=log), default=default)


def _choice(name: str, default: str, *others: str) -> Dimension:
    return Dimension(name=name, choices=(default, *others), default=default)


SPACE = Space(
    dimensions=(
        _span("read_ahead_kb", 4, 16384, "128", log=True),
        _span("latency_ns", 100_000, 100_000_000, "6000000"),
        _span("nr_migrate", 1, 1024, "32", log=True),
        _span("dirty_ratio", 1, 90, "20"),
        _span("dirty_background_ratio", 1, 80, "10"),
        _span("swappiness", 0, 200, "60"),
        _span("rt_runtime_us", 10_000, 1_000_000, "950000"),
        _choice("scheduler", "mq-deadline", "none", "kyber", "bfq"),
        _choice("thp", "madvise", "always", "never"),
        _choice("autogroup", "1", "0"),
        _choice("watchdog", "1", "0"),
        _choice("timer_migration", "1", "0"),
    ),
    constraints=(Order(left="dirty_background_ratio", relation="<", right="dirty_ratio"),),
)


NOTHING = ("rt_runtime_us", "timer_migration")
"""Knobs that do nothing, whatever the others are."""


def log_gain(configuration: Mapping[str, str]) -> float:
    """Logarithm of the true ratio to the baseline."""
    return _raw(configuration) - _raw({})


def _raw(configuration: Mapping[str, str]) -> float:
    at = {each.name: configuration.get(each.name, each.default) for each in SPACE.dimensions}
    ahead, latency, migrate = (
        math.log2(float(at[name])) for name in ("read_ahead_kb", "latency_ns", "nr_migrate")
    )
    dirty, behind, swap = (
        float(at[name]) for name in ("dirty_ratio", "dirty_background_ratio", "swappiness")
    )
    total = 0.07 / (1 + math.exp(-(ahead - 9.0)))
    total += 0.06 * _peak(latency, math.log2(24e6), 1.7)
    total += 0.03 * _peak(migrate, 7.0, 2.0)
    total += 0.05 * _peak(dirty, 60.0, 25.0)
    total += 0.015 * _peak(behind, 25.0, 20.0)
    total -= 0.02 * ((swap - 20.0) / 100.0) ** 2
    total += {"mq-deadline": 0.0, "none": 0.03, "kyber": 0.01, "bfq": -0.05}[at["scheduler"]]
    total += {"madvise": 0.0, "always": 0.03, "never": -0.015}[at["thp"]]
    total += {"1": 0.0, "0": -0.015}[at["autogroup"]] + {"1": 0.0, "0": 0.01}[at["watchdog"]]
    # Three interactions: read-ahead pays without a scheduler; huge pages swap badly; short slices migrate.
    total += 0.03 / (1 + math.exp(-(ahead - 10.0))) if at["scheduler"] == "none" else 0.0
    total -= 0.06 * swap / 200.0 if at["thp"] == "always" else 0.0
    total -= 0.02 * math.tanh((latency - math.log2(6e6)) / 2) * math.tanh((migrate - 5.0) / 2)
    return total


def _peak(value: float, best: float, width: float) -> float:
    return math.exp(-0.5 * ((value - best) / width) ** 2)


def nothing(configuration: Mapping[str, str]) -> float:
    """An A/A space: no knob does anything."""
    del configuration
    return 0.0


def best() -> tuple[dict[str, str], float]:
    """The best configuration and its true log gain, by walking each knob in turn from many starts."""
    from ktrial.optimize.encoding import Encoding

    ground = Encoding(SPACE)
    rng = np.random.default_rng(5)
    highest: tuple[dict[str, str], float] = ({}, 0.0)
    for _ in range(20):
        here = ground.draw(rng)
        gain, before = log_gain(here), -math.inf
        while gain > before + 1e-6:
            before = gain
            for name in SPACE.names:
                here = max([here, *ground.neighbours(here, name)], key=log_gain)
            gain = log_gain(here)
        if gain > highest[1]:
            highest = here, gain
    return highest


@dataclass
class Formula:
    """See Measuring. Counts its runs."""

    noise: float
    seed: int
    truth: Callable[[Mapping[str, str]], float] = log_gain
    outliers: float = 0.03
    drift: float = 0.0
    """Rise of the level over 65 runs."""
    one_sided: bool = False
    """Whether outliers are always slow runs; else as many are fast."""
    noise_free: bool = False
    at_once: int = 1
    perturbations: int = 1
    mode: Mode = Mode.TIMED
    asked: list[Ask] = field(default_factory=list)

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """See Measuring."""
        for ask in batch:
            self.asked.append(ask)
            yield Observation(**ask.model_dump(), values={METRIC: self.value(ask)}, seconds=1.0)

    def value(self, ask: Ask) -> float:
        """One run's."""
        rng = np.random.default_rng([self.seed, ask.order, ask.perturbation])
        shaken = self.noise * rng.standard_normal()
        if rng.random() < self.outliers:
            shaken += 0.25 * (-1 if self.one_sided or rng.random() < 0.5 else 1)
        level = self.drift * ask.order / 65
        return BASE * math.exp(self.truth(ask.configuration) + shaken + level)


# The result of a search, made up: what its report is tried on.

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


def a_space() -> Space:
    return Space(
        dimensions=(
            Dimension(name="vm.swappiness", range=Range(low=0, high=200), default="60"),
            Dimension(
                name="vm.vfs_cache_pressure", range=Range(low=6, high=1600, log=True), default="100", unit="%"
            ),
            Dimension(name="boot:nohz", choices=("", "off"), default=""),
        )
    )


def seen(order: int, purpose: Purpose, value: float | None, **configuration: str) -> Observation:
    named = {name.replace("__", "."): one for name, one in configuration.items()}
    return Observation(
        configuration=named,
        values={} if value is None else {"rps": value, "p99": 10.0},
        failure="it ended with exit status 3" if value is None else "",
        seconds=0.5,
        order=order,
        purpose=purpose,
    )


def a_comparison(metric: str, direction: Direction, ratio: float) -> Comparison:
    return Comparison(
        workload="bench",
        metric=metric,
        unit="",
        direction=direction,
        mode=Mode.TIMED,
        baseline="as it was",
        treatment="answer",
        baseline_value=100.0,
        value=100.0 * ratio,
        ratio=ratio,
        low=ratio - 0.01,
        high=ratio + 0.01,
        verdict=Verdict.BETTER,
    )


def a_result() -> Tuned:
    goal = Goal(
        objectives=(Objective(metric="rps", direction=HIGHER), Objective(metric="p99", direction=LOWER)),
        guards=(Guard(metric="p99", relation="<=", bound=20, unit="ms"),),
        workload="bench",
    )
    confirmed = {"vm.vfs_cache_pressure": "400", "boot:nohz": "off"}
    comparisons = (a_comparison("rps", HIGHER, 1.12), a_comparison("p99", LOWER, 0.95))
    return Tuned(
        space=a_space(),
        goal=goal,
        budget=Budget(runs=20),
        seed=1,
        baseline={"rps": 100.0, "p99": 10.0},
        observations=(
            seen(0, Purpose.CALIBRATE, 100.0),
            seen(1, Purpose.EXPLORE, 125.0, vm__vfs_cache_pressure="400"),
            seen(2, Purpose.EXPLORE, None, vm__swappiness="200"),
            seen(3, Purpose.CONFIRM, 112.0, vm__vfs_cache_pressure="400"),
        ),
        candidate=confirmed,
        confirmed=confirmed,
        comparisons=comparisons,
        finalists=(
            Finalist(configuration=confirmed, comparison=comparisons[0], fresh=1.111, expected=1.133),
        ),
        kept=(
            Effect(names=("vm.vfs_cache_pressure",), values=("400",), ratio=1.09, low=1.07, high=1.11),
            Effect(names=("boot:nohz",), values=("off",), ratio=1.03, low=1.02, high=1.04),
        ),
        dropped=(
            Effect(
                names=("vm.swappiness",),
                values=("10",),
                ratio=1.0,
                low=0.99,
                high=1.01,
                reason="not worth it",
            ),
        ),
        importance=(Importance(name="vm.vfs_cache_pressure", share=0.8, low=0.7, high=0.9),),
        interactions=(
            TunedInteraction(
                first="vm.vfs_cache_pressure",
                first_values=("100", "400"),
                second="boot:nohz",
                second_values=("", "off"),
                corners=(1.0, 1.06, 1.02, 1.12),
                ratio=1.03,
                low=1.01,
                high=1.05,
            ),
        ),
        front=(FrontPoint(configuration=confirmed, ratios=(1.12, 0.95), runs=9, comparisons=comparisons),),
        noise=0.02,
        smallest_effect=0.015,
        seen=1.25,
        seconds=60.0,
        answer="2 knobs together: rps +12.0 %, confirmed on fresh runs.",
    )


def a_study(tuned: Tuned) -> Study:
    study = a_search("vm.swappiness", "vm.vfs_cache_pressure", "boot:nohz=off")
    assert study.search
    left_out = (LeftOut(name="vm.zone_reclaim_mode", reason="no largest value is known"),)
    search = study.search.model_copy(update={"space": tuned.space, "left_out": left_out, "goal": tuned.goal})
    return study.model_copy(update={"search": search})


def model_after(
    encoding: "Encoding",
    tried: Sequence[Configuration],
    score: Callable[[Configuration], float],
    *,
    noise: float,
    rng: np.random.Generator,
    goal: Goal = GOAL,
    beside: Callable[[Configuration], dict[str, float]] = lambda _configuration: {},
) -> "Surrogate":
    """What a search believes after these runs; `beside`: further metrics."""
    from ktrial.optimize.evaluation_log import ObjectiveFunction
    from ktrial.optimize.response_model import Surrogate

    model = Surrogate(encoding, ObjectiveFunction(goal), noise, 65)
    model.learn(
        [
            Observation(
                configuration=configuration,
                purpose=Purpose.EXPLORE,
                order=order,
                values={
                    METRIC: BASE * math.exp(score(configuration) + noise * float(rng.standard_normal())),
                    **beside(configuration),
                },
                seconds=1.0,
            )
            for order, configuration in enumerate(tried)
        ]
    )
    return model
