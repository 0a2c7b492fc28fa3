"""Why a number that was planned is not there, in one sentence."""

from collections import Counter
from collections.abc import Sequence

from ktrial.format.labels import OUTCOMES
from ktrial.model.trial import Outcome, Trial


def why_missing(
    treatment: str, workload: str, trials: Sequence[Trial], measured: set[int], planned: int
) -> str:
    """Why `workload` has no number under some of the perturbations; empty where it has one under each.

    `measured` are the perturbations with a number, `planned` is how many there should be.
    """
    if len(measured) >= planned:
        return ""
    without = [trial for trial in trials if trial.planned.perturbation.number not in measured]
    if failed := [trial for trial in without if trial.outcome is not Outcome.COMPLETED]:
        return f"{treatment}: {failures(failed, planned)}"
    if without:
        return f"{treatment}: {workload} gave no number in {len(without)} of {planned} trials"
    return f"{treatment}: {planned - len(measured)} of {planned} trials have not run yet"


def failures(failed: Sequence[Trial], planned: int) -> str:
    """`2 of 3 trials panicked (Kernel panic - not syncing: …)`, the most frequent outcome first."""
    counts = Counter(trial.outcome for trial in failed)
    outcome, number = min(counts.items(), key=lambda item: (-item[1], item[0].value))
    reason = next((trial.reason for trial in failed if trial.outcome is outcome), "")
    others = len(failed) - number
    return (
        f"{number} of {planned} trials {OUTCOMES[outcome].predicate}"
        + (f" ({reason.rstrip('.')})" if reason else "")
        + (f", {others} more failed otherwise" if others else "")
    )
