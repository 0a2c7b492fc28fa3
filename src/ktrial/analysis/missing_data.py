"""Why a number that was planned is not there, in one sentence."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from ktrial.format.labels import OUTCOMES
from ktrial.model.trial import BETWEEN_REASONS, Outcome, Trial


def why_missing(
    treatment: str,
    workload: str,
    trials: Sequence[Trial],
    measured: set[int],
    planned: int,
    others: Collection[str] = (),
) -> str:
    """Why `workload` has no number under some of the perturbations; empty where it has one under each.

    `measured` are the perturbations with a number, `planned` is how many there should be, `others` the
    study's other workloads, which may have failed as well.
    """
    if len(measured) >= planned:
        return ""
    without = [trial for trial in trials if trial.planned.perturbation.number not in measured]
    if failed := [trial for trial in without if trial.outcome is not Outcome.COMPLETED]:
        own = [one.model_copy(update={"reason": _own(one.reason, workload, others)}) for one in failed]
        return f"{treatment}: {failures(own, planned)}"
    if without:
        return f"{treatment}: {workload} gave no number in {len(without)} of {planned} trials"
    return f"{treatment}: {planned - len(measured)} of {planned} trials have not run yet"


def _own(reason: str, workload: str, others: Collection[str]) -> str:
    """What a reason says of one workload; all of it where it does not speak of that one."""
    labels = "|".join(re.escape(label) for label in sorted({workload, *others}, key=len, reverse=True))
    begins = list(re.finditer(rf"(?:^|{re.escape(BETWEEN_REASONS)})(?:Workload )?({labels}): ", reason))
    for begin, after in pairwise([*begins, None]):
        if begin and begin[1] == workload:
            own = reason[begin.start() : after.start() if after else len(reason)]
            return own.removeprefix(BETWEEN_REASONS)
    return reason


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
