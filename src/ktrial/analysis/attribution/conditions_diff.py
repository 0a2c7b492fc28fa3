"""What differs between two treatments beside their functions: levels, configuration, settings, counters."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ktrial.analysis.attribution.config_candidates import differing_options, heavy_subsystems
from ktrial.analysis.attribution.setting_effects import affected_metrics, setting_owner
from ktrial.errors import KtrialError
from ktrial.kernels.diff_sides import known_of
from ktrial.kernels.kconfig.implied_options import ConfigSide
from ktrial.kernels.kconfig.renamed_options import paired
from ktrial.knobs.values import same
from ktrial.model.attribution import Explanation
from ktrial.model.boot import Boot
from ktrial.model.conditions_diff import (
    CounterDifference,
    Differences,
    KernelValues,
    LevelDifference,
    OptionDifference,
    ValueDifference,
)
from ktrial.model.design import FactorKind, Treatment
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.study import Study
from ktrial.model.trial import OPERATIONS, Trial

_SMALL = 10.0
"""Added to both sides of a ratio, over the whole run; and what is less apart is no finding."""
_SMALLEST_DIFFERENCE = math.log(1.01)
_LAST = "network"
_DISKS = "/sys/block/"
_TIMES = re.compile(r".*_ns|.*_time|.*run_delay|stat\.cpu\..*|rusage\.maxrss_kib")
"""Counters that are no events: times, which most kernels only sample at each tick."""


Values = Callable[[Boot], KernelValues | None]
"""A boot's settings; None where they are not to be read. May raise KtrialError."""


@dataclass(frozen=True)
class ProfiledArm:
    """One treatment, with what is known of it."""

    treatment: Treatment
    boot: Boot | None
    """None where its kernel is not there any more."""
    trial: Trial | None
    """The trial that was profiled; None where it was not kept."""


@dataclass
class _Unknowns:
    unknown: list[str] = field(default_factory=list)


def differences(
    study: Study,
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    values: Values,
    kernels: Sequence[KernelDifference] = (),
) -> Differences:
    """Everything that differs. What cannot be told is said in `unknown`; nothing is raised for it.

    `kernels`: what is known of the differences between the study's kernels, to fold options by.
    """
    unknowns = _Unknowns()
    first, second = ((arm.boot.parameters if arm.boot else ()) for arm in (before, after))
    return Differences(
        levels=_levels(study, before.treatment, after.treatment),
        boot_before=tuple(one for one in first if one not in second),
        boot_after=tuple(one for one in second if one not in first),
        options=_options(explanation, before, after, unknowns, kernels),
        values=_with_effects(
            study, explanation, before, after, _values(explanation, before, after, values, unknowns)
        ),
        counters=_counters(explanation, before, after, unknowns),
        unknown=tuple(unknowns.unknown),
    )


def differing_values(before: KernelValues, after: KernelValues) -> tuple[ValueDifference, ...]:
    """Settings with other values first, then those that only one of the two has; each by path.

    A file that could not be read in one of the two is no difference, nor is `Y` for `1`.
    """
    unknown = before.left_out.keys() | after.left_out.keys()
    paths = sorted((before.values.keys() | after.values.keys()) - unknown)
    settings = [
        ValueDifference(
            path=path,
            before=before.values.get(path),
            after=after.values.get(path),
            subsystem=setting_owner(path),
        )
        for path in paths
    ]
    differing = [one for one in settings if not _is_same(one.before, one.after)]
    return tuple(sorted(differing, key=_one_sided))


def _one_sided(one: ValueDifference) -> bool:
    return None in (one.before, one.after)


def _rank(subsystem: str, heavy: list[str]) -> int:
    """Those of heavy subsystems first; the network's, which are many, last."""
    if subsystem in heavy:
        return heavy.index(subsystem)
    return len(heavy) + (subsystem == _LAST)


def _is_same(before: str | None, after: str | None) -> bool:
    return before == after or (before is not None and after is not None and same(before, after))


def _levels(study: Study, before: Treatment, after: Treatment) -> tuple[LevelDifference, ...]:
    kinds = {factor.name: factor.kind for factor in study.factors}
    return tuple(
        LevelDifference(factor=name, before=_shown(kinds.get(name), old), after=_shown(kinds.get(name), new))
        for name, old in before.levels.items()
        if (new := after.levels[name]) != old
    )


def _shown(kind: FactorKind | None, level: object) -> str:
    """A boot parameter without a value is not given at all."""
    return str(level) if str(level) or kind is not FactorKind.BOOT else "(not given)"


def _options(
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    unknowns: _Unknowns,
    kernels: Sequence[KernelDifference],
) -> tuple[OptionDifference, ...]:
    configs: list[ConfigSide] = []
    for arm in (before, after):
        config = known_of(arm.boot.kernel, None) if arm.boot else None
        if config is None:
            unknowns.unknown.append(f"options: the configuration of {arm.treatment.label} is not known")
            return ()
        configs.append(config)
    pair = paired(configs[0], configs[1])
    follows = _follows(kernels, before, after)
    return differing_options(explanation, pair.before.config, pair.after.config, follows)


def _follows(
    kernels: Sequence[KernelDifference], before: ProfiledArm, after: ProfiledArm
) -> Mapping[str, str]:
    """Option → the option that it follows from, as the study has kept it; empty where it has not."""
    pair = {arm.boot.kernel.digest for arm in (before, after) if arm.boot}
    for one in kernels:
        if {one.before.digest, one.after.digest} == pair:
            return {each.option: each.follows for each in one.options if each.follows}
    return {}


def _with_effects(
    study: Study,
    explanation: Explanation,
    before: ProfiledArm,
    after: ProfiledArm,
    settings: tuple[ValueDifference, ...],
) -> tuple[ValueDifference, ...]:
    """With the settings of the study's own disk; those that affect what was measured come first."""
    if study.machine.disk:
        settings = tuple(one for one in settings if not one.path.startswith(_DISKS))
    measured = _measured(explanation, before, after)
    told = [
        one.model_copy(
            update={"governs": affected_metrics(one.path, one.before, one.after, measured, study.margin)}
        )
        if one.before is not None and one.after is not None
        else one
        for one in (*_of_disk(before, after), *settings)
    ]
    return tuple(sorted(told, key=lambda one: not one.governs))


def _of_disk(before: ProfiledArm, after: ProfiledArm) -> Iterable[ValueDifference]:
    """What the disk had while the workloads ran, as both trials tell it."""
    old, new = (arm.trial.settings if arm.trial else {} for arm in (before, after))
    for path in sorted(old.keys() & new.keys()):
        if path.startswith(_DISKS) and not _is_same(old[path], new[path]):
            yield ValueDifference(path=path, before=old[path], after=new[path], subsystem=setting_owner(path))


def _measured(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm
) -> dict[str, tuple[float, float]]:
    """Metric → what both trials measured of it."""
    old, new = (
        {
            sample.metric: sample.value
            for sample in (arm.trial.samples if arm.trial else ())
            if sample.workload == explanation.workload
        }
        for arm in (before, after)
    )
    return {name: (old[name], new[name]) for name in old.keys() & new.keys()}


def _values(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm, values: Values, unknowns: _Unknowns
) -> tuple[ValueDifference, ...]:
    if before.boot == after.boot:
        return ()
    heavy = heavy_subsystems(explanation)
    told: list[KernelValues] = []
    for arm in (before, after):
        try:
            read = values(arm.boot) if arm.boot else None
        except KtrialError as error:
            unknowns.unknown.append(f"settings of {arm.treatment.label}: {error.message}")
            return ()
        if read is None:
            unknowns.unknown.append(f"settings: those of {arm.treatment.label} were not read")
            return ()
        told.append(read)
    differing = differing_values(told[0], told[1])
    return tuple(sorted(differing, key=lambda one: (_one_sided(one), _rank(one.subsystem, heavy))))


def _counters(
    explanation: Explanation, before: ProfiledArm, after: ProfiledArm, unknowns: _Unknowns
) -> tuple[CounterDifference, ...]:
    if before.trial is None or after.trial is None:
        unknowns.unknown.append("counters: a trial that was profiled is not in the store")
        return ()
    old, new = (_deltas(arm.trial, explanation.workload) for arm in (before, after) if arm.trial)
    sides = explanation.before, explanation.after
    counted = all(one.get(OPERATIONS) for one in (old, new))
    operations = [
        one.pop(OPERATIONS, 0.0) if counted else float(side.operations)
        for one, side in zip((old, new), sides, strict=True)
    ]
    differing = {
        name: abs(_size(new.get(name, 0.0), operations[1]) - _size(old.get(name, 0.0), operations[0]))
        for name in (old.keys() | new.keys()) - {OPERATIONS}
        if _events_apart(old.get(name, 0.0), new.get(name, 0.0), operations) >= _SMALL
    }
    return tuple(
        CounterDifference(
            counter=name, before=old.get(name, 0.0) / operations[0], after=new.get(name, 0.0) / operations[1]
        )
        for name in _ranked(differing)
    )


def _deltas(trial: Trial, workload: str) -> dict[str, float]:
    return {
        one.name: one.delta
        for one in trial.counters
        if one.workload == workload and not _TIMES.fullmatch(one.name)
    }


def _events_apart(before: float, after: float, operations: list[float]) -> float:
    """By how many events the second differs from the first, had it done as many operations."""
    return abs(after * operations[0] / operations[1] - before)


def _ranked(differing: Mapping[str, float]) -> Iterable[str]:
    large = [name for name, distance in differing.items() if distance >= _SMALLEST_DIFFERENCE]
    return sorted(large, key=lambda name: (-differing[name], name))


def _size(delta: float, operations: float) -> float:
    return math.log((max(delta, 0.0) + _SMALL) / operations)
