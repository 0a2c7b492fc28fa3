"""Which settings a kernel does not take: all of them written in one guest, without the workload."""

from collections.abc import Sequence

from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.errors import KtrialError
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.profile import own_results
from ktrial.experiment.proof_study import Reverting, proof_study, treatment_of
from ktrial.experiment.resources import Resources
from ktrial.experiment.settings import SettingRefused, TreatmentSetting, read_back
from ktrial.kernels import silent
from ktrial.machines import Machine
from ktrial.model.proof import Candidate, CauseKind, Side
from ktrial.studyfile.references import resolved
from ktrial.target import StepResult

WRITTEN = (CauseKind.SETTING, CauseKind.FEATURE)
"""Kinds that are written into a system that runs."""


def refusals(
    asked: AttributionQuestion, side: Side, found: Sequence[Candidate], machine: Machine, sources: Resources
) -> dict[str, str]:
    """Candidate's name → what the kernel of this side answers, of those that it does not take.

    Empty as well where the guest ends by one of them: their trials tell which.
    """
    written = tuple(one for one in found if one.kind in WRITTEN and one.value_on(side) is not None)
    if not written:
        return {}
    row = Reverting(side, written)
    study = resolved(proof_study(asked, 1, [row]))
    treatment = treatment_of(asked, study, row)
    try:
        (job,) = jobs_of(study, treatment, obtained(study, treatment, sources, silent), sources)
        settings = job.settings[-len(written) :]
        before = (*job.before, *job.preparation, *(one.step for one in job.settings[: -len(written)]))
        with machine.start(job.boot) as target:
            results = target.perform((*before, *(one.step for one in settings)))
    except KtrialError:
        return {}
    by_step = {one.step: one for one in own_results(results, len(before))}
    told = (_refusal(one, by_step.get(place)) for place, one in enumerate(settings))
    return {one.name: reason for one, reason in zip(written, told, strict=True) if reason}


def _refusal(setting: TreatmentSetting, result: StepResult | None) -> str:
    try:
        read_back((setting,), (result.model_copy(update={"step": 0}),) if result else ())
    except SettingRefused as refused:
        return str(refused)
    return ""
