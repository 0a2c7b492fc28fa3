"""Whether what a factor sets is something that the study's workloads use: a setting of another disk has no
effect, and 'equivalent' would be true of nothing that anybody asked for.
"""

import re
from collections.abc import Iterator

from ktrial import workloads
from ktrial.knobs.names import lenient_reference
from ktrial.model.design import Factor, FactorKind
from ktrial.model.references import STUDYS_DISK
from ktrial.model.study import REAL_MACHINES, Disk, Study
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import WorkloadUse
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import WorkloadError

_OF_A_DISK = re.compile(r"/sys/(?:class/)?block/([^/]+)/")


def out_of_reach(study: Study) -> Iterator[DataWarning]:
    """A warning for each setting of a disk that no workload works on. Of this system's disks nothing is said:
    which of them a program uses is not known.
    """
    if study.machine.kind in REAL_MACHINES:
        return
    own = study.machine.disk
    for factor in study.factors:
        if factor.kind is not FactorKind.SETTING:
            continue
        # A study that was stored has its names, and no references.
        named = study.references.knobs.get(factor.target) or lenient_reference(factor.target)
        disk = _OF_A_DISK.match(named.path_in())
        is_own = bool(own) and named.instance == STUDYS_DISK
        device = own.device if own and is_own else disk[1] if disk else ""
        if device and (problem := _problem(study, factor, device)):
            yield DataWarning(kind=WarningKind.OUT_OF_REACH, text=problem[0], advice=problem[1])


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
