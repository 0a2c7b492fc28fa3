"""The environment of a study in real time: before each trial, and while its workloads ran."""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ktrial.knobs import lenient_reference
from ktrial.model.design import FactorKind
from ktrial.model.environment import Environment, Reading, ReadingKind
from ktrial.model.study import REAL_MACHINES, Study
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.monitors.environment import changes, concerns, confounds

_TICK_NS = 10_000_000
"""USER_HZ is 100 on every x86."""
_IDLE = frozenset({"stat.cpu.idle", "stat.cpu.iowait", "stat.cpu.steal"})
_PART_OF_USER = frozenset({"stat.cpu.guest", "stat.cpu.guest_nice"})
"""Counted in `user` and `nice` already (proc_stat(5))."""
_OWN = ("rusage.tree_cpu_ns", "rusage.ktrial_ns")
_MUCH_LOAD = 0.05
"""Of one CPU."""
_MUCH_STEAL = 0.001
"""Of the CPUs' time."""
_SHORT_NS = 20 * _TICK_NS
"""With fewer ticks than this the sums say little."""


def warnings_of(study: Study, trials: Mapping[str, Sequence[Trial]]) -> tuple[DataWarning, ...]:
    """What disturbs, what changed while the study ran, what differs between treatments beside its factors.

    `trials`: a treatment's label → its trials.
    """
    arms = {label: _environments(of_treatment) for label, of_treatment in trials.items()}
    in_order = sorted((each for arm in arms.values() for each in arm), key=lambda each: each.taken)
    if not in_order:
        return _not_looked_at(study, trials)
    changed = _changed_by(study)
    warnings = (*_concerns(in_order), *_changes(in_order, changed), *confounds(arms, changed))
    return tuple(dict.fromkeys(warnings))


def _not_looked_at(study: Study, trials: Mapping[str, Sequence[Trial]]) -> tuple[DataWarning, ...]:
    """Of a machine elsewhere nothing is known beside its trials: that is told, too."""
    where = study.machine.host
    if not where or not any(trials.values()):
        return ()
    warning = DataWarning(
        kind=WarningKind.ENVIRONMENT,
        text=f"the environment of {where} was not looked at: neither its governor, its temperature, the load "
        "of others nor what changed meanwhile",
        advice="ktrial doctor there says what disturbs",
    )
    return (warning,)


class Confounds:
    """Which settings of the host differ between the baseline's trials and those of another treatment."""

    def __init__(self, study: Study, baseline: Sequence[Trial]) -> None:
        self._changed = _changed_by(study)
        self._baseline = [_settings_of(each) for each in _taken(baseline)]

    def of(self, treatment: Sequence[Trial]) -> str:
        """In one sentence; empty where none does.

        From two trials each: with one, a change in the middle of the study looks the same.
        """
        settings = [_settings_of(each) for each in _taken(treatment)]
        if min(len(self._baseline), len(settings)) < 2:
            return ""
        warnings = confounds({"the baseline": self._baseline, "the treatment": settings}, self._changed)
        return f"confounded: {warnings[0].text}" if warnings else ""


def while_running(trial: Trial) -> tuple[Reading, ...]:
    """What else went on while the workloads ran, from the counters around them; machine `host` only."""
    if trial.provenance.machine not in REAL_MACHINES:
        return ()
    totals: dict[str, float] = {}
    for counter in trial.counters:
        totals[counter.name] = totals.get(counter.name, 0.0) + counter.delta
    ticks = {
        name: ticks
        for name, ticks in totals.items()
        if name.startswith("stat.cpu.") and name not in _PART_OF_USER
    }
    elapsed = sum(ticks.values()) * _TICK_NS
    if elapsed < _SHORT_NS:
        return ()
    busy = sum(count for name, count in ticks.items() if name not in _IDLE) * _TICK_NS
    others = max(0.0, busy - sum(totals.get(name, 0.0) for name in _OWN)) / elapsed
    return (
        _level("load of others while workloads ran", others, _MUCH_LOAD, _LOAD),
        _level(
            "steal time while workloads ran",
            ticks.get("stat.cpu.steal", 0.0) * _TICK_NS / elapsed,
            _MUCH_STEAL,
            _STEAL,
        ),
    )


_LOAD = ("other programs used the CPUs meanwhile", "end them, or pin to CPUs that they leave alone")
_STEAL = ("the hypervisor ran somebody else meanwhile", "measure on hardware, or in exact mode")


def _level(name: str, share: float, much: float, texts: tuple[str, str]) -> Reading:
    concern, advice = texts if share > much else ("", "")
    return Reading(
        name=name,
        kind=ReadingKind.LEVEL,
        value=f"{share * 100:.1f} % of the CPUs",
        number=share,
        concern=concern,
        advice=advice,
    )


def _environments(trials: Sequence[Trial]) -> list[Environment]:
    """Each trial's, with what went on while it ran."""
    return [
        environment.model_copy(update={"readings": (*environment.readings, *while_running(trial))})
        for trial in trials
        if (environment := trial.provenance.environment) is not None
    ]


def _taken(trials: Sequence[Trial]) -> list[Environment]:
    """Each trial's, as it was just before."""
    every = (trial.provenance.environment for trial in trials)
    return [environment for environment in every if environment is not None]


def _settings_of(environment: Environment) -> Environment:
    kept = tuple(each for each in environment.readings if each.kind is ReadingKind.SETTING)
    return environment.model_copy(update={"readings": kept})


def _concerns(in_order: Sequence[Environment]) -> tuple[DataWarning, ...]:
    """Of the first trial; of a level, where it was worst."""
    worst: dict[str, Reading] = {}
    for environment in in_order:
        for reading in environment.readings:
            known = worst.get(reading.name)
            if known is None or (reading.number or 0.0) > (known.number or 0.0):
                worst[reading.name] = reading
    first = in_order[0]
    readings = tuple(worst[each.name] if each.kind is ReadingKind.LEVEL else each for each in first.readings)
    return concerns(first.model_copy(update={"readings": readings}))


def _changes(in_order: Sequence[Environment], changed: frozenset[str]) -> tuple[DataWarning, ...]:
    """From the first to the last; and settings that were changed and set back in between."""
    whole = changes(_without_running(in_order[0]), in_order[-1], changed)
    told = {warning.text.partition(" changed")[0] for warning in whole}
    steps = [
        warning
        for earlier, later in pairwise(in_order)
        for warning in changes(_settings_of(earlier), later, changed)
        if warning.text.partition(" changed")[0] not in told
    ]
    return (*whole, *dict.fromkeys(steps))


def _without_running(environment: Environment) -> Environment:
    kept = tuple(each for each in environment.readings if not each.name.endswith("while workloads ran"))
    return environment.model_copy(update={"readings": kept})


def _changed_by(study: Study) -> frozenset[str]:
    """Paths of the settings that are factors."""
    release = os.uname().release
    settings = (each.target for each in study.factors if each.kind is FactorKind.SETTING)
    return frozenset(lenient_reference(target).path_in(release) for target in settings)
