"""What differs between a study's kernels, and what that does to its verdicts.

Which differences between kernels a study's factors account for. What they do not is a confound, and named.

- A factor of kind `kconfig` accounts for its options and what follows from them by Kconfig; `patch` for its
  patches and the options that they bring; `compiler-flags` for the flags; `source` for the source, and so
  for what cannot stay the same between sources.
- A factor of kind `kernel` accounts for the one respect in which its kernels differ. Where the builds of
  a study differ in several, the effect cannot be told to be any one of them's.
- Kernels of different versions that the study does not build differ in options and compiler by necessity:
  what is measured is the whole step, which is said in words.

And whether what a factor changes was there to be measured: in the image, and in what ran. A patch whose
option is off changes no code, or code that nothing runs; `equivalent` is then true, and says nothing about
the patch.

A study's result is worked out anew from its trials each time; kernels may be gone by then, or be others. So
the differences are stored with the study while the kernels are at hand
(`ktrial.analysis.kernel_diff.remember`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ktrial.analysis.answer import answer, variability_answer
from ktrial.model.comparison import Comparison, Interaction, Result, Verdict
from ktrial.model.design import FactorKind, Treatment, told_apart
from ktrial.model.kernel import (
    Build,
    KernelDifference,
    OptionCause,
    OptionChange,
    Reach,
    Respect,
    options_shown,
)
from ktrial.model.study import Study, build_of, kernel_name, treatments
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning, WarningKind

_OF_SOURCES = frozenset({Respect.VERSION, Respect.SOURCE})
_MOST_NAMED = 5
_WORDS = {
    Respect.FLAGS: "compiler flags",
    Respect.SOURCE: "source",
    Respect.COMMAND_LINE: "built-in command line",
}
_CHANGES = {
    FactorKind.PATCH: "the patch",
    FactorKind.KCONFIG: "the option",
    FactorKind.COMPILER_FLAGS: "the compiler flags",
}
_RESPECTS = {
    FactorKind.PATCH: frozenset({Respect.PATCHES}),
    FactorKind.SOURCE: _OF_SOURCES,
    FactorKind.COMPILER_FLAGS: frozenset({Respect.FLAGS}),
}
"""What a factor of a kind accounts for by itself."""
_COMPILERS = frozenset({"CC", "LLVM", "LD", "PAHOLE"})
"""Variables of make that choose the tools."""
_ONE_AT_A_TIME = (
    "what is measured may be any of them: make each a factor of its own (kinds source, patch, kconfig, "
    "compiler-flags), so that one thing differs at a time"
)
Judged = TypeVar("Judged", Comparison, Interaction)


@dataclass(frozen=True)
class KernelStep:
    """From the baseline's kernel to a treatment's."""

    baseline: Treatment
    treatment: Treatment
    before: Build | None
    """How the study builds the two; None where it does not."""
    after: Build | None
    difference: KernelDifference

    @property
    def name(self) -> str:
        """What the treatment is called beside the baseline."""
        return told_apart(self.treatment.label, self.baseline.label)

    def changed_kinds(self, study: Study) -> list[FactorKind]:
        """Kinds of the factors that change the kernel, and have another level in the two treatments."""
        return [
            factor.kind
            for factor in study.factors
            if self.baseline.levels[factor.name] != self.treatment.levels[factor.name]
            and (factor.changes or factor.kind is FactorKind.KERNEL)
        ]

    @property
    def changed_factors(self) -> int:
        """How many factors have another level in the two treatments."""
        return sum(self.baseline.levels[name] != level for name, level in self.treatment.levels.items())


@dataclass(frozen=True)
class Confounding:
    """What is to be said about a step."""

    confound: str = ""
    """What no factor accounts for, in one sentence; empty where there is nothing."""
    advice: str = ""
    note: str = ""


def with_kernels(
    study: Study, trials: Sequence[Trial], result: Result, differences: Sequence[KernelDifference]
) -> Result:
    """The result, with what no factor accounts for: those verdicts are inconclusive, and the reason says why.

    The ratios stay: they are the whole step's.
    """
    steps = {step.treatment.label: step for step in _steps(study, trials, differences)}
    if not steps:
        return result
    confoundings = {label: confounding_of(study, step) for label, step in steps.items()}
    warnings = [warning for step in steps.values() for warning in _reach_warnings(study, step)]
    for label, confounding in confoundings.items():
        warnings += _confounding_warnings(steps[label], confounding)

    def judged(comparison: Comparison) -> Comparison:
        step = steps.get(comparison.treatment)
        if step is None or comparison.ratio is None:
            return comparison
        kinds = step.changed_kinds(study)
        if step.difference.same_image and len(kinds) == step.changed_factors:
            reason = "the two kernels are the same image"
            return comparison.model_copy(update={"verdict": Verdict.IDENTICAL, "reason": reason})
        return _confounded(comparison, confoundings[comparison.treatment].confound)

    def interaction_judged(interaction: Interaction) -> Interaction:
        # Where one of the four treatments is confounded, so is what they show together.
        confounds = (confoundings[label].confound for label in interaction.treatments if label in steps)
        return _confounded(interaction, next(filter(None, confounds), ""))

    comparisons = tuple(map(judged, result.comparisons))
    interactions = tuple(map(interaction_judged, result.interactions))
    sentences = (answer(comparisons, study.margin, interactions), variability_answer(result.variability))
    return result.model_copy(
        update={
            "comparisons": comparisons,
            "interactions": interactions,
            "answer": " ".join(filter(None, sentences)),
            "warnings": tuple(dict.fromkeys((*warnings, *result.warnings))),
        }
    )


def _confounded(judged: Judged, confound: str) -> Judged:
    if not confound or judged.ratio is None:
        return judged
    return judged.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": f"confounded: {confound}"})


def _steps(
    study: Study, trials: Sequence[Trial], differences: Sequence[KernelDifference]
) -> Iterator[KernelStep]:
    by_digests = {
        (difference.before.digest, difference.after.digest): difference for difference in differences
    }
    digests = kernel_digests(study, trials) if differences else {}
    baseline, *treated = treatments(study)
    base_kernel = kernel_name(study, baseline)
    for treatment in treated:
        name = kernel_name(study, treatment)
        pair = digests.get(base_kernel, ""), digests.get(name, "")
        if name != base_kernel and (difference := by_digests.get(pair)):
            builds = build_of(study, baseline), build_of(study, treatment)
            yield KernelStep(baseline, treatment, *builds, difference)


def kernel_digests(study: Study, trials: Sequence[Trial]) -> dict[str, str]:
    """Kernel's name → digest of the kernel that its trials ran on; without those that ran on several."""
    by_name: dict[str, set[str]] = {}
    for trial in trials:
        if trial.provenance.kernel_digest:
            name = kernel_name(study, trial.planned.treatment)
            by_name.setdefault(name, set()).add(trial.provenance.kernel_digest)
    return {name: next(iter(digests)) for name, digests in by_name.items() if len(digests) == 1}


def confounding_of(study: Study, step: KernelStep) -> Confounding:
    """Compare what differs with what the factors account for, of those that differ in level."""
    difference = step.difference
    if difference.same_content or difference.nothing:
        return Confounding()
    words = [_in_words(respect, difference) for respect in difference.respects]
    before, after = difference.before.name, difference.after.name
    whole_step = f"what is measured is the whole step from {before} to {after}, not one of them"
    if step.before is None or step.after is None:
        # Kernels that the study does not build.
        if len(words) < 2:
            return Confounding()
        text = f"these kernels differ in {listed(words)} at once: {whole_step}"
        if _OF_SOURCES & set(difference.respects):
            return Confounding(note=text)
        return Confounding(confound=text, advice=_ONE_AT_A_TIME)
    accounted = _AccountedFor.by(study, step)
    beyond = list(accounted.beyond(difference))
    if len(accounted.of_kernels) > 1:
        respects = [_in_words(respect, difference) for respect in accounted.of_kernels] + beyond
        text = f"the kernels differ in {listed(respects)} at once, and no factor tells them apart"
        return Confounding(confound=text, advice=_ONE_AT_A_TIME)
    if beyond:
        text = f"the kernels also differ in {listed(beyond)}, which no factor declares"
        advice = "what is measured may be this, and not the factor: make it the same for both, or a factor"
        return Confounding(confound=text, advice=advice)
    if accounted.respects & _OF_SOURCES and len(words) > 1:
        text = f"these kernels differ in {listed(words)} at once, as different sources do: {whole_step}"
        return Confounding(note=text)
    return Confounding()


@dataclass(frozen=True)
class _AccountedFor:
    respects: frozenset[Respect]
    options: frozenset[str]
    """Options that factors set one by one."""
    of_kernels: tuple[Respect, ...]
    """In what the levels of a factor of kind `kernel` differ."""
    tools: bool
    """Whether the compiler is chosen by a factor."""

    @classmethod
    def by(cls, study: Study, step: KernelStep) -> "_AccountedFor":
        respects: set[Respect] = set()
        options: set[str] = set()
        variables: set[str] = set()
        of_kernels: tuple[Respect, ...] = ()
        for factor in study.factors:
            if step.baseline.levels[factor.name] == step.treatment.levels[factor.name]:
                continue
            levels = [str(treatment.levels[factor.name]) for treatment in (step.baseline, step.treatment)]
            if factor.kind is FactorKind.KERNEL:
                old, new = (study.builds[level] for level in levels)
                of_kernels = tuple(respects_of(old, new))
                variables |= {name for name, _ in old.make.items() ^ new.make.items()}
            for level in levels:
                if change := factor.changes.get(level):
                    options |= change.options.keys()
                    variables |= change.make.keys()
            respects |= _RESPECTS.get(factor.kind, frozenset())
        accounted = frozenset(respects) | frozenset(of_kernels)
        return cls(accounted, frozenset(options), of_kernels, bool(variables & _COMPILERS))

    def beyond(self, difference: KernelDifference) -> Iterator[str]:
        """Each respect that no factor accounts for, in words."""
        sources = bool(self.respects & _OF_SOURCES)
        for respect in difference.respects:
            if respect is Respect.OPTIONS:
                options = () if sources or respect in self.respects else self._unaccounted(difference)
                if options:
                    names = [option.option.removeprefix("CONFIG_") for option in options]
                    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
                    yield f"{_counted(len(names), 'option')} ({', '.join(names[:_MOST_NAMED])}{more})"
            elif respect is Respect.COMMAND_LINE:
                of_command_line = {option.option for option in difference.options if option.of_command_line}
                if not (sources or Respect.OPTIONS in self.respects or of_command_line & self.options):
                    yield _in_words(respect, difference)
            elif respect is Respect.COMPILER:
                if not self.tools:
                    yield f"compiler ({difference.before.compiler} and {difference.after.compiler})"
            elif respect not in self.respects and not (sources and respect in _OF_SOURCES):
                yield _in_words(respect, difference)

    def _unaccounted(self, difference: KernelDifference) -> tuple[OptionChange, ...]:
        """Options that are neither a factor's nor follow from one. Of a choice any of its own will do."""
        set_by_factors = [option for option in difference.options if option.option in self.options]
        roots = {option.option for option in set_by_factors} | {
            option.follows
            for option in set_by_factors
            if option.cause is OptionCause.OPTION and option.choice
        }
        return tuple(option for option in difference.decided if option.option not in roots)


def respects_of(before: Build, after: Build) -> Iterator[Respect]:
    """In what two builds are asked for differently."""
    if before.source != after.source:
        yield Respect.VERSION
    if [patch.digest for patch in before.patches] != [patch.digest for patch in after.patches]:
        yield Respect.PATCHES
    configurations = [(build.config_digest or build.config, build.options) for build in (before, after)]
    if configurations[0] != configurations[1]:
        yield Respect.OPTIONS
    if before.make != after.make:
        yield Respect.FLAGS


def _in_words(respect: Respect, difference: KernelDifference) -> str:
    if respect is Respect.OPTIONS:
        return _counted(len(difference.decided), "option") if difference.decided else "configuration"
    if respect is Respect.PATCHES and difference.patches:
        count = len(difference.patches)
        return f"{count} {'patch' if count == 1 else 'patches'}"
    return _WORDS.get(respect, respect.value)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _confounding_warnings(step: KernelStep, confounding: Confounding) -> Iterator[DataWarning]:
    """A note is about two kernels, whatever else the treatments differ in."""
    if confounding.confound:
        text = f"{step.name}: {confounding.confound}"
        yield DataWarning(kind=WarningKind.CONFOUND, text=text, advice=confounding.advice)
    if confounding.note:
        pair = f"{step.difference.before.name} {step.difference.after.name}"
        advice = f"what exactly: ktrial kernel diff {pair}"
        yield DataWarning(kind=WarningKind.WHOLE_STEP, text=confounding.note, advice=advice)


def _reach_warnings(study: Study, step: KernelStep) -> Iterator[DataWarning]:
    """What is to be said of a step whose change was not there to be measured."""
    difference, kinds = step.difference, set(step.changed_kinds(study))
    subject = _CHANGES.get(kinds.pop(), "the change") if len(kinds) == 1 else "the change"
    options = f"; {options_shown(difference.new_options)}" if difference.new_options else ""
    if difference.same_image:
        yield DataWarning(
            kind=WarningKind.SAME_IMAGE,
            text=f"{step.name}: the same image as the baseline's: {subject} changes nothing in it{options}",
            advice="there is nothing to compare: what it changes is not compiled in this configuration",
        )
    elif difference.reach:
        yield from unreached(difference.reach, f"{step.name}: ", subject, options)


def unreached(
    reach: Reach, start: str = "", subject: str = "the change", options: str = ""
) -> Iterator[DataWarning]:
    """What is to be said where code that differs did not run, or where no function differs.

    `start` and `options`: before and behind the sentence, of which `subject` is what changes the functions.
    """
    if not reach.functions and not reach.data:
        nothing = "changes no function and no variable of the kernel, only where they lie"
        yield DataWarning(
            kind=WarningKind.CHANGE_NOT_RUN,
            text=f"{start}{subject} {nothing}{options}",
            advice="the verdicts tell of placement alone: if more was to change, switch on what it brings "
            "(options in [kernels.NAME])",
        )
    elif not reach.functions:
        changed = f"changes data only ({listed(reach.named)}): no profile tells whether that is read"
        yield DataWarning(kind=WarningKind.CHANGE_PARTLY_RUN, text=f"{start}{subject} {changed}")
    elif reach.not_run:
        unnamed = len(reach.not_run) - _MOST_NAMED
        where = listed((*reach.not_run[:_MOST_NAMED], *([f"{unnamed} more"] if unnamed > 0 else [])))
        text = f"{start}no function that {subject} changes ({reach.functions} of them) ran in {where}"
        if reach.ran:
            advice = "there the verdict is a control: it says nothing about the change"
            yield DataWarning(kind=WarningKind.CHANGE_PARTLY_RUN, text=text, advice=advice)
        else:
            yield DataWarning(
                kind=WarningKind.CHANGE_NOT_RUN,
                text=f"{text}{options}",
                advice="the verdicts say nothing about it: switch on what it brings (options in "
                "[kernels.NAME]), or take workloads that run it",
            )


def uncontended(reach: Reach, workloads: Iterable[str]) -> Iterator[DataWarning]:
    """What is to be said of workloads, by their labels, in which a change was found to cost nothing."""
    for label in dict.fromkeys(workloads):
        names = reach.locking.get(label, ())
        if names:
            more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
            yield DataWarning(
                kind=WarningKind.SEVERAL_CPUS,
                text=f"{label}: the change is in code that locks memory or takes locks "
                f"({listed((*names[:_MOST_NAMED], *more))}): no count has what CPUs lose that share a cache "
                "line or wait for each other",
                advice="where they do, measure it on real ones",
            )
