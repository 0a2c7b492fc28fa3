"""The result of a search, made up: what its report is tried on."""

from tests.support.tunable import a_search

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import LeftOut, Study
from ktrial.model.tuning import (
    Budget,
    Dimension,
    Effect,
    Finalist,
    FrontPoint,
    Goal,
    Guard,
    Importance,
    Objective,
    Observation,
    Purpose,
    Range,
    Space,
    Tuned,
    TunedInteraction,
)
from ktrial.model.workload import Direction, Mode

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
