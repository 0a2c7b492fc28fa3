"""Where the CPUs wait, of studies whose machine has the monitor `waits`."""

from collections.abc import Iterator, Mapping

from ktrial.analysis.scaling import apart, cpus_factor
from ktrial.model.design import Treatment
from ktrial.model.parallel import WAITS, waits_counter
from ktrial.model.plan import treatments
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.waits import Waits

_WORK, _WAITING, _LINES, _IDLE = (waits_counter(part) for part in ("work", "waiting", "cache lines", "idle"))


def waits(record: StudyRecord) -> tuple[Waits, ...]:
    """By workload and treatment, in the study's order, from the fewest CPUs to the most.

    Of several trials under one perturbation the first counts: they agree.
    """
    if WAITS not in record.study.machine.monitors:
        return ()
    uses = {use.label: place for place, use in enumerate(record.study.workloads)}
    counted: dict[tuple[str, str, int], Waits] = {}
    for trial in record.trials:
        for one in _of_trial(record, trial):
            counted.setdefault((one.workload, one.treatment, one.cpus), one)
    places = {_apart(record, one)[1]: place for place, one in enumerate(treatments(record.study))}
    order = sorted(
        counted, key=lambda key: (uses.get(key[0], len(uses)), places.get(key[1], len(places)), key[2])
    )
    return tuple(counted[key] for key in order)


def _apart(record: StudyRecord, treatment: Treatment) -> tuple[int, str]:
    """The number of CPUs, and the label of what else the treatment is."""
    factor = cpus_factor(record.study)
    return apart(treatment, factor) if factor else (record.study.machine.cpus, treatment.label)


def _of_trial(record: StudyRecord, trial: Trial) -> Iterator[Waits]:
    cpus, others = _apart(record, trial.planned.treatment)
    by_workload: dict[str, dict[str, float]] = {}
    for counter in trial.counters:
        by_workload.setdefault(counter.workload, {})[counter.name] = counter.delta
    for workload, counted in by_workload.items():
        whole = sum(counted.get(name, 0.0) for name in (_WORK, _WAITING, _LINES, _IDLE))
        if whole > 0:
            yield Waits(
                workload=workload,
                treatment=others,
                cpus=cpus,
                waiting=(counted.get(_WAITING, 0.0) + counted.get(_LINES, 0.0)) / whole,
                waiting_in=_waiting_in(counted),
                idle=counted.get(_IDLE, 0.0) / whole,
                asleep_in=_first(counted, "idle")[1],
            )


def _waiting_in(counted: Mapping[str, float]) -> str:
    in_loops, for_lines = _first(counted, "waiting"), _first(counted, "cache lines")
    return f"cache lines in {for_lines[1]}" if for_lines[0] > in_loops[0] else in_loops[1]


def _first(counted: Mapping[str, float], part: str) -> tuple[float, str]:
    """Nanoseconds of the place that has most of a part, and the place; 0 and nothing where there is none."""
    start = waits_counter(part, "")
    there = [(spent, name) for name, spent in counted.items() if name.startswith(start) and spent > 0]
    spent, name = min(there, key=lambda one: (-one[0], one[1]), default=(0.0, start))
    return spent, name.removeprefix(start)
