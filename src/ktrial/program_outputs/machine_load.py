"""What a machine did while something ran: samples of its CPUs, as several programs print them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import measured

SHARES = ("CPU user", "CPU system", "I/O wait", "steal", "CPU idle")
"""Of the CPUs' time, in percent: nice counts as user, interrupts as system, guests as user."""
QUEUE, SWITCHES, SWAPPED = "run queue", "context switches", "swapped"
COLUMNS = (
    *(Column(name, "%", Direction.HIGHER if name == "CPU idle" else Direction.LOWER) for name in SHARES),
    Column(QUEUE, "", Direction.LOWER),
    Column(SWITCHES, "1/s", Direction.LOWER),
)
FORMATS = ("sar", "sysstat", "vmstat")
"""Whose numbers are conditions of what ran; measurements only where somebody says so."""
_OF_SYSSTAT = {
    "CPU user": ("user", "usr", "nice", "guest", "gnice"),
    "CPU system": ("system", "sys", "irq", "soft"),
    "I/O wait": ("iowait",),
    "steal": ("steal",),
    "CPU idle": ("idle",),
    QUEUE: ("runq-sz",),
    SWITCHES: ("cswch", "cswch/s"),
    SWAPPED: ("pswpin", "pswpout", "pswpin/s", "pswpout/s"),
}
"""What sysstat's programs call it."""
_SLACK = 3.0
"""Percent that shares may lack or have too much: they are rounded, and CPUs are not read at one instant."""
_ABOUT = 10


@dataclass(frozen=True)
class Sample:
    """One line or record: what it tells, by name, and where it stands."""

    numbers: dict[str, float]
    where: str


def of_sysstat(facts: Mapping[str, object], format: str, where: str) -> dict[str, float]:
    """The numbers, by their names here. Raises OutputDamaged."""
    numbers = {
        name: sum(measured(facts[key], format, f"{where}, {key}") for key in keys if key in facts)
        for name, keys in _OF_SYSSTAT.items()
        if any(key in facts for key in keys)
    }
    if missing := next((name for name in SHARES if name not in numbers), ""):
        raise OutputDamaged(format=format, where=where, problem=f"its {missing} is not there")
    return numbers


def report(format: str, samples: Sequence[Sample], notes: Sequence[Note] = ()) -> Report:
    """The means, and what they are as conditions. Raises OutputDamaged, OutputEmpty."""
    if not samples:
        raise OutputEmpty(format=format, problem="no sample of the CPUs is in it")
    for sample in samples:
        total = sum(sample.numbers.get(name, 0.0) for name in SHARES)
        if abs(total - 100) > _SLACK:
            problem = f"the shares of the CPUs' time are {total:g} % together"
            raise OutputDamaged(format=format, where=sample.where, problem=problem)
    means = {
        column.metric: fmean(sample.numbers[column.metric] for sample in samples)
        for column in COLUMNS
        if all(column.metric in sample.numbers for sample in samples)
    }
    alike = sum(first.numbers == second.numbers for first, second in pairwise(samples))
    doubts = [Note(f"{alike} samples are like the one before to the last digit")] if alike else []
    return Report(
        tuple(
            Measured(column.metric, (means[column.metric],), column.unit, column.direction)
            for column in COLUMNS
            if means.get(column.metric)
        ),
        notes=(*notes, *doubts, Note(f"the numbers are means of {len(samples)} samples, which are one run")),
        conditions=_conditions(means, samples),
    )


def _conditions(means: dict[str, float], samples: Sequence[Sample]) -> dict[str, str]:
    """Coarse: to a tenth of the CPUs' time, for no two runs have quite the same."""
    told = {
        "CPU use": f"{round((100 - means['CPU idle']) / _ABOUT) * _ABOUT} %",
        "steal": f"{round(means.get('steal', 0.0) / _ABOUT) * _ABOUT} %",
    }
    if any(SWAPPED in sample.numbers for sample in samples):
        told["swapping"] = "yes" if any(sample.numbers.get(SWAPPED) for sample in samples) else "no"
    return told
