"""What differs between a study's kernels: worked out once while they are at hand, kept with the study.

A study's result is worked out anew from its trials each time; kernels may be gone by then, or be others.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ktrial.analysis.answer import answer, variability_answer
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import KernelError
from ktrial.kernels.image_difference import called, code_difference, same_image
from ktrial.model.comparison import Comparison, Interaction, Result, Verdict
from ktrial.model.design import Factor, FactorKind, Treatment, told_apart
from ktrial.model.kernel import (
    Build,
    CodeDifference,
    Kernel,
    KernelDifference,
    OptionCause,
    OptionChange,
    Reach,
    Respect,
    options_shown,
)
from ktrial.model.profile import Profile
from ktrial.model.study import Study, build_of, kernel_name, treatments
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.store.store import Store


def remember(store: Store, study_id: int, study: Study, had: Mapping[str, Kernel | KernelError]) -> None:
    """Store what differs from the baseline's kernel to the others that trials ran on, where it is not stored.

    `had`: kernels that are at hand, by name; others come from the cache, if they are there and still the
    same. Raises StoreError.
    """
    # What reads patches and Kconfig files takes a second to load, and whoever shows a study needs none of it.
    from ktrial.analysis.kernel_diff import difference_of

    trials = store.trials(study_id)
    digests = _digests(study, trials)
    known = {(one.before.digest, one.after.digest) for one in store.kernel_differences(study_id)}
    baseline, *others = dict.fromkeys(kernel_name(study, one) for one in treatments(study))
    for name in others:
        pair = digests.get(baseline, ""), digests.get(name, "")
        if "" in pair or pair in known:
            continue
        before, after = (_kernel(one, digests[one], had) for one in (baseline, name))
        if before and after:
            # Another ktrial may take a kernel out of the cache meanwhile; the trials are stored all the same.
            with contextlib.suppress(FileNotFoundError):
                profiles = _profiles(store, study_id, study, trials, (baseline, name))
                difference = with_reach(difference_of(before, after), before, after, profiles)
                store.add_kernel_difference(study_id, difference)


def _profiles(
    store: Store, study_id: int, study: Study, trials: Sequence[Trial], kernel_names: tuple[str, str]
) -> dict[str, tuple[list[Profile], list[Profile]]]:
    """Workload's label → its profiles on the two kernels, one of each treatment."""

    def of(kernel: str, label: str) -> Iterator[Profile]:
        for treatment in treatments(study):
            own = (one.planned for one in trials if one.planned.treatment.key == treatment.key)
            if kernel_name(study, treatment) == kernel:
                profiles = (store.profile(study_id, planned.key, label) for planned in own)
                yield from islice((one for one in profiles if one), 1)

    before, after = kernel_names
    there = store.profiled(study_id)
    return {
        use.label: (list(of(before, use.label)), list(of(after, use.label)))
        if use.label in there
        else ([], [])
        for use in study.workloads
    }


def with_kernels(
    study: Study, trials: Sequence[Trial], result: Result, differences: Sequence[KernelDifference]
) -> Result:
    """The result, with what no factor accounts for: those verdicts are inconclusive, and the reason says why.

    The ratios stay: they are the whole step's.
    """
    steps = {
        step.treatment.label: (step, confounding_of(study, step))
        for step in _steps(study, trials, differences)
    }
    if not steps:
        return result
    warnings: list[DataWarning] = [
        *reach_warnings(study, (step for step, _ in steps.values())),
        *(warning for step, one in steps.values() for warning in warnings_of(step, one)),
    ]
    comparisons = tuple(
        _identical(study, _confounded(one, steps.get(one.treatment)), steps.get(one.treatment))
        for one in result.comparisons
    )
    interactions = tuple(_of_confounded(one, steps) for one in result.interactions)
    said = (answer(comparisons, study.margin, interactions), variability_answer(result.variability))
    return result.model_copy(
        update={
            "comparisons": comparisons,
            "interactions": interactions,
            "answer": " ".join(filter(None, said)),
            "warnings": tuple(dict.fromkeys((*warnings, *result.warnings))),
        }
    )


@dataclass(frozen=True)
class Confounding:
    """What is to be said about a step."""

    confound: str = ""
    """What no factor accounts for, in one sentence; empty where there is nothing."""
    advice: str = ""
    note: str = ""


@dataclass(frozen=True)
class KernelStep:
    """From the baseline's kernel to a treatment's."""

    baseline: Treatment
    treatment: Treatment
    before: Build | None
    """How the study builds the two; None where it does not."""
    after: Build | None
    difference: KernelDifference


def _confounded(one: Comparison, step: tuple[KernelStep, Confounding] | None) -> Comparison:
    if step is None or not step[1].confound or one.ratio is None:
        return one
    reason = f"confounded: {step[1].confound}"
    return one.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})


def _identical(study: Study, one: Comparison, step: tuple[KernelStep, Confounding] | None) -> Comparison:
    """Where the two treatments differ in nothing but a kernel that is the same image."""
    if step is None or not step[0].difference.same_image or one.ratio is None:
        return one
    levels = step[0].baseline.levels, step[0].treatment.levels
    beside = [
        factor.name
        for factor in study.factors
        if levels[0][factor.name] != levels[1][factor.name]
        and not (factor.changes or factor.kind is FactorKind.KERNEL)
    ]
    if beside:
        return one
    return one.model_copy(
        update={"verdict": Verdict.IDENTICAL, "reason": "the two kernels are the same image"}
    )


def _of_confounded(one: Interaction, steps: Mapping[str, tuple[KernelStep, Confounding]]) -> Interaction:
    """Where one of the four treatments is confounded, so is what they show together."""
    confounds = [steps[label][1].confound for label in one.treatments if label in steps]
    reason = next((f"confounded: {confound}" for confound in confounds if confound), "")
    if not reason or one.ratio is None:
        return one
    return one.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": reason})


def _steps(
    study: Study, trials: Sequence[Trial], differences: Sequence[KernelDifference]
) -> Iterator[KernelStep]:
    by_digests = {(one.before.digest, one.after.digest): one for one in differences}
    digests = _digests(study, trials) if differences else {}
    baseline, *others = treatments(study)
    own = kernel_name(study, baseline)
    before = digests.get(own, "")
    for one in others:
        name = kernel_name(study, one)
        if name != own and (difference := by_digests.get((before, digests.get(name, "")))):
            yield KernelStep(baseline, one, build_of(study, baseline), build_of(study, one), difference)


def _digests(study: Study, trials: Sequence[Trial]) -> dict[str, str]:
    """Kernel's name → digest of the kernel that its trials ran on; without those that ran on several."""
    by_name: dict[str, set[str]] = {}
    for trial in trials:
        if trial.provenance.kernel_digest:
            name = kernel_name(study, trial.planned.treatment)
            by_name.setdefault(name, set()).add(trial.provenance.kernel_digest)
    return {name: next(iter(digests)) for name, digests in by_name.items() if len(digests) == 1}


def _kernel(name: str, digest: str, had: Mapping[str, Kernel | KernelError]) -> Kernel | None:
    kernel = had.get(name)
    if kernel is None:
        try:
            kernel = kernel_registry.get(name)
        except KernelError:
            return None
    return kernel if isinstance(kernel, Kernel) and kernel.digest == digest else None


# Which differences between kernels a study's factors account for. What they do not is a confound, and
# named.
#
# - A factor of kind `kconfig` accounts for its options and what follows from them by Kconfig; `patch` for it
# patches and the options that they bring; `compiler-flags` for the flags; `source` for the source, and so
# for what cannot stay the same between sources.
# - A factor of kind `kernel` accounts for the one respect in which its kernels differ. Where the builds of
# a study differ in several, the effect cannot be told to be any one of them's.
# - Kernels of different versions that the study does not build differ in options and compiler by necessity:
# what is measured is the whole step, which is said in words.

_OF_SOURCES = frozenset({Respect.VERSION, Respect.SOURCE})


_MOST_NAMED = 5


_WORDS = {
    Respect.FLAGS: "compiler flags",
    Respect.SOURCE: "source",
    Respect.COMMAND_LINE: "built-in command line",
}


_ONE_AT_A_TIME = (
    "what is measured may be any of them: make each a factor of its own (kinds source, patch, kconfig, "
    "compiler-flags), so that one thing differs at a time"
)


_MAKE_SAME = "what is measured may be this, and not the factor: make it the same for both, or a factor"


_COMPILERS = frozenset({"CC", "LLVM", "LD", "PAHOLE"})
"""Variables of make that choose the tools."""


def confounding_of(study: Study, step: KernelStep) -> Confounding:
    """Compare what differs with what the factors account for, of those that differ in level."""
    changed = [
        factor
        for factor in study.factors
        if step.baseline.levels[factor.name] != step.treatment.levels[factor.name]
    ]
    if step.difference.same_content or step.difference.nothing:
        return Confounding()
    if step.before is None or step.after is None:
        return _of_others(step.difference)
    return _of_builds(study, step, changed)


def warnings_of(step: KernelStep, confounding: Confounding) -> Iterator[DataWarning]:
    """The confounding as warnings. A note is about two kernels, whatever else the treatments differ in."""
    name = told_apart(step.treatment.label, step.baseline.label)
    if confounding.confound:
        text = f"{name}: {confounding.confound}"
        yield DataWarning(kind=WarningKind.CONFOUND, text=text, advice=confounding.advice)
    if confounding.note:
        advice = (
            f"what exactly: ktrial kernel diff {step.difference.before.name} {step.difference.after.name}"
        )
        yield DataWarning(kind=WarningKind.WHOLE_STEP, text=confounding.note, advice=advice)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _of_others(difference: KernelDifference) -> Confounding:
    """Kernels that the study does not build."""
    words = [_in_words(one, difference) for one in difference.respects]
    if len(words) < 2:
        return Confounding()
    text = f"these kernels differ in {listed(words)} at once: {_whole(difference)}"
    if _OF_SOURCES & set(difference.respects):
        return Confounding(note=text)
    return Confounding(confound=text, advice=_ONE_AT_A_TIME)


def _whole(difference: KernelDifference) -> str:
    before, after = difference.before.name, difference.after.name
    return f"what is measured is the whole step from {before} to {after}, not one of them"


def _of_builds(study: Study, step: KernelStep, changed: Sequence[Factor]) -> Confounding:
    """Kernels that the study builds."""
    accounted = _AccountedFor.by(study, step, changed)
    beyond = list(accounted.beyond(step.difference))
    if len(accounted.of_kernels) > 1:
        words = [_in_words(one, step.difference) for one in accounted.of_kernels] + beyond
        text = f"the kernels differ in {listed(words)} at once, and no factor tells them apart"
        return Confounding(confound=text, advice=_ONE_AT_A_TIME)
    if beyond:
        text = f"the kernels also differ in {listed(beyond)}, which no factor declares"
        return Confounding(confound=text, advice=_MAKE_SAME)
    words = [_in_words(one, step.difference) for one in step.difference.respects]
    if accounted.respects & _OF_SOURCES and len(words) > 1:
        text = f"these kernels differ in {listed(words)} at once, as different sources do: "
        return Confounding(note=text + _whole(step.difference))
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
    def by(cls, study: Study, step: KernelStep, changed: Sequence[Factor]) -> "_AccountedFor":
        respects: set[Respect] = set()
        options: set[str] = set()
        variables: set[str] = set()
        of_kernels: tuple[Respect, ...] = ()
        for factor in changed:
            levels = [str(one.levels[factor.name]) for one in (step.baseline, step.treatment)]
            if factor.kind is FactorKind.KERNEL:
                old, new = (study.builds[level] for level in levels)
                of_kernels = tuple(respects_of(old, new))
                variables |= _differing(old.make, new.make)
            for level in levels:
                if change := factor.changes.get(level):
                    options |= change.options.keys()
                    variables |= change.make.keys()
            respects |= _RESPECTS.get(factor.kind, frozenset())
        own = frozenset(respects) | frozenset(of_kernels)
        return cls(own, frozenset(options), of_kernels, bool(variables & _COMPILERS))

    def beyond(self, difference: KernelDifference) -> Iterator[str]:
        """Each respect that no factor accounts for, in words."""
        sources = bool(self.respects & _OF_SOURCES)
        for respect in difference.respects:
            if respect is Respect.OPTIONS:
                options = () if sources or respect in self.respects else self._unaccounted(difference)
                if options:
                    yield f"{_counted(len(options), 'option')} ({_names(options)})"
            elif respect is Respect.COMMAND_LINE:
                own = {one.option for one in difference.options if one.of_command_line}
                if not (sources or Respect.OPTIONS in self.respects or own & self.options):
                    yield _in_words(respect, difference)
            elif respect is Respect.COMPILER:
                if not self.tools:
                    yield f"compiler ({difference.before.compiler} and {difference.after.compiler})"
            elif respect not in self.respects and not (sources and respect in _OF_SOURCES):
                yield _in_words(respect, difference)

    def _unaccounted(self, difference: KernelDifference) -> tuple[OptionChange, ...]:
        """Options that are neither a factor's nor follow from one. Of a choice any of its own will do."""
        own = [one for one in difference.options if one.option in self.options]
        roots = {one.option for one in own} | {
            one.follows for one in own if one.cause is OptionCause.OPTION and one.choice
        }
        return tuple(one for one in difference.decided if one.option not in roots)


_RESPECTS = {
    FactorKind.PATCH: frozenset({Respect.PATCHES}),
    FactorKind.SOURCE: _OF_SOURCES,
    FactorKind.COMPILER_FLAGS: frozenset({Respect.FLAGS}),
}


def respects_of(before: Build, after: Build) -> Iterator[Respect]:
    """In what two builds are asked for differently."""
    if before.source != after.source:
        yield Respect.VERSION
    if [one.digest for one in before.patches] != [one.digest for one in after.patches]:
        yield Respect.PATCHES
    asked = [(one.config_digest or one.config, one.options) for one in (before, after)]
    if asked[0] != asked[1]:
        yield Respect.OPTIONS
    if before.make != after.make:
        yield Respect.FLAGS


def _differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _in_words(respect: Respect, difference: KernelDifference) -> str:
    if respect is Respect.OPTIONS:
        return _counted(len(difference.decided), "option") if difference.decided else "configuration"
    if respect is Respect.PATCHES and difference.patches:
        count = len(difference.patches)
        return f"{count} {'patch' if count == 1 else 'patches'}"
    return _WORDS.get(respect, respect.value)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _names(options: Sequence[OptionChange]) -> str:
    names = [one.option.removeprefix("CONFIG_") for one in options]
    left = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {left} more" if left > 0 else "")


# Whether what a factor changes in a kernel was there to be measured: in the image, and in what ran.
#
# A verdict about a patch rests on it. A patch whose option is off changes no code, or code that nothing
# runs; `equivalent` is then true, and says nothing about the patch.

_CHANGE_REACH_MOST_NAMED = 5


_OTHER_SOURCE = frozenset({Respect.VERSION, Respect.SOURCE})


_CHANGES = {
    FactorKind.PATCH: "the patch",
    FactorKind.KCONFIG: "the option",
    FactorKind.COMPILER_FLAGS: "the compiler flags",
}


_SWITCHED_OFF = (
    "the verdicts say nothing about it: switch on what it brings (options in [kernels.NAME]), or take "
    "workloads that run it"
)


_ONLY_MOVED = (
    "the verdicts tell of placement alone: if more was to change, switch on what it brings (options in "
    "[kernels.NAME])"
)


def with_reach(
    difference: KernelDifference,
    before: Kernel,
    after: Kernel,
    profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]],
) -> KernelDifference:
    """The difference, with what only images and profiles tell.

    `profiles`: a workload's label → its profiles on the one kernel, and on the other.
    """
    known = {one.option for one in before.origin.new_options}
    told: dict[str, object] = {
        "new_options": tuple(one for one in after.origin.new_options if one.option not in known),
        "same_image": same_image(before, after),
    }
    built = before.origin.build and after.origin.build and not _OTHER_SOURCE & set(difference.respects)
    if built and not told["same_image"] and (code := code_difference(before, after)):
        told["reach"] = reach(code, profiles)
    return difference.model_copy(update=told)


def reach(code: CodeDifference, profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]]) -> Reach:
    """In which workloads a function ran that differs, on one of the two kernels."""
    differing = frozenset(code.functions)
    ran = {
        label: any(_runs(profile, differing) for profile in (*of_one, *of_other))
        for label, (of_one, of_other) in profiles.items()
        if of_one and of_other
    }
    return Reach(
        functions=len(code.functions),
        data=len(code.data),
        named=(code.functions or code.data)[:_CHANGE_REACH_MOST_NAMED],
        ran=tuple(label for label, has_run in ran.items() if has_run),
        not_run=tuple(label for label, has_run in ran.items() if not has_run),
    )


def _runs(profile: Profile, functions: frozenset[str]) -> bool:
    return any(
        one.instructions and called(one.symbol, one.module) in functions for one in profile.region.functions
    )


def reach_warnings(study: Study, steps: Iterable[KernelStep]) -> Iterator[DataWarning]:
    """What is to be said about each step from the baseline's kernel to a treatment's."""
    for step in steps:
        difference = step.difference
        what, name = _what(study, step), told_apart(step.treatment.label, step.baseline.label)
        options = f"; {options_shown(difference.new_options)}" if difference.new_options else ""
        if difference.same_image:
            yield DataWarning(
                kind=WarningKind.SAME_IMAGE,
                text=f"{name}: the same image as the baseline's: {what} changes nothing in it{options}",
                advice="there is nothing to compare: what it changes is not compiled in this configuration",
            )
        elif difference.reach:
            yield from _of_reach(difference.reach, name, what, options)


def _of_reach(reach: Reach, name: str, what: str, options: str) -> Iterator[DataWarning]:
    if not reach.functions and not reach.data:
        text = (
            f"{name}: {what} changes no function and no variable of the kernel, only where they lie{options}"
        )
        yield DataWarning(kind=WarningKind.CHANGE_NOT_RUN, text=text, advice=_ONLY_MOVED)
    elif not reach.functions:
        text = (
            f"{name}: {what} changes data only ({listed(reach.named)}): no profile tells whether that is read"
        )
        yield DataWarning(kind=WarningKind.CHANGE_PARTLY_RUN, text=text)
    elif reach.not_run:
        where = listed(reach.not_run[:_CHANGE_REACH_MOST_NAMED] + _rest(reach.not_run))
        text = f"{name}: no function that {what} changes ({reach.functions} of them) ran in {where}"
        kind = WarningKind.CHANGE_PARTLY_RUN if reach.ran else WarningKind.CHANGE_NOT_RUN
        advice = (
            "there the verdict is a control: it says nothing about the change" if reach.ran else _SWITCHED_OFF
        )
        yield DataWarning(kind=kind, text=f"{text}{'' if reach.ran else options}", advice=advice)


def _rest(labels: Sequence[str]) -> tuple[str, ...]:
    return (
        (f"{len(labels) - _CHANGE_REACH_MOST_NAMED} more",) if len(labels) > _CHANGE_REACH_MOST_NAMED else ()
    )


def _what(study: Study, step: KernelStep) -> str:
    kinds = {
        factor.kind
        for factor in study.factors
        if step.baseline.levels[factor.name] != step.treatment.levels[factor.name]
        and (factor.changes or factor.kind is FactorKind.KERNEL)
    }
    return _CHANGES.get(kinds.pop(), "the change") if len(kinds) == 1 else "the change"
