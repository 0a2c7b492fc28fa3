"""Whether what a factor sets has anything to act on: before a study is run, and by what its trials counted.

A setting of a disk that no workload uses has no effect, nor has one of swap where nothing is swapped, and
'equivalent' would be true of nothing that anybody asked for.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ktrial.knobs import catalogue
from ktrial.knobs.catalogue import lenient_reference
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Factor, FactorKind
from ktrial.model.knob import Activity, Equipment, Knob
from ktrial.model.references import STUDYS_DISK, KnobRef
from ktrial.model.study import REAL_MACHINES, Disk, MachineSettings, Study
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import WorkloadUse

_OF_A_DISK = re.compile(r"/sys/(?:class/)?block/([^/]+)/")
_BOOT = "boot:"
_GIVES = {
    Equipment.DISK: "[machine.disk] in a study file makes one: ktrial help studies",
    Equipment.SWAP: "give the guest swap and less memory (--swap 64M --memory 128M; in a study file, in "
    '[machine], swap = "64M"), or measure on a system that swaps: machine = "host"',
}
_GIVES_HERE = "turn swap on (mkswap, swapon), or leave the setting out"


class Inert(NamedTuple):
    """A factor or a knob that has nothing to act on."""

    warning: DataWarning
    certain: bool = True
    """Whether no program can change that; else a command of the user's may know what ktrial does not."""


def inert_factors(study: Study) -> Iterator[Inert]:
    """Each factor that has nothing to act on in the study's guests.

    Of this system's disks and swap nothing is said: which of them a program uses is not known.
    """
    if study.machine.kind in REAL_MACHINES:
        return
    for factor in study.factors:
        if equipment := lacking(study.machine, _knob(study, factor)):
            yield inert(factor.name, "the study's guests have", equipment)
        elif problem := _of_disk(study, factor):
            certain = not any(use.command for use in study.workloads)
            warning = DataWarning(kind=WarningKind.OUT_OF_REACH, text=problem[0], advice=problem[1])
            yield Inert(warning, certain)


def inert_knobs(machine: MachineSettings, names: Iterable[str], *, has_swap: bool = True) -> Iterator[Inert]:
    """Each knob that has nothing to act on: in the machine's guests, or on this system, which may have no
    swap.
    """
    for name in names:
        knob = catalogue.get(name.removeprefix(_BOOT)) or lenient_reference(name).knob
        if equipment := lacking(machine, knob):
            yield inert(name, "the guests have", equipment)
        elif machine.kind == "host" and not has_swap and knob and knob.acts_on is Equipment.SWAP:
            yield inert(name, "this system has", Equipment.SWAP, _GIVES_HERE)


def inert(name: str, who_has: str, equipment: Equipment, advice: str = "") -> Inert:
    """That the knob has nothing to act on: `the guests have` no swap."""
    text = f"{name} cannot act: {who_has} no {equipment}"
    return Inert(DataWarning(kind=WarningKind.OUT_OF_REACH, text=text, advice=advice or _GIVES[equipment]))


def lacking(machine: MachineSettings, knob: Knob | None) -> Equipment | None:
    """What the machine's guests do not have, without which the knob does nothing; None where it can act."""
    has = {Equipment.DISK: machine.disk is not None, Equipment.SWAP: machine.swap_mib > 0}
    if machine.kind in REAL_MACHINES or knob is None or knob.acts_on is None or has[knob.acts_on]:
        return None
    return knob.acts_on


# What trials counted: whether a setting that was made had anything to act on while the workload ran.


_LEAST_SHARE = 0.01


class _Sign(NamedTuple):
    """How trials show that something happened."""

    counters: tuple[str, ...]
    """Any of them rose: /proc/vmstat (mm/vmstat.c)."""
    nothing: str
    """That it did not, in words."""
    in_guest: str
    """What makes it happen in a guest."""
    on_system: str = "measure a workload that needs more memory than there is"
    """The same where a real machine is measured."""
    beside: tuple[str, ...] = ()
    """Counters of which those are a hundredth at least: a stray page is nothing to choose."""

    def shown(self, rises: Mapping[str, float]) -> bool:
        """Whether it happened, by the rise of each counter."""
        happened, beside = (
            sum(rises.get(name, 0.0) for name in names) for names in (self.counters, self.beside)
        )
        return happened > 0 and happened >= beside * _LEAST_SHARE


_LESS_MEMORY = (
    "give the guest less memory than the workload needs, now {memory} MiB: memory in [machine], or --memory"
)
_SWAPPED = _Sign(
    # Pages of zeros are swapped without a write since Linux 6.12.
    (
        *("vmstat.pswpout", "vmstat.swpout_zero", "vmstat.zswpout"),
        *("vmstat.pswpin", "vmstat.swpin_zero", "vmstat.zswpin"),
    ),
    "nothing was swapped",
    _LESS_MEMORY,
)
_FILES_RECLAIMED = _Sign(
    ("vmstat.pgsteal_file",),
    "memory was swapped, and less than 1 page of a file was dropped for 100 swapped ones",
    "measure a workload that also reads files from a disk: [machine.disk] in a study file",
    beside=("vmstat.pgsteal_anon",),
)
_RECLAIMED = _Sign(
    ("vmstat.slabs_scanned", "vmstat.pgscan_kswapd", "vmstat.pgscan_direct"),
    "no memory was reclaimed",
    _LESS_MEMORY,
)
_WRITTEN = _Sign(
    ("vmstat.nr_dirtied", "vmstat.nr_written", "vmstat.pgpgout"),
    "nothing was written to a disk",
    *("measure a workload that writes to the disk",) * 2,
)
_SIGNS = {
    Activity.SWAPPING: (_SWAPPED,),
    Activity.BALANCE: (_SWAPPED, _FILES_RECLAIMED),
    Activity.RECLAIM: (_RECLAIMED,),
    Activity.WRITING: (_WRITTEN,),
}
"""What a knob acts on → all that has to happen."""
_VMSTAT = "vmstat."


def with_reach(
    study: Study, trials: Mapping[str, Sequence[Trial]], comparisons: Iterable[Comparison]
) -> tuple[Comparison, ...]:
    """The comparisons, those not tested where all that differs are settings that reached nothing.

    That takes the place of equivalent and inconclusive, where neither side shows that there was anything to
    act on.
    `trials`: a treatment's label → its trials. Where they read no counters, nothing is known.
    """
    rose = _rises(chain.from_iterable(trials.values()))
    treatments = {
        trial.planned.treatment.label: trial.planned.treatment
        for of_treatment in trials.values()
        for trial in of_treatment
    }

    def judged(comparison: Comparison) -> Comparison:
        sides = [treatments.get(label) for label in (comparison.baseline, comparison.treatment)]
        open_ = comparison.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}
        if None in sides or not open_ or None in {comparison.baseline_value, comparison.value}:
            return comparison
        before, after = (side for side in sides if side)
        reasons = [
            _idle(study, factor, comparison, rose)
            for factor in study.factors
            if before.levels[factor.name] != after.levels[factor.name]
        ]
        if not reasons or not all(reasons):
            return comparison
        reason = "; ".join(dict.fromkeys(reasons))
        nothing = {"verdict": Verdict.NOT_TESTED, "beside": "", "unseen": None}
        return comparison.model_copy(update=nothing | {"reason": reason})

    return tuple(map(judged, comparisons))


_Rises = Mapping[str, Mapping[str, float]]
"""A treatment's label → by how much the counters of /proc/vmstat rose in all of its trials."""


def _rises(trials: Iterable[Trial]) -> _Rises:
    """Of all workloads together: what a setting does not change in one of them is equivalent there."""
    rose: dict[str, dict[str, float]] = {}
    for trial in trials:
        if trial.is_measured:
            for counter in trial.counters:
                if counter.name.startswith(_VMSTAT):
                    rises = rose.setdefault(trial.planned.treatment.label, {})
                    rises[counter.name] = rises.get(counter.name, 0.0) + counter.delta
    return rose


def _idle(study: Study, factor: Factor, comparison: Comparison, rose: _Rises) -> str:
    """Why the factor had nothing to act on; empty where it had, or nobody knows."""
    knob = _knob(study, factor)
    if knob is None or knob.activity is None:
        return ""
    counted = [rose.get(label) for label in (comparison.baseline, comparison.treatment)]
    if None in counted and not lacking(study.machine, knob):
        return ""
    missing = next(
        (
            sign
            for sign in _SIGNS[knob.activity]
            if not any(sign.shown(rises) for rises in counted if rises is not None)
        ),
        None,
    )
    return f"{missing.nothing}: {factor.name} had nothing to act on" if missing else ""


def reach_sentence(comparisons: Iterable[Comparison]) -> str:
    """`Nothing was swapped: vm.swappiness had nothing to act on.`, of all comparisons that are not tested."""
    reasons = dict.fromkeys(
        comparison.reason for comparison in comparisons if comparison.verdict is Verdict.NOT_TESTED
    )
    return " ".join(f"{reason[0].upper()}{reason[1:]}." for reason in reasons)


def untested(study: Study, comparisons: Iterable[Comparison]) -> tuple[DataWarning, ...]:
    """A warning for each reason why comparisons are not tested, with what would test them."""
    reasons = dict.fromkeys(
        comparison.reason for comparison in comparisons if comparison.verdict is Verdict.NOT_TESTED
    )
    return tuple(
        DataWarning(kind=WarningKind.NOT_TESTED, text=reason, advice=_what_tests_it(study.machine, reason))
        for reason in reasons
    )


def _what_tests_it(machine: MachineSettings, reason: str) -> str:
    sign = next(sign for signs in _SIGNS.values() for sign in signs if reason.startswith(f"{sign.nothing}: "))
    if machine.kind in REAL_MACHINES:
        return sign.on_system
    advice = sign.in_guest.format(memory=machine.memory_mib)
    swap = "give the guest swap: --swap 64M; " if sign is _SWAPPED and not machine.swap_mib else ""
    return f'{swap}{advice}; or measure on this system: machine = "host"'


# The factors' knobs, and settings of one disk.


def _knob(study: Study, factor: Factor) -> Knob | None:
    if factor.kind is FactorKind.BOOT:
        return catalogue.get(factor.target)
    return _named(study, factor).knob if factor.kind is FactorKind.SETTING else None


def _named(study: Study, factor: Factor) -> KnobRef:
    # A study that was stored has its names, and no references.
    return study.references.knobs.get(factor.target) or lenient_reference(factor.target)


def _of_disk(study: Study, factor: Factor) -> tuple[str, str] | None:
    """What is wrong with a setting of one disk, and what to do about it; None where nothing is."""
    if factor.kind is not FactorKind.SETTING:
        return None
    disk, named = study.machine.disk, _named(study, factor)
    path = _OF_A_DISK.match(named.path_in())
    device = disk.device if disk and named.instance == STUDYS_DISK else path[1] if path else ""
    if not device:
        return None
    if disk is None:
        text = f"{factor.name} is set on {device}, and the study has no disk: no workload uses {device}"
        return text, "[machine.disk] makes a disk, and NAME@disk is a setting of it"
    if device != disk.device:
        text = (
            f"{factor.name} is set on {device}, the study's disk is {disk.device}: no workload uses {device}"
        )
        return text, f"name the study's disk: {factor.target.partition('@')[0]}@disk"
    if not any(_works_on(disk, use, study) for use in study.workloads):
        text = f"{factor.name} is set on the study's disk, and no workload names a path on it ({disk.path})"
        return text, f'give a workload a path there: path = "{disk.path}"'
    return None


def _works_on(disk: Disk, use: WorkloadUse, study: Study) -> bool:
    """Whether anything that the workload is told is below the place where the disk is mounted."""
    from ktrial import workloads  # only a setting that may not rparameter a workload asks for its parameters
    from ktrial.target.errors import GuestProgramsMissing
    from ktrial.workloads.errors import WorkloadError

    try:
        described = workloads.find(use).description.parameters
    except (WorkloadError, GuestProgramsMissing):
        described = ()  # the workload is not known any more
    defaults = {parameter.name: parameter.default for parameter in described}
    words = [str(value) for value in (defaults | use.parameters).values()]
    words += [
        str(level)
        for factor in study.factors
        if factor.kind is FactorKind.PARAMETER and factor.target.partition(".")[0] == use.name
        for level in factor.levels
    ]
    if use.command:
        words += [*use.command.argv, *use.command.environment.values(), use.command.directory]
    return any(disk.path in word for word in words)
