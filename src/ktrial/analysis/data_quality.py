"""What is odd about a study's data, said once each, with advice, never silently corrected; and what monitors
cost the workloads that they watch, from pairs of runs with and without them.
"""

import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ktrial.analysis.comparability import failures, kernel_difference, machine_difference, warn
from ktrial.analysis.reach import inert_factors
from ktrial.format.labels import metric_name
from ktrial.format.number_format import is_time, quantity, tenths
from ktrial.knobs.catalogue import lenient_reference
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import FactorKind
from ktrial.model.study import REAL_MACHINES, Study
from ktrial.model.trial import Environment, Outcome, Reading, ReadingKind, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.monitors.environment import changes, concerns, confounds

_Trials = Mapping[str, Sequence[Trial]]
"""A treatment's label → its trials; the baseline comes first."""
_SAME_TIME = 1.01
"""The longest time by the shortest, of those that are the same."""
_APART = "of each pair one had it and one had not: the study's numbers are without it, its counts with it"


def warnings_of(study: Study, trials: _Trials, comparisons: Sequence[Comparison]) -> tuple[DataWarning, ...]:
    """All warnings, in a stable order."""
    every = (
        *_failed(study, trials),
        *_different(trials),
        *_missing_workloads(study, trials),
        *_spread(study, comparisons),
        *(unreached.warning for unreached in inert_factors(study)),
        *_several_cpus(study),
        *_same_time(study, trials),
        *environment_warnings(study, trials),
        *monitor_costs(trial for of_treatment in trials.values() for trial in of_treatment),
        *(
            warning
            for of_treatment in trials.values()
            for trial in of_treatment
            for warning in trial.warnings
        ),
    )
    return tuple(dict.fromkeys(every))


def _failed(study: Study, trials: _Trials) -> list[DataWarning]:
    by_label = {
        label: [trial for trial in of_treatment if trial.outcome is not Outcome.COMPLETED]
        for label, of_treatment in trials.items()
    }
    return [
        DataWarning(
            kind=WarningKind.FAILED_TRIALS,
            text=f"{label}: {failures(failed, len(trials[label]) if study.timing else study.perturbations)}",
            advice=f"the end of the console log: ktrial show {study.name} --console",
        )
        for label, failed in by_label.items()
        if failed
    ]


def _different(trials: _Trials) -> list[DataWarning]:
    warnings = []
    for label, of_treatment in trials.items():
        if reason := kernel_difference(of_treatment):
            warnings.append(warn(WarningKind.DIFFERENT_KERNELS, reason, label))
    baseline, *labels = trials
    for label in labels:
        if reason := machine_difference(trials[baseline], trials[label]):
            warnings.append(warn(WarningKind.DIFFERENT_MACHINES, reason, f"{baseline} and {label}"))
    return warnings


def _missing_workloads(study: Study, trials: _Trials) -> list[DataWarning]:
    """Workloads that never gave a number, although trials completed."""
    ended = [trial for of_treatment in trials.values() for trial in of_treatment]
    sampled = {sample.workload for trial in ended for sample in trial.samples}
    if not any(trial.outcome is Outcome.COMPLETED for trial in ended):
        return []
    return [
        DataWarning(kind=WarningKind.MISSING_WORKLOAD, text=f"{label} gave no number in any trial")
        for label in dict.fromkeys(use.label for use in study.workloads)
        if label not in sampled
    ]


def _spread(study: Study, comparisons: Sequence[Comparison]) -> list[DataWarning]:
    if study.timing:
        return []
    if study.perturbations == 1:
        text = "one perturbation only: an effect cannot be told from an accident of layout"
        return [DataWarning(kind=WarningKind.NO_SPREAD, text=text, advice="set perturbations = 3 or more")]
    return [
        DataWarning(
            kind=WarningKind.WIDE_SPREAD,
            text=f"{comparison.workload}, {metric_name(comparison.metric, comparison.unit)}, "
            f"{comparison.treatment}: its change differs by {moved * 100:.3g} % from one perturbation to "
            f"another, more than the margin of {study.margin * 100:.3g} %",
            advice="more perturbations, or a larger margin, may decide it",
        )
        for comparison in comparisons
        if comparison.low
        and comparison.high
        and comparison.verdict not in (Verdict.BETTER, Verdict.WORSE)  # it was decided all the same
        # How far apart the ends of the interval lie.
        and (moved := comparison.high / comparison.low - 1) > study.margin
    ]


def monitor_costs(trials: Iterable[Trial]) -> tuple[DataWarning, ...]:
    """What each monitor costs the workloads, as a note: the geometric mean over the trials, its interval by
    Student's t on the logarithms.
    """
    slowdowns: dict[str, dict[tuple[str, str], list[float]]] = {}
    for trial in trials:
        for monitored in trial.provenance.monitored:
            if monitored.slowdown:
                of_monitor = slowdowns.setdefault(monitored.monitor, {})
                of_monitor.setdefault((monitored.workload, monitored.metric), []).append(
                    math.log(monitored.slowdown)
                )
    return tuple(
        DataWarning(
            kind=WarningKind.MONITOR_COST,
            text=f"{monitor} costs {', '.join(_cost(*of, logs) for of, logs in by_metric.items())}",
            advice=_APART,
        )
        for monitor, by_metric in sorted(slowdowns.items())
    )


def _cost(workload: str, metric: str, logs: list[float]) -> str:
    """`ls +1.8 % (wall time; 95 % interval −0.6 % to +4.2 %; 8 pairs of runs)`."""
    mean = statistics.fmean(logs)
    details = [metric]
    if len(set(logs)) > 1:  # of pairs that are all alike nothing tells how much the next one would differ
        from ktrial.stats.independent_groups import (  # with numpy, which most studies spare
            Moments,
            mean_interval,
        )

        low, high = mean_interval(Moments("", mean, statistics.stdev(logs), len(logs)))
        details.append(f"95 % interval {_percent(low)} to {_percent(high)}")
    details.append(f"{len(logs)} {'pair' if len(logs) == 1 else 'pairs'} of runs")
    return f"{workload} {_percent(mean)} ({'; '.join(filter(None, details))})"


def _percent(log: float) -> str:
    """A slowdown as the relative change that it is: `+1.2 %`."""
    return f"{tenths(math.expm1(log))} %"


# The environment of a study in real time: before each trial, and while its workloads ran.

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


def environment_warnings(study: Study, trials: Mapping[str, Sequence[Trial]]) -> tuple[DataWarning, ...]:
    """What disturbs, what changed while the study ran, what differs between treatments beside its factors.

    `trials`: a treatment's label → its trials.
    """
    arms = {
        label: [
            # With what went on while the trial ran.
            environment.model_copy(update={"readings": (*environment.readings, *while_running(trial))})
            for trial in of_treatment
            if (environment := trial.provenance.environment) is not None
        ]
        for label, of_treatment in trials.items()
    }
    in_order = sorted(
        (environment for arm in arms.values() for environment in arm),
        key=lambda environment: environment.taken,
    )
    changed = _changed_by(study)
    if in_order:
        warnings = (*_concerns(in_order), *_changes(in_order, changed), *confounds(arms, changed))
        return tuple(dict.fromkeys(warnings))
    where = study.machine.host
    if not where or not any(trials.values()):
        return ()
    # Of a machine elsewhere nothing is known beside its trials: that is told, too.
    warning = DataWarning(
        kind=WarningKind.ENVIRONMENT,
        text=f"the environment of {where} was not looked at: neither its governor, its temperature, the load "
        "of others nor what changed meanwhile",
        advice="ktrial doctor there says what disturbs",
    )
    return (warning,)


def confounds_beside(study: Study, baseline: Sequence[Trial]) -> Callable[[Sequence[Trial]], str]:
    """Of a treatment's trials: which settings of the host differ from the baseline's; empty where none does.

    From two trials each: with one, a change in the middle of the study looks the same.
    """

    def settings(trials: Sequence[Trial]) -> list[Environment]:
        environments = (trial.provenance.environment for trial in trials)
        return [_settings_of(environment) for environment in environments if environment is not None]

    changed, below = _changed_by(study), settings(baseline)

    def confounded(treatment: Sequence[Trial]) -> str:
        above = settings(treatment)
        if min(len(below), len(above)) < 2:
            return ""
        warnings = confounds({"the baseline": below, "the treatment": above}, changed)
        return f"confounded: {warnings[0].text}" if warnings else ""

    return confounded


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
    load = max(0.0, busy - sum(totals.get(name, 0.0) for name in _OWN)) / elapsed
    return (
        _level("load of others while workloads ran", load, _MUCH_LOAD, _LOAD),
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


def _settings_of(environment: Environment) -> Environment:
    settings = tuple(reading for reading in environment.readings if reading.kind is ReadingKind.SETTING)
    return environment.model_copy(update={"readings": settings})


def _concerns(in_order: Sequence[Environment]) -> tuple[DataWarning, ...]:
    """Of the first trial; of a level, where it was worst."""
    worst: dict[str, Reading] = {}
    for environment in in_order:
        for reading in environment.readings:
            so_bad = worst.get(reading.name)
            if so_bad is None or (reading.number or 0.0) > (so_bad.number or 0.0):
                worst[reading.name] = reading
    first = in_order[0]
    readings = tuple(
        worst[first_reading.name] if first_reading.kind is ReadingKind.LEVEL else first_reading
        for first_reading in first.readings
    )
    return concerns(first.model_copy(update={"readings": readings}))


def _changes(in_order: Sequence[Environment], changed: frozenset[str]) -> tuple[DataWarning, ...]:
    """From the first to the last; and settings that were changed and set back in between."""
    first = in_order[0]
    before = tuple(reading for reading in first.readings if not reading.name.endswith("while workloads ran"))
    over_all = changes(first.model_copy(update={"readings": before}), in_order[-1], changed)
    reported = {warning.text.partition(" changed")[0] for warning in over_all}
    steps = [
        warning
        for earlier, later in pairwise(in_order)
        for warning in changes(_settings_of(earlier), later, changed)
        if warning.text.partition(" changed")[0] not in reported
    ]
    return (*over_all, *dict.fromkeys(steps))


def _changed_by(study: Study) -> frozenset[str]:
    """Paths of the settings that are factors."""
    release = os.uname().release
    settings = (factor.target for factor in study.factors if factor.kind is FactorKind.SETTING)
    return frozenset(lenient_reference(target).path_in(release) for target in settings)


def _several_cpus(study: Study) -> Iterator[DataWarning]:
    """What nobody sees on CPUs of the machine exact-parallel, whatever the seed (docs/parallel.md)."""
    if study.machine.kind == "exact-parallel" and max(_numbers_of_cpus(study)) > 1:
        yield DataWarning(
            kind=WarningKind.SEVERAL_CPUS,
            text="simulated CPUs do not show every race: a block of instructions is atomic, memory is "
            "sequentially consistent, and plain loads and stores share cache lines for free, under any seed",
            advice="an unlocked increment never loses an update here; KCSAN and real CPUs (machine kvm or "
            "host) show such races",
        )


def _same_time(study: Study, trials: _Trials) -> Iterator[DataWarning]:
    """A warning for each command without a metric of its own that takes as long on any number of CPUs."""
    if len(set(_numbers_of_cpus(study))) < 2:
        return
    samples = [
        sample for of_treatment in trials.values() for trial in of_treatment for sample in trial.samples
    ]
    for use in study.workloads:
        if use.command is None or use.command.metrics:
            continue
        own = (sample for sample in samples if sample.workload == use.label and is_time(sample.unit))
        times = [sample.value for sample in own]
        if times and min(times) > 0 and max(times) / min(times) < _SAME_TIME:
            yield DataWarning(
                kind=WarningKind.SAME_TIME,
                text=f"{use.label} takes {quantity(times[0], 'ns')} on any number of CPUs: it runs for a "
                "fixed time, or in one task",
                advice="where its time is fixed, its result is what it prints: --metrics FORMAT (ktrial "
                "workload formats), or metrics in a study file",
            )


def _numbers_of_cpus(study: Study) -> list[int]:
    levels = [level for factor in study.factors if factor.kind is FactorKind.CPUS for level in factor.levels]
    return [int(level) for level in levels if isinstance(level, int)] or [study.machine.cpus]
