"""What monitors read of this system while a workload ran, from the texts of the files."""

from collections.abc import Iterable, Sequence

from ktrial import monitors
from ktrial.model.time_series import Sampled, SeriesKind
from ktrial.target import SampledFiles, StepResult

_SECOND = 1e9


def sampled_of(workload: str, results: Iterable[StepResult]) -> Sampled | None:
    """All rows of one workload, as if nothing had been between them; None: nothing was read."""
    rows = tuple(results)
    parts = [each.sampled for each in rows if each.sampled is not None]
    if not parts:
        return None
    moments = [texts for part in parts for texts in _moments(part)]
    return Sampled(
        workload=workload,
        interval=max(part.every_ns for part in parts) / _SECOND,
        readings=sum(part.readings for part in parts),
        cost_seconds=sum(part.cost_ns for part in parts) / _SECOND,
        wall_seconds=sum(each.wall_ns for each in rows) / _SECOND,
        times=tuple(_times(parts)),
        series=monitors.series(moments),
    )


def rises(sampled: Sampled) -> dict[str, float]:
    """Counter → by how much it rose from the first moment to the last."""
    return {
        one.name: one.values[-1] - one.values[0] for one in sampled.series if one.kind is SeriesKind.COUNTER
    }


def _times(parts: Sequence[SampledFiles]) -> Iterable[float]:
    begin = 0
    for part in parts:
        yield from ((begin + at) / _SECOND for at in part.at_ns)
        begin += part.at_ns[-1]


def _moments(part: SampledFiles) -> Iterable[dict[str, str]]:
    for place in range(len(part.at_ns)):
        yield {file: texts[place] for file, texts in part.texts.items() if texts[place]}
