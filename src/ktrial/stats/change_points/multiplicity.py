"""Many series at once: a workload's history is one of some dozens, and each may show a false change."""

from collections.abc import Mapping

from numpy.typing import ArrayLike

from ktrial.stats.change_points.noisy import ALPHA, Shift, p_of_any, shifts


def shifts_of_all(
    series: Mapping[str, ArrayLike], *, alpha: float = ALPHA, remembers: bool = True
) -> dict[str, tuple[Shift, ...]]:
    """Name → its changes. Any false change in any series has a chance of at most `alpha`.

    Holm's step-down (Scandinavian Journal of Statistics 6, 1979) over the series, by the p value of 'no
    change at all': the series that are left get their changes at the level at which they passed.
    """
    p = {name: p_of_any(values, remembers=remembers) for name, values in series.items()}
    found: dict[str, tuple[Shift, ...]] = dict.fromkeys(series, ())
    for passed, name in enumerate(sorted(p, key=lambda one: p[one])):
        level = alpha / (len(p) - passed)
        if p[name] > level:
            break
        found[name] = shifts(series[name], alpha=level, remembers=remembers)
    return found
