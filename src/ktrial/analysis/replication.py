"""Compares a study that was run again with the first time: exact numbers digit by digit, verdicts by words.

The words are about agreement of two studies, not about truth (National Academies of Sciences, Engineering,
and Medicine, Reproducibility and Replicability in Science, 2019, chapter 5): a replication is consistent
where verdict and interval agree, not where both are 'significant'.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ktrial.analysis.replication_bounds import COUNT_BOUND, has_bound, ratio_bound, workloads_on_disk
from ktrial.analysis.replication_circumstances import circumstances, likely_reason, only_qemu_differs
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.replication import (
    Agreement,
    CounterPair,
    KernelHad,
    NumberPair,
    Outcome,
    Replication,
    VerdictPair,
    Word,
)
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.workload import EXACT_MODES, Sample

_OPPOSITE = {(Verdict.BETTER, Verdict.WORSE), (Verdict.WORSE, Verdict.BETTER)}
_ORDER = (
    Agreement.DIFFERENT,
    Agreement.MISSING,
    Agreement.UNBOUNDED,
    Agreement.WITHIN,
    Agreement.IDENTICAL,
)


def compared(
    before: StudyRecord,
    now: StudyRecord,
    kernels: Sequence[KernelHad] = (),
    only: Sequence[str] = (),
    signer: str = "",
) -> Replication:
    """What running it again says. `now` may have fewer workloads, and fewer perturbations."""
    pairs = tuple(_pairs(before, now))
    exact = bool(pairs) and all(sample.mode in EXACT_MODES for old, _ in pairs for sample in old.samples)
    changed = circumstances(pairs)
    bounded = only_qemu_differs(changed, own_files=_takes_own_files(before.study))
    numbers = tuple(_numbers(pairs, bounded=bounded)) if exact else ()
    verdicts = tuple(_verdicts(before, now, _bounds(before.study, exact=exact, bounded=bounded)))
    differing = tuple(_differing_counters(pairs))
    total = sum(len(old.counters) for old, _ in pairs)
    told = {"kernels": tuple(kernels), "only": tuple(only), "signer": signer}
    made = Replication(
        study=before.study.name,
        exact=exact,
        outcome=Outcome.UNDECIDED,
        said="",
        numbers=tuple(sorted(numbers, key=lambda one: _ORDER.index(one.agreement))),
        verdicts=verdicts,
        counters=(total - len(differing), total) if exact else (0, 0),
        differing_counters=differing if exact else (),
        circumstances=changed,
        trials=(sum(new is not None for _, new in pairs), len(pairs)),
        **told,
    )
    outcome = _outcome(made, same=exact and (not changed or bounded))
    reason = likely_reason(changed) if outcome is not Outcome.IDENTICAL else ""
    return made.model_copy(update={"outcome": outcome, "said": _said(made, outcome), "likely": reason})


Pair = tuple[Trial, Trial | None]


def _pairs(before: StudyRecord, now: StudyRecord) -> Iterator[Pair]:
    """Every trial of the first time that the second one plans, with that."""
    wanted = {use.label for use in now.study.workloads}
    again = {trial.planned.key: trial for trial in now.trials}
    for trial in before.trials:
        if trial.planned.perturbation.number < now.study.blocks or now.study.timing:
            kept = tuple(sample for sample in trial.samples if sample.workload in wanted)
            counted = tuple(one for one in trial.counters if one.workload in wanted)
            new = again.get(trial.planned.key)
            yield trial.model_copy(update={"samples": kept, "counters": counted}), new


def _numbers(pairs: Iterable[Pair], *, bounded: bool) -> Iterator[NumberPair]:
    for old, new in pairs:
        values_now = {(one.workload, one.metric): one.value for one in new.samples} if new else {}
        for sample in old.samples:
            value = values_now.get((sample.workload, sample.metric))
            yield NumberPair(
                workload=sample.workload,
                metric=sample.metric,
                unit=sample.unit,
                treatment=old.planned.treatment.label,
                perturbation=old.planned.perturbation.number,
                before=sample.value,
                now=value,
                agreement=_agreement(sample, value, bounded=bounded),
            )


def _agreement(sample: Sample, now: float | None, *, bounded: bool) -> Agreement:
    said = agreement(sample.value, now, bounded=bounded)
    without = bounded and not has_bound(sample.metric, sample.unit)
    return Agreement.UNBOUNDED if without and said in {Agreement.WITHIN, Agreement.DIFFERENT} else said


def agreement(before: float, now: float | None, *, bounded: bool) -> Agreement:
    """How two exact numbers compare. `bounded`: another QEMU counted, and nothing else differs."""
    if now is None:
        return Agreement.MISSING
    if now == before:
        return Agreement.IDENTICAL
    within = bounded and abs(now - before) <= COUNT_BOUND * abs(before)
    return Agreement.WITHIN if within else Agreement.DIFFERENT


def _differing_counters(pairs: Iterable[Pair]) -> Iterator[CounterPair]:
    for old, new in pairs:
        deltas_now = {(one.workload, one.name): one.delta for one in new.counters} if new else {}
        for one in old.counters:
            now = deltas_now.get((one.workload, one.name))
            if now != one.delta:
                yield CounterPair(
                    workload=one.workload,
                    counter=one.name,
                    treatment=old.planned.treatment.label,
                    perturbation=old.planned.perturbation.number,
                    before=one.delta,
                    now=now,
                )


class _Bounds(NamedTuple):
    """How far apart two ratios may lie that still agree."""

    of_another_qemu: bool
    on_disk: frozenset[str]
    otherwise: float

    def slack(self, one: Comparison) -> float:
        return ratio_bound(one, self.on_disk) if self.of_another_qemu else self.otherwise

    def word(self, one: Comparison, now: Comparison | None) -> tuple[Word, str]:
        said, reason = word(one, now, self.slack(one))
        without = self.of_another_qemu and not has_bound(one.metric, one.unit)
        if without and now is not None and said is not Word.CONSISTENT:
            return Word.UNBOUNDED, f"{reason}; for what another QEMU makes of it no bound is stated"
        return said, reason


def _bounds(study: Study, *, exact: bool, bounded: bool) -> _Bounds:
    """Where something else differs than QEMU, exact ratios agree as far as the study's margin."""
    return _Bounds(bounded, workloads_on_disk(study), study.margin if exact else 0.0)


def _takes_own_files(study: Study) -> bool:
    """Whether its guests are given files of the system that it runs on."""
    return bool(study.machine.files) or any(use.command for use in study.workloads)


def _verdicts(before: StudyRecord, now: StudyRecord, bounds: _Bounds) -> Iterator[VerdictPair]:
    wanted = {use.label for use in now.study.workloads}
    again = {_place(one): one for one in now.result.comparisons}
    for one in before.result.comparisons:
        if one.workload in wanted:
            new = again.get(_place(one))
            said, reason = bounds.word(one, new)
            yield VerdictPair(before=one, now=new, word=said, reason=reason)


def _place(one: Comparison) -> tuple[str, str, str, str]:
    return one.workload, one.metric, one.baseline, one.treatment


def word(before: Comparison, now: Comparison | None, slack: float) -> tuple[Word, str]:
    """The word for one comparison, and why. `slack`: how far apart ratios may lie that still agree."""
    if now is not None and before.ratio is None and now.ratio is None:
        return _without_ratios(before, now)
    if now is None or now.ratio is None:
        return Word.UNDECIDED, "there is no number now"
    if before.ratio is None:
        return Word.UNDECIDED, "there was no number"
    if (before.verdict, now.verdict) in _OPPOSITE:
        return Word.CONTRADICTED, f"{before.verdict.value} became {now.verdict.value}"
    if not _meet(before, now, slack):
        return Word.CONTRADICTED, "the intervals do not meet"
    if Verdict.INCONCLUSIVE in {before.verdict, now.verdict}:
        when = "then" if before.verdict is Verdict.INCONCLUSIVE else "now"
        return Word.UNDECIDED, f"it is inconclusive {when}, and the intervals meet"
    if before.verdict is not now.verdict:
        return Word.UNDECIDED, f"{before.verdict.value} became {now.verdict.value}, and the intervals meet"
    return Word.CONSISTENT, f"{now.verdict.value} again, and the intervals meet"


def _without_ratios(before: Comparison, now: Comparison) -> tuple[Word, str]:
    """Where the baseline is nothing both times: 0 → 416 bytes."""
    judged = before.verdict is now.verdict and before.verdict is not Verdict.INCONCLUSIVE
    counted = None not in {before.baseline_value, before.value, now.baseline_value, now.value}
    if judged and counted:
        return Word.CONSISTENT, f"{now.verdict.value} again, of a baseline that is nothing"
    return Word.UNDECIDED, "there is no ratio, neither then nor now"


def _meet(before: Comparison, now: Comparison, slack: float) -> bool:
    low, high = _interval(before)
    other_low, other_high = _interval(now)
    return low <= other_high + slack and other_low <= high + slack


def _interval(one: Comparison) -> tuple[float, float]:
    ratio = one.ratio if one.ratio is not None else 1.0
    return (ratio if one.low is None else one.low), (ratio if one.high is None else one.high)


def _outcome(made: Replication, *, same: bool) -> Outcome:
    """`same`: all that was executed is the same, or only QEMU is another."""
    counts = {each: made.count(each) for each in Agreement}
    words = {one.word for one in made.verdicts}
    if made.exact and counts[Agreement.IDENTICAL] == len(made.numbers) and Word.CONTRADICTED not in words:
        return Outcome.IDENTICAL
    if Word.CONTRADICTED in words or (same and counts[Agreement.DIFFERENT]):
        return Outcome.CONTRADICTED
    if counts[Agreement.MISSING] or Word.UNDECIDED in words or not words:
        return Outcome.UNDECIDED
    return Outcome.WITHIN if same else Outcome.CONSISTENT


def _said(made: Replication, outcome: Outcome) -> str:
    words: Mapping[Word, int] = {each: made.said_of(each) for each in Word}
    told = ", ".join(f"{count} {each.value}" for each, count in words.items() if count)
    verdicts = f"{len(made.verdicts)} verdicts: {told or 'none'}"
    if not made.exact:
        return f"{outcome.value.capitalize()}. Of {verdicts}."
    digits = f"{made.count(Agreement.IDENTICAL)} of {len(made.numbers)} numbers are identical"
    return f"{outcome.value.capitalize()}: {digits}{_beyond_identical(made)}. Of {verdicts}."


def _beyond_identical(made: Replication) -> str:
    within, unbounded = made.count(Agreement.WITHIN), made.count(Agreement.UNBOUNDED)
    bounds = f", {within} within {COUNT_BOUND:.0%} of what another QEMU counted" if within else ""
    return f"{bounds}, {unbounded} differ for which no bound is stated" if unbounded else bounds
