"""What monitors cost the workloads that they watch, from pairs of runs with and without them."""

import math
import statistics
from collections.abc import Iterable

from ktrial.format.number_format import tenths
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import Moments, mean_interval

_APART = "of each pair one had it and one had not: the study's numbers are without it, its counts with it"


def costs(trials: Iterable[Trial]) -> tuple[DataWarning, ...]:
    """What each monitor costs the workloads, as a note: the geometric mean over the trials, its interval by
    Student's t on the logarithms.
    """
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    for trial in trials:
        for one in trial.provenance.monitored:
            if one.slowdown:
                of_monitor = found.setdefault(one.monitor, {})
                of_monitor.setdefault((one.workload, one.metric), []).append(math.log(one.slowdown))
    return tuple(
        DataWarning(
            kind=WarningKind.MONITOR_COST,
            text=f"{monitor} costs {', '.join(_cost(*of, logs) for of, logs in by_metric.items())}",
            advice=_APART,
        )
        for monitor, by_metric in sorted(found.items())
    )


def _cost(workload: str, metric: str, logs: list[float]) -> str:
    """`ls +1.8 % (wall time; 95 % interval −0.6 % to +4.2 %; 8 pairs of runs)`."""
    mean = statistics.fmean(logs)
    runs = f"{len(logs)} {'pair' if len(logs) == 1 else 'pairs'} of runs"
    details = "; ".join(filter(None, (metric, _interval(mean, logs), runs)))
    return f"{workload} {_percent(mean)} ({details})"


def _interval(mean: float, logs: list[float]) -> str:
    if len(logs) < 2:
        return ""
    try:
        low, high = mean_interval(Moments("", mean, statistics.stdev(logs), len(logs)))
    except ValueError:
        return ""
    return f"95 % interval {_percent(low)} to {_percent(high)}"


def _percent(log: float) -> str:
    """A slowdown as the relative change that it is: `+1.2 %`."""
    return f"{tenths(math.expm1(log))} %"
