"""What a search is after, what it varies, and what its answer rests on, in words."""

import shlex
from collections.abc import Mapping

from ktrial.format import number_format
from ktrial.model.study import Study
from ktrial.model.tuning import Dimension, Goal, Tuned


def configuration_text(configuration: Mapping[str, str]) -> str:
    """`vm.swappiness=10, vm.dirty_ratio=40`; `as it was` for the baseline."""
    return (
        ", ".join(f"{name}={value or '(not given)'}" for name, value in configuration.items()) or "as it was"
    )


def wanted(goal: Goal) -> str:
    """`higher rps, with p99 <= 20 ms`."""
    objectives = " and ".join(f"{one.direction.value} {one.metric}" for one in goal.objectives)
    return f"{objectives}, with {', '.join(map(str, goal.guards))}" if goal.guards else objectives


def two_estimates(tuned: Tuned) -> str:
    """`Fresh runs alone show +8.40 %, the runs of the search let expect +9.80 %: …`; empty where only fresh
    runs count."""
    own = [each for each in tuned.finalists if each.configuration == tuned.candidate]
    if not own or own[0].fresh is None or own[0].expected is None:
        return ""
    fresh, expected = (number_format.change(each) for each in (own[0].fresh, own[0].expected))
    return (
        f"Fresh runs alone show {fresh}, the runs of the search let expect {expected}: both count, "
        "as far as they agree."
    )


def left_open(study: Study, tuned: Tuned, number: int | None = None) -> str:
    """`Undecided: vm.swappiness=10. In more fresh blocks: ktrial revalidate 3`; empty where nothing is."""
    if not tuned.undecided:
        return ""
    settings, again = configuration_text(tuned.undecided), revalidating(study, number)
    return f"Undecided: {settings}. In more fresh blocks: {again}"


def revalidating(study: Study, number: int | None = None) -> str:
    """The command that measures what the search found again. `number`: in its store, where several searches
    may have the same name."""
    allowed = ["--allow-host-changes"] if study.machine.kind == "host" else []
    return shlex.join(["ktrial", "revalidate", str(number or study.name), *allowed])


def values_text(dimension: Dimension) -> str:
    """`5 … 60 %`, `100000 … 1000000000 ns (logarithmic)`, `none, bfq`."""
    if dimension.range is None:
        return ", ".join(value or "(not given)" for value in dimension.choices)
    limits = dimension.range
    unit = f" {dimension.unit}" if dimension.unit else ""
    return f"{limits.low:.12g} … {limits.high:.12g}{unit}{' (logarithmic)' if limits.log else ''}"
