"""Compares a study that was run again with the first time: exact numbers digit by digit, verdicts by words.

The words are about agreement of two studies, not about truth (National Academies of Sciences, Engineering,
and Medicine, Reproducibility and Replicability in Science, 2019, chapter 5): a replication is consistent
where verdict and interval agree, not where both are 'significant'.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.replication import (
    Agreement,
    Circumstance,
    CounterPair,
    KernelHad,
    NumberPair,
    Outcome,
    Replication,
    VerdictPair,
    Word,
)
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import CARRIED, ReadingKind, Trial
from ktrial.model.workload import ALL_INSTRUCTIONS, EXACT_MODES, STRING_BYTES

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
    again: StudyRecord,
    kernels: Sequence[KernelHad] = (),
    only: Sequence[str] = (),
    signer: str = "",
) -> Replication:
    """What running it again says. `again` may have fewer workloads, and fewer perturbations."""
    pairs = tuple(_pairs(before, again))
    study = before.study
    exact = bool(pairs) and all(sample.mode in EXACT_MODES for old, _ in pairs for sample in old.samples)
    changed = circumstances(pairs)
    # Whether the study's guests are given files of the system that it runs on.
    own_files = bool(study.machine.files) or any(use.command for use in study.workloads)
    bounded = only_qemu_differs(changed, own_files=own_files)
    numbers = tuple(_numbers(pairs, bounded=bounded)) if exact else ()
    # Where something else differs than QEMU, exact ratios agree as far as the study's margin.
    bounds = _Bounds(bounded, workloads_on_disk(study), study.margin if exact else 0.0)
    verdicts = tuple(_verdicts(before, again, bounds))
    differing = tuple(_differing_counters(pairs))
    total = sum(len(old.counters) for old, _ in pairs)
    replication = Replication(
        study=study.name,
        exact=exact,
        outcome=Outcome.UNDECIDED,
        said="",
        numbers=tuple(sorted(numbers, key=lambda number: _ORDER.index(number.agreement))),
        verdicts=verdicts,
        counters=(total - len(differing), total) if exact else (0, 0),
        differing_counters=differing if exact else (),
        circumstances=changed,
        trials=(sum(new is not None for _, new in pairs), len(pairs)),
        kernels=tuple(kernels),
        only=tuple(only),
        signer=signer,
    )
    outcome = _outcome(replication, same=exact and (not changed or bounded))
    reason = likely_reason(changed) if outcome is not Outcome.IDENTICAL else ""
    return replication.model_copy(
        update={"outcome": outcome, "said": _sentence(replication, outcome), "likely": reason}
    )


Pair = tuple[Trial, Trial | None]


def _pairs(before: StudyRecord, again: StudyRecord) -> Iterator[Pair]:
    """Every trial of the first time that the second one plans, with that."""
    labels = {use.label for use in again.study.workloads}
    by_key = {trial.planned.key: trial for trial in again.trials}
    for trial in before.trials:
        if trial.planned.perturbation.number < again.study.blocks or again.study.timing:
            samples = tuple(sample for sample in trial.samples if sample.workload in labels)
            counters = tuple(counter for counter in trial.counters if counter.workload in labels)
            old = trial.model_copy(update={"samples": samples, "counters": counters})
            yield old, by_key.get(trial.planned.key)


def _numbers(pairs: Iterable[Pair], *, bounded: bool) -> Iterator[NumberPair]:
    for old, new in pairs:
        values_now = (
            {(repeated.workload, repeated.metric): repeated.value for repeated in new.samples} if new else {}
        )
        for sample in old.samples:
            value = values_now.get((sample.workload, sample.metric))
            agreed = agreement(sample.value, value, bounded=bounded)
            without_bound = bounded and not has_bound(sample.metric, sample.unit)
            if without_bound and agreed in {Agreement.WITHIN, Agreement.DIFFERENT}:
                agreed = Agreement.UNBOUNDED
            yield NumberPair(
                workload=sample.workload,
                metric=sample.metric,
                unit=sample.unit,
                treatment=old.planned.treatment.label,
                perturbation=old.planned.perturbation.number,
                before=sample.value,
                now=value,
                agreement=agreed,
            )


def agreement(before: float, again: float | None, *, bounded: bool) -> Agreement:
    """How two exact numbers compare. `bounded`: another QEMU counted, and nothing else differs."""
    if again is None:
        return Agreement.MISSING
    if again == before:
        return Agreement.IDENTICAL
    within = bounded and abs(again - before) <= COUNT_BOUND * abs(before)
    return Agreement.WITHIN if within else Agreement.DIFFERENT


def _differing_counters(pairs: Iterable[Pair]) -> Iterator[CounterPair]:
    for old, new in pairs:
        deltas_now = (
            {(counter.workload, counter.name): counter.delta for counter in new.counters} if new else {}
        )
        for counter in old.counters:
            again = deltas_now.get((counter.workload, counter.name))
            if again != counter.delta:
                yield CounterPair(
                    workload=counter.workload,
                    counter=counter.name,
                    treatment=old.planned.treatment.label,
                    perturbation=old.planned.perturbation.number,
                    before=counter.delta,
                    now=again,
                )


class _Bounds(NamedTuple):
    """How far apart two ratios may lie that still agree."""

    of_another_qemu: bool
    on_disk: frozenset[str]
    otherwise: float

    def judged(self, before: Comparison, again: Comparison | None) -> VerdictPair:
        slack = ratio_bound(before, self.on_disk) if self.of_another_qemu else self.otherwise
        judgement, reason = word(before, again, slack)
        without_bound = self.of_another_qemu and not has_bound(before.metric, before.unit)
        if without_bound and again is not None and judgement is not Word.CONSISTENT:
            judgement = Word.UNBOUNDED
            reason = f"{reason}; for what another QEMU makes of it no bound is stated"
        return VerdictPair(before=before, now=again, word=judgement, reason=reason)


def _verdicts(before: StudyRecord, again: StudyRecord, bounds: _Bounds) -> Iterator[VerdictPair]:
    def place(comparison: Comparison) -> tuple[str, str, str, str]:
        return comparison.workload, comparison.metric, comparison.baseline, comparison.treatment

    labels = {use.label for use in again.study.workloads}
    repeated = {place(comparison): comparison for comparison in again.result.comparisons}
    for comparison in before.result.comparisons:
        if comparison.workload in labels:
            yield bounds.judged(comparison, repeated.get(place(comparison)))


def word(before: Comparison, again: Comparison | None, slack: float) -> tuple[Word, str]:
    """The word for one comparison, and why. `slack`: how far apart ratios may lie that still agree."""
    if again is not None and before.ratio is None and again.ratio is None:
        # Where the baseline is nothing both times: 0 → 416 bytes.
        decided = before.verdict is again.verdict and before.verdict is not Verdict.INCONCLUSIVE
        counted = None not in {before.baseline_value, before.value, again.baseline_value, again.value}
        if decided and counted:
            return Word.CONSISTENT, f"{again.verdict.value} again, of a baseline that is nothing"
        return Word.UNDECIDED, "there is no ratio, neither then nor now"
    if again is None or again.ratio is None:
        return Word.UNDECIDED, "there is no number now"
    if before.ratio is None:
        return Word.UNDECIDED, "there was no number"
    if (before.verdict, again.verdict) in _OPPOSITE:
        return Word.CONTRADICTED, f"{before.verdict.value} became {again.verdict.value}"
    (low, high), (low_again, high_again) = _interval(before), _interval(again)
    if low > high_again + slack or low_again > high + slack:
        return Word.CONTRADICTED, "the intervals do not meet"
    if Verdict.INCONCLUSIVE in {before.verdict, again.verdict}:
        when = "then" if before.verdict is Verdict.INCONCLUSIVE else "now"
        return Word.UNDECIDED, f"it is inconclusive {when}, and the intervals meet"
    if before.verdict is not again.verdict:
        return Word.UNDECIDED, f"{before.verdict.value} became {again.verdict.value}, and the intervals meet"
    return Word.CONSISTENT, f"{again.verdict.value} again, and the intervals meet"


def _interval(comparison: Comparison) -> tuple[float, float]:
    ratio = comparison.ratio if comparison.ratio is not None else 1.0
    low, high = comparison.reach
    return ratio if low is None else low, ratio if high is None else high


def _outcome(replication: Replication, *, same: bool) -> Outcome:
    """`same`: all that was executed is the same, or only QEMU is another."""
    words = {verdict.word for verdict in replication.verdicts}
    contradicted = Word.CONTRADICTED in words
    identical = replication.count(Agreement.IDENTICAL) == len(replication.numbers)
    if replication.exact and identical and not contradicted:
        return Outcome.IDENTICAL
    if contradicted or (same and replication.count(Agreement.DIFFERENT)):
        return Outcome.CONTRADICTED
    if replication.count(Agreement.MISSING) or Word.UNDECIDED in words or not words:
        return Outcome.UNDECIDED
    return Outcome.WITHIN if same else Outcome.CONSISTENT


def _sentence(replication: Replication, outcome: Outcome) -> str:
    counts = {judgement: replication.said_of(judgement) for judgement in Word}
    words = ", ".join(f"{count} {judgement.value}" for judgement, count in counts.items() if count)
    verdicts = f"{len(replication.verdicts)} verdicts: {words or 'none'}"
    if not replication.exact:
        return f"{outcome.value.capitalize()}. Of {verdicts}."
    digits = f"{replication.count(Agreement.IDENTICAL)} of {len(replication.numbers)} numbers are identical"
    if within := replication.count(Agreement.WITHIN):
        digits += f", {within} within {COUNT_BOUND:.0%} of what another QEMU counted"
    if unbounded := replication.count(Agreement.UNBOUNDED):
        digits += f", {unbounded} differ for which no bound is stated"
    return f"{outcome.value.capitalize()}: {digits}. Of {verdicts}."


# What another QEMU may count otherwise: the bounds that are stated for it, and where none is.
#
# Another QEMU does not change what a guest computes. It changes at which instruction an interrupt arrives:
# by little where nothing waits, and by more where a workload waits for a disk, since the moment of each
# answer moves what the kernel does next. Bounds are stated for instructions, which is what exact mode
# counts. What a kernel did beside (latencies, switches, pages read ahead) depends on those moments as such;
# for these no bound is stated, and they are told apart.
#
# The bounds are those that docs/bundles.md shows beside what was measured with QEMU 7.2 and 10.0.

COUNT_BOUND = 0.02
"""The most by which a count of instructions may differ, as a fraction of it."""
RATIO_BOUND = 0.005
"""The most by which a ratio of two kernels' instructions may differ."""
RATIO_BOUND_ON_DISK = 0.02
"""The same, of a workload that waits for the guest's disk."""


def has_bound(metric: str, unit: str) -> bool:
    """Whether a bound is stated for a metric: for what the plugin or the guest's clock counts."""
    return unit.partition("/")[0] == ALL_INSTRUCTIONS.unit or metric == STRING_BYTES.name


def workloads_on_disk(study: Study) -> frozenset[str]:
    """Labels of the workloads whose path lies on the study's disk."""
    disk = study.machine.disk
    if disk is None:
        return frozenset()
    paths = ((use.label, str(use.parameters.get("path", ""))) for use in study.workloads)
    return frozenset(label for label, path in paths if path == disk.path or path.startswith(f"{disk.path}/"))


def ratio_bound(comparison: Comparison, on_disk: frozenset[str]) -> float:
    """How far apart two ratios of the comparison may lie, counted by two releases of QEMU."""
    return RATIO_BOUND_ON_DISK if comparison.workload in on_disk else RATIO_BOUND


# What differs between two runs of the same trials beside their numbers, and which of it is likely why.

KERNEL, QEMU, PROGRAMS, DISK = "kernel", "QEMU", "guest program", "initial RAM disk"
COMMAND_LINE, CPU, OUTCOME, ENVIRONMENT = "kernel's command line", "CPU model", "outcome", "machine"
_KTRIAL, _SETTING, _HOST_PROGRAM = "ktrial", "setting", "program"
_DISK_MAKERS = ("mke2fs", "mkfs.xfs", "mkfs.btrfs")
_TOLD_APART = ("image", "symbols", "plugin", DISK)
PLUGIN = "plugin in QEMU"
_BESIDE_QEMU = frozenset({QEMU, _KTRIAL, PLUGIN, CPU})
"""What may differ where only QEMU does: its plugin goes with its version, and so does what its CPU has; the
version of ktrial alone executes nothing in the guest."""


_MADE_BY = frozenset(f"{_HOST_PROGRAM} {tool}" for tool in _DISK_MAKERS)
_MAKING_THE_DISK = _MADE_BY | {DISK}
"""The initial RAM disk has the program."""
_LIKELY = (
    (KERNEL, "another kernel was booted"),
    (PROGRAMS, "ktrial's guest programs are others"),
    (_SETTING, "a setting was another"),
    (COMMAND_LINE, "the kernel was started with other parameters"),
    (QEMU, "another QEMU counted"),
    *((f"{_HOST_PROGRAM} {tool}", f"another build of {tool} made the disk") for tool in _DISK_MAKERS),
    (_HOST_PROGRAM, "a program that is measured is another"),
    (CPU, "the guest's CPU is another"),
    (CARRIED.rstrip(), "what a workload brings into the guest is another"),
    (DISK, "something in the initial RAM disk is another"),
    (ENVIRONMENT, "the machine is another"),
    (OUTCOME, "trials ended otherwise"),
)
NOTHING = (
    "nothing that was executed differs: a number of the bundle was changed after it was measured, or one of "
    "the two machines does not repeat itself (ktrial replicate tells whether this one does)"
)


def circumstances(pairs: Iterable[tuple[Trial, Trial | None]]) -> tuple[Circumstance, ...]:
    """Everything that is another than it was, each once, with the treatments that it holds for."""
    treatments_of: dict[tuple[str, str, str], dict[str, None]] = {}
    labels: dict[str, None] = {}
    for old, new in pairs:
        if new is not None:
            labels[old.planned.treatment.label] = None
            then, after = dict(_facts(old)), dict(_facts(new))
            for kind in dict.fromkeys([*then, *after]):
                if then.get(kind) != after.get(kind):
                    difference = (kind, then.get(kind, ""), after.get(kind, ""))
                    treatments_of.setdefault(difference, {})[old.planned.treatment.label] = None
    return tuple(
        Circumstance(
            what=kind, before=before, now=after, treatments=() if len(held) == len(labels) else tuple(held)
        )
        for (kind, before, after), held in treatments_of.items()
    )


def only_qemu_differs(changed: Sequence[Circumstance], *, own_files: bool = False) -> bool:
    """Whether another QEMU counted, and all that the guest measured is the same.

    Where no files of the system that the study runs on are measured (`own_files`), the program that makes the
    guest's disk may be another: its file system is the same, and it is not what is counted.
    """
    kinds = {circumstance.what for circumstance in changed}
    beside = _BESIDE_QEMU if own_files else _BESIDE_QEMU | _MAKING_THE_DISK
    return QEMU in kinds and kinds <= beside and (DISK not in kinds or bool(kinds & _MADE_BY))


def likely_reason(changed: Sequence[Circumstance]) -> str:
    """The first of what usually is why, in a sentence without its end."""
    for kind, why in _LIKELY:
        for circumstance in changed:
            if circumstance.what == kind or circumstance.what.startswith(f"{kind} "):
                return f"{why}: {circumstance.now or 'none'} in place of {circumstance.before or 'none'}"
    return NOTHING


def _facts(trial: Trial) -> Iterator[tuple[str, str]]:
    """Kind of fact → value."""
    provenance = trial.provenance
    yield KERNEL, f"{provenance.kernel_release} ({provenance.kernel_digest[:12]})"
    yield _KTRIAL, provenance.ktrial
    yield QEMU, provenance.qemu
    yield CPU, provenance.cpu_model
    yield COMMAND_LINE, provenance.command_line
    yield OUTCOME, trial.outcome.value
    for program_kind, digest in provenance.executed.items():
        if program_kind.startswith(CARRIED):
            yield program_kind, digest[:12]
        elif program_kind not in _TOLD_APART:
            yield f"{PROGRAMS} {program_kind}", digest[:12]
    for program_kind, name in ((DISK, DISK), ("plugin", PLUGIN)):
        if program_kind in provenance.executed:
            yield name, provenance.executed[program_kind][:12]
    for program, version in provenance.programs.items():
        yield f"{_HOST_PROGRAM} {program}", version
    for path, value in trial.settings.items():
        yield f"{_SETTING} {path}", value
    for reading in provenance.environment.readings if provenance.environment else ():
        if reading.kind is ReadingKind.SETTING and reading.value:
            yield f"{ENVIRONMENT} {reading.name}", reading.value
