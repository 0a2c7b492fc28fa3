"""Compares a study that was run again with the first time: exact numbers digit by digit, verdicts by words.

The words are about agreement of two studies, not about truth (National Academies of Sciences, Engineering,
and Medicine, Reproducibility and Replicability in Science, 2019, chapter 5): a replication is consistent
where verdict and interval agree, not where both are 'significant'.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ktrial.model.trial import ReadingKind, Trial
from ktrial.model.workload import ALL_INSTRUCTIONS, EXACT_MODES, STRING_BYTES, Sample

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


def ratio_bound(one: Comparison, on_disk: frozenset[str]) -> float:
    """How far apart two ratios of the comparison may lie, counted by two releases of QEMU."""
    return RATIO_BOUND_ON_DISK if one.workload in on_disk else RATIO_BOUND


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


class _Rank(NamedTuple):
    what: str
    why: str


_MADE_BY = frozenset(f"{_HOST_PROGRAM} {tool}" for tool in _DISK_MAKERS)


_MAKING_THE_DISK = _MADE_BY | {DISK}
"""The initial RAM disk has the program."""


_LIKELY = (
    _Rank(KERNEL, "another kernel was booted"),
    _Rank(PROGRAMS, "ktrial's guest programs are others"),
    _Rank(_SETTING, "a setting was another"),
    _Rank(COMMAND_LINE, "the kernel was started with other parameters"),
    _Rank(QEMU, "another QEMU counted"),
    *(_Rank(f"{_HOST_PROGRAM} {tool}", f"another build of {tool} made the disk") for tool in _DISK_MAKERS),
    _Rank(_HOST_PROGRAM, "a program that is measured is another"),
    _Rank(CPU, "the guest's CPU is another"),
    _Rank(DISK, "something in the initial RAM disk is another"),
    _Rank(ENVIRONMENT, "the machine is another"),
    _Rank(OUTCOME, "trials ended otherwise"),
)


NOTHING = (
    "nothing that was executed differs: a number of the bundle was changed after it was measured, or one of "
    "the two machines does not repeat itself (ktrial verify tells whether this one does)"
)


def circumstances(pairs: Iterable[tuple[Trial, Trial | None]]) -> tuple[Circumstance, ...]:
    """Everything that is another than it was, each once, with the treatments that it holds for."""
    treatments_of: dict[tuple[str, str, str], dict[str, None]] = {}
    labels: dict[str, None] = {}
    for old, new in pairs:
        if new is not None:
            labels[old.planned.treatment.label] = None
            for what in _differing(old, new):
                treatments_of.setdefault(what, {})[old.planned.treatment.label] = None
    return tuple(
        Circumstance(
            what=what, before=before, now=now, treatments=() if len(held) == len(labels) else tuple(held)
        )
        for (what, before, now), held in treatments_of.items()
    )


def only_qemu_differs(changed: Sequence[Circumstance], *, own_files: bool = False) -> bool:
    """Whether another QEMU counted, and all that the guest measured is the same.

    Where no files of the system that the study runs on are measured (`own_files`), the program that makes the
    guest's disk may be another: its file system is the same, and it is not what is counted.
    """
    kinds = {one.what for one in changed}
    beside = _BESIDE_QEMU if own_files else _BESIDE_QEMU | _MAKING_THE_DISK
    return QEMU in kinds and kinds <= beside and (DISK not in kinds or bool(kinds & _MADE_BY))


def likely_reason(changed: Sequence[Circumstance]) -> str:
    """The first of what usually is why, in a sentence without its end."""
    for rank in _LIKELY:
        for one in changed:
            if one.what == rank.what or one.what.startswith(f"{rank.what} "):
                return f"{rank.why}: {one.now or 'none'} in place of {one.before or 'none'}"
    return NOTHING


def _differing(old: Trial, new: Trial) -> Iterator[tuple[str, str, str]]:
    then, now = dict(_facts(old)), dict(_facts(new))
    for what in dict.fromkeys([*then, *now]):
        if then.get(what) != now.get(what) and not _new(what, then):
            yield what, then.get(what, ""), now.get(what, "")


def _new(what: str, then: dict[str, str]) -> bool:
    """Whether an older ktrial did not note it: then it cannot differ."""
    made = tuple(f"{_HOST_PROGRAM} {tool}" for tool in _DISK_MAKERS)
    return what not in then and what.startswith((PROGRAMS, DISK, PLUGIN, *made))


def _facts(trial: Trial) -> Iterator[tuple[str, str]]:
    """What → value. What an older ktrial did not note is left out."""
    one = trial.provenance
    yield KERNEL, f"{one.kernel_release} ({one.kernel_digest[:12]})"
    yield _KTRIAL, one.ktrial
    yield QEMU, one.qemu
    yield CPU, one.cpu_model
    yield COMMAND_LINE, one.command_line
    yield OUTCOME, trial.outcome.value
    for what, digest in one.executed.items():
        if what not in _TOLD_APART:
            yield f"{PROGRAMS} {what}", digest[:12]
    for what, name in ((DISK, DISK), ("plugin", PLUGIN)):
        if what in one.executed:
            yield name, one.executed[what][:12]
    for program, version in one.programs.items():
        yield f"{_HOST_PROGRAM} {program}", version
    for path, value in trial.settings.items():
        yield f"{_SETTING} {path}", value
    for reading in one.environment.readings if one.environment else ():
        if reading.kind is ReadingKind.SETTING and reading.value:
            yield f"{ENVIRONMENT} {reading.name}", reading.value
