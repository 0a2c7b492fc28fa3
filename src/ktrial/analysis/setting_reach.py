"""Whether what a factor sets has anything to act on: a setting of a disk that no workload uses has no effect,
nor has one of swap where there is none, and 'equivalent' would be true of nothing that anybody asked for.
"""

import re
from collections.abc import Iterator

from ktrial import workloads
from ktrial.knobs import catalogue
from ktrial.knobs.names import lenient_reference
from ktrial.model.design import Factor, FactorKind
from ktrial.model.knob import Equipment, Knob
from ktrial.model.references import STUDYS_DISK, KnobRef
from ktrial.model.study import REAL_MACHINES, Disk, MachineSettings, Study
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import WorkloadUse
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import WorkloadError

_OF_A_DISK = re.compile(r"/sys/(?:class/)?block/([^/]+)/")
_GIVES = {
    Equipment.DISK: "[machine.disk] makes one: ktrial help studies",
    Equipment.SWAP: 'leave the factor out, or measure on a system that swaps (kind = "host", "ssh")',
}


def out_of_reach(study: Study) -> Iterator[DataWarning]:
    """A warning for each factor that has nothing to act on in the study's guests. Of this system's disks and
    swap nothing is said: which of them a program uses is not known.
    """
    if study.machine.kind in REAL_MACHINES:
        return
    for factor in study.factors:
        if problem := _lacking(study, factor) or _of_disk(study, factor):
            yield DataWarning(kind=WarningKind.OUT_OF_REACH, text=problem[0], advice=problem[1])


def lacking(machine: MachineSettings, knob: Knob | None) -> Equipment | None:
    """What the machine's guests do not have, without which the knob does nothing; None where it can act."""
    has = {Equipment.DISK: machine.disk is not None, Equipment.SWAP: False}
    if machine.kind in REAL_MACHINES or knob is None or knob.acts_on is None or has[knob.acts_on]:
        return None
    return knob.acts_on


def _lacking(study: Study, factor: Factor) -> tuple[str, str] | None:
    """What the guests do not have at all."""
    if equipment := lacking(study.machine, _knob(study, factor)):
        return f"{factor.name} cannot act: the study's guests have no {equipment}", _GIVES[equipment]
    return None


def _knob(study: Study, factor: Factor) -> Knob | None:
    if factor.kind is FactorKind.BOOT:
        return catalogue.known(factor.target)
    return _named(study, factor).knob if factor.kind is FactorKind.SETTING else None


def _named(study: Study, factor: Factor) -> KnobRef:
    # A study that was stored has its names, and no references.
    return study.references.knobs.get(factor.target) or lenient_reference(factor.target)


def _of_disk(study: Study, factor: Factor) -> tuple[str, str] | None:
    """What is wrong with a setting of one disk."""
    if factor.kind is not FactorKind.SETTING:
        return None
    own, named = study.machine.disk, _named(study, factor)
    disk = _OF_A_DISK.match(named.path_in())
    is_own = bool(own) and named.instance == STUDYS_DISK
    device = own.device if own and is_own else disk[1] if disk else ""
    return _problem(study, factor, device) if device else None


def _problem(study: Study, factor: Factor, device: str) -> tuple[str, str] | None:
    """What is wrong, and what to do about it; None where nothing is."""
    own = study.machine.disk
    if own is None:
        text = f"{factor.name} is set on {device}, and the study has no disk: no workload uses {device}"
        return text, "[machine.disk] makes a disk, and NAME@disk is a setting of it"
    if device != own.device:
        text = (
            f"{factor.name} is set on {device}, the study's disk is {own.device}: no workload uses {device}"
        )
        return text, f"name the study's disk: {factor.target.partition('@')[0]}@disk"
    if not any(_works_on(own, use, study) for use in study.workloads):
        text = f"{factor.name} is set on the study's disk, and no workload names a path on it ({own.path})"
        return text, f'give a workload a path there: path = "{own.path}"'
    return None


def _works_on(disk: Disk, use: WorkloadUse, study: Study) -> bool:
    """Whether anything that the workload is told is below the place where the disk is mounted."""
    words = [str(value) for value in (_defaults(use) | use.parameters).values()]
    words += [
        str(level)
        for factor in study.factors
        if factor.kind is FactorKind.PARAMETER and factor.target.partition(".")[0] == use.name
        for level in factor.levels
    ]
    if use.command:
        words += [*use.command.argv, *use.command.environment.values(), use.command.directory]
    return any(disk.path in word for word in words)


def _defaults(use: WorkloadUse) -> dict[str, int | float | str]:
    """Of the parameters that it does not set; none where the workload is not known any more."""
    try:
        return {one.name: one.default for one in workloads.find(use).description.parameters}
    except (WorkloadError, GuestProgramsMissing):
        return {}
