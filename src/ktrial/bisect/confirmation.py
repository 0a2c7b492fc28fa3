"""The last word: A, A with what was found, and B, in one study, for `ktrial explain` and `ktrial report`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.store_queries import profile_of
from ktrial.bisect.decision import BisectionMetric
from ktrial.bisect.measurement import Setup, targets_of
from ktrial.bisect.sequential_decision import Terms
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import FACTOR, Measurement, Runs, kernel_factor
from ktrial.kernels import Progress
from ktrial.model.attribution import Explanation
from ktrial.model.design import Design, Factor, FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.levels import LevelValue
from ktrial.model.plan import treatments
from ktrial.model.references import KernelRef
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord


@dataclass(frozen=True)
class Confirmed:
    """What came of the study."""

    study: str = ""
    record: StudyRecord | None = None
    explanations: dict[str, Explanation] = field(default_factory=dict)
    """Target's label → the first candidate against the second, by function."""


def confirm(terms: Terms, setups: Mapping[str, Setup], runs: Runs) -> Confirmed:
    """Measure the candidates in one study; the first is its baseline. Raises what `session.run` raises."""
    study = study_of(f"bisect-{terms.kind}", setups, terms.how, terms.margin)
    kernels = {setup.kernel.name: setup.kernel for setup in setups.values()}

    def these(kernel: KernelRef, progress: Progress) -> Kernel:
        return kernels.get(kernel.asked) or runs.sources.obtain(kernel, progress)

    record = run(
        study,
        store=runs.store,
        machine=runs.machine,
        observer=runs.observer,
        jobs=runs.jobs,
        retry_failed=True,
        any_settings=True,
        sources=runs.sources.with_kernels(these),
    )
    targets = targets_of(record, terms.metrics)
    labels = tuple(setups)[:2]
    explained = {target.label: _explained(record, target, runs, labels) for target in targets}
    return Confirmed(study.name, record, {label: one for label, one in explained.items() if one})


def study_of(name: str, setups: Mapping[str, Setup], how: Measurement, margin: float) -> Study:
    """A study whose treatments are the candidates: kernels, or settings of one kernel."""
    rows = [levels_of(setup) for setup in setups.values()]
    factors = [factor for key in rows[0] if (factor := _factor(key, [row[key] for row in rows])) is not None]
    kernel = "" if any(one.kind is FactorKind.KERNEL for one in factors) else str(rows[0][FACTOR])
    names = [one.name for one in factors]
    contents = ", ".join(f"{label} {setup.kernel.digest[:12]}" for label, setup in setups.items())
    return Study(
        name=name,
        question=f"Does what was found explain the difference? The kernels' contents: {contents}.",
        machine=how.settings.model_copy(update={"kernel": kernel}),
        factors=tuple(factors),
        workloads=how.workloads,
        perturbations=how.perturbations,
        margin=margin,
        design=Design.LISTED,
        listed=tuple({name: row[name] for name in names} for row in rows[1:]),
    )


def levels_of(setup: Setup) -> dict[str, LevelValue]:
    """What a study of such candidates calls its levels, by factor."""
    return {FACTOR: setup.kernel.name, **setup.settings}


def _factor(name: str, values: list[LevelValue]) -> Factor | None:
    """None for a kernel that is the same in all candidates."""
    levels = tuple(dict.fromkeys(values))
    if name == FACTOR:
        return kernel_factor(*map(str, levels)) if len(levels) > 1 else None
    return Factor(name=name, kind=FactorKind.SETTING, levels=levels, baseline=values[0], target=name)


def _explained(
    record: StudyRecord, target: BisectionMetric, runs: Runs, labels: tuple[str, ...]
) -> Explanation | None:
    """The baseline against the next treatment; None where the trials were not counted by function."""
    profiles = [profile_of(runs.store, record, one, target.workload) for one in treatments(record.study)[:2]]
    before, after, *_ = (*profiles, None)
    return _labelled(explain(before, after), labels) if before and after else None


def _labelled(explanation: Explanation, labels: tuple[str, ...]) -> Explanation:
    """Two settings of one kernel have one boot's label."""
    before = explanation.before.model_copy(update={"label": labels[0]})
    after = explanation.after.model_copy(update={"label": labels[1]})
    return explanation.model_copy(update={"before": before, "after": after})
