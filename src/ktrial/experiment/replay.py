"""Trials on several CPUs in which a kernel failed or complained: their seed, and what runs the same again.

A schedule is a function of the seed there, so that a race that shows under one seed shows again.
"""

import re

from ktrial.model.design import PlannedTrial
from ktrial.model.trial import Outcome
from ktrial.model.warnings import DataWarning, WarningKind

_COMPLAINTS = re.compile(
    r"WARNING: .*|BUG: .*|Oops: .*|Kernel panic - .*|INFO: task .* blocked for more than .*"
    r"|.*(?:rcu_\w+|rcu:.*) (?:self-)?detected (?:expedited )?stalls?.*|.*lockup.*"
)
"""Kernel messages of a WARN, a BUG, a sanitizer, an oops, a hung task, a stall, a lockup."""
_FAILED = frozenset({Outcome.PANICKED, Outcome.HUNG, Outcome.WORKLOAD_FAILED})


def complaints_in(console: str) -> tuple[str, ...]:
    """The kernel's complaints on its console, each once, without their time stamps."""
    lines = (re.sub(r"^(?:<\d>)?(?:\[[^\]]*\]\s*)*", "", line) for line in console.splitlines())
    return tuple(dict.fromkeys(line.strip() for line in lines if _COMPLAINTS.fullmatch(line.strip())))


def replays(planned: PlannedTrial, outcome: Outcome, complaints: tuple[str, ...]) -> tuple[DataWarning, ...]:
    """A warning that names the seed and the command; none where all went well."""
    if outcome not in _FAILED and not complaints:
        return ()
    what = f"the kernel said: {complaints[0]}" if complaints else f"it ended as {outcome.value}"
    seed = planned.perturbation.layout_seed
    text = f"trial {planned.key} ({planned.treatment.label}), seed {seed}: {what}"
    advice = f"the same schedule again, with its console: ktrial verify STUDY --trial {planned.key}"
    return (DataWarning(kind=WarningKind.REPLAY, text=text, advice=advice),)
