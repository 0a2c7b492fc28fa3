"""What a search is after and what it varies, in words."""

from collections.abc import Mapping

from ktrial.model.tuning import Dimension, Goal


def configuration_text(configuration: Mapping[str, str]) -> str:
    """`vm.swappiness=10, vm.dirty_ratio=40`; `as it was` for the baseline."""
    return (
        ", ".join(f"{name}={value or '(not given)'}" for name, value in configuration.items()) or "as it was"
    )


def wanted(goal: Goal) -> str:
    """`higher rps, with p99 <= 20 ms`."""
    objectives = " and ".join(f"{one.direction.value} {one.metric}" for one in goal.objectives)
    return f"{objectives}, with {', '.join(map(str, goal.guards))}" if goal.guards else objectives


def values_text(dimension: Dimension) -> str:
    """`5 … 60 %`, `100000 … 1000000000 ns (logarithmic)`, `none, bfq`."""
    if dimension.range is None:
        return ", ".join(value or "(not given)" for value in dimension.choices)
    limits = dimension.range
    unit = f" {dimension.unit}" if dimension.unit else ""
    return f"{limits.low:.12g} … {limits.high:.12g}{unit}{' (logarithmic)' if limits.log else ''}"
