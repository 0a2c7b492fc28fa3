"""Which treatments scatter otherwise than the baseline: what stands beside their verdicts."""

from ktrial.format import number_format
from ktrial.model.comparison import Comparison, Scatter, Variability
from ktrial.model.study import StudyRecord

_WORDS = {
    Scatter.WIDER: "scatters more",
    Scatter.NARROWER: "scatters less",
    Scatter.TWO_MODES: "two modes, the baseline one",
    Scatter.ONE_MODE: "one mode, the baseline two",
}

Place = tuple[str, str, str, str]
"""Workload, metric, treatment and baseline."""


def by_place(record: StudyRecord) -> dict[Place, str]:
    """What stands beside a verdict, in words; of two findings for one comparison both."""
    remarks: dict[Place, str] = {}
    for one in record.result.variability:
        place = (one.workload, one.metric, one.treatment, one.baseline)
        remarks[place] = "; ".join(filter(None, (remarks.get(place, ""), beside(one))))
    return remarks


def place_of(one: Comparison) -> Place:
    """Where a comparison's findings are looked up."""
    return (one.workload, one.metric, one.treatment, one.baseline)


def beside(one: Variability) -> str:
    """`scatters more: 5.2 %, the baseline 0.02 % (p 0.001)`."""
    chance = f"p {one.p:.2g}"
    if one.modes:
        values = " and ".join(
            f"{number_format.number(mode.value)} ({number_format.counted(mode.trials, 'trial')})"
            for mode in one.modes
        )
        return f"{_WORDS[one.scatter]}: about {values} ({chance})"
    baseline = number_format.percentage(one.baseline_spread)
    spreads = f"{number_format.percentage(one.spread)}, the baseline {baseline}"
    return f"{_WORDS[one.scatter]}: {spreads} ({chance})"


def scatters(record: StudyRecord) -> dict[Place, tuple[Scatter, ...]]:
    """How the treatments scatter that do so otherwise than the baseline."""
    kinds: dict[Place, tuple[Scatter, ...]] = {}
    for one in record.result.variability:
        place = (one.workload, one.metric, one.treatment, one.baseline)
        kinds[place] = (*kinds.get(place, ()), one.scatter)
    return kinds
