"""What differs between a study's kernels: worked out once while they are at hand, kept with the study.

A study's result is worked out anew from its trials each time; kernels may be gone by then, or be others.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ktrial import kernels
from ktrial.analysis import change_reach
from ktrial.analysis.answer_sentence import answer, variability_answer
from ktrial.analysis.confounding import Confounding, KernelStep, confounding_of, warnings_of
from ktrial.kernels.errors import KernelError
from ktrial.model.comparison import Comparison, Interaction, Result, Verdict
from ktrial.model.design import FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.plan import treatments
from ktrial.model.profile import Profile
from ktrial.model.study import Study, build_of, kernel_name
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.store import Store


def remember(store: Store, study_id: int, study: Study, had: Mapping[str, Kernel | KernelError]) -> None:
    """Store what differs from the baseline's kernel to the others that trials ran on, where it is not stored.

    `had`: kernels that are at hand, by name; others come from the cache, if they are there and still the
    same. Raises StoreError.
    """
    # What reads patches and Kconfig files takes a second to load, and whoever shows a study needs none of it.
    from ktrial.analysis.change_reach import with_reach
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
        *change_reach.warnings_of(study, (step for step, _ in steps.values())),
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
            kernel = kernels.get(name)
        except KernelError:
            return None
    return kernel if isinstance(kernel, Kernel) and kernel.digest == digest else None
