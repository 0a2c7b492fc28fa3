"""What the trials of a proof take: how many, which systems have to be booted or built for them, CPU time."""

from collections.abc import Sequence

from ktrial.experiment.proof_runs import Runs
from ktrial.experiment.proof_study import BOOT_CONTROL, CONTROL, Reverting, boots_of_their_own
from ktrial.model.proof import CauseKind, Cost

_BOOT_SECONDS = 20.0
"""CPU seconds that a system takes to boot and to settle, before its first trial."""
_BUILD_SECONDS = 1500.0
"""CPU seconds that a kernel takes to be built with the configuration for guests."""


def cost_of(runs: Runs, rows: Sequence[Reverting], perturbations: int, more: int = 0) -> Cost:
    """Of these rows under so many perturbations, with their controls, and of `more` trials beside them."""
    if not rows:
        return Cost(trials=more, seconds=more * runs.seconds_a_trial)
    every = with_controls(rows)
    boots = boots_of_their_own(every)
    builds = sum(any(one.kind is CauseKind.OPTION for one in row.changed) for row in rows)
    trials = len(every) * perturbations + more
    seconds = trials * runs.seconds_a_trial + boots * _BOOT_SECONDS + builds * _BUILD_SECONDS
    return Cost(trials=trials, boots=boots, builds=builds, seconds=seconds)


def with_controls(rows: Sequence[Reverting]) -> list[Reverting]:
    """The rows, with what tells how far a write or a boot parameter alone moves the count."""
    wanted = {(row.side, bool(boots_of_their_own([row]))) for row in rows}
    return [
        *rows,
        *(Reverting(side, (BOOT_CONTROL if boots else CONTROL,)) for side, boots in sorted(wanted)),
    ]
