"""Whether the trials of two treatments may be compared at all: same kind of number, same machine."""

from collections.abc import Callable, Iterable

from ktrial.model.trial import Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Mode

_MACHINE: dict[str, Callable[[Provenance], str]] = {
    "machine": lambda provenance: provenance.machine,
    "QEMU build": lambda provenance: provenance.qemu,
    "CPU model": lambda provenance: provenance.cpu_model,
    "guest agent": lambda provenance: provenance.agent_digest,
    "QEMU seed": lambda provenance: str(provenance.seed),
}
"""What must be the same on both sides, and where it is found."""
_PROGRAMS = {
    "workloads": "build of ktrial's workloads",
    "tasks": "build of ktrial's workloads of several tasks",
    "lockstep": "build of ktrial's lockstep",
    "parallel": "build of ktrial's parallel",
    "plugin": "build of ktrial's plugin",
}
"""As a trial notes what of ktrial's own it executed, and in words. What was not noted says nothing."""


def machine_difference(baseline: Iterable[Trial], treatment: Iterable[Trial]) -> str:
    """Why these trials ran on different machines, in one sentence; empty where they did not.

    Trials that never reached a machine (no kernel) say nothing.
    """
    ran = [trial.provenance for trial in (*baseline, *treatment) if trial.provenance.machine]
    for name, value_of in _MACHINE.items():
        values = sorted({value_of(provenance) for provenance in ran})
        if len(values) > 1:
            return f"the trials ran with a different {name}: {' and '.join(map(_short, values))}"
    return _program_difference(ran)


def _program_difference(ran: Iterable[Provenance]) -> str:
    executed = [provenance.executed for provenance in ran]
    for name, words in _PROGRAMS.items():
        digests = sorted({one[name] for one in executed if name in one})
        if len(digests) > 1:
            return f"the trials ran with a different {words}: {' and '.join(one[:12] for one in digests)}"
    return ""


def kernel_difference(trials: Iterable[Trial]) -> str:
    """Why one treatment's trials ran on different kernels, in one sentence; empty where they did not."""
    kernels = {
        (trial.provenance.kernel_digest, trial.provenance.config_digest): trial.provenance
        for trial in trials
        if trial.provenance.kernel_digest
    }
    if len(kernels) < 2:
        return ""
    names = sorted({f"{one.kernel_release} {one.kernel_digest[:12]}".strip() for one in kernels.values()})
    return f"its trials ran on different kernels: {' and '.join(names)}"


def mode_difference(modes: Iterable[Mode]) -> str:
    """Why these numbers mean different things, in one sentence; empty where they do not."""
    distinct = set(modes)
    if distinct == {Mode.EXACT_CLOCK, Mode.EXACT_PLUGIN}:
        return (
            "some of the instructions were counted by the plugin, others read from the guest's clock, which "
            "counts string instructions otherwise: run all anew with --count plugin or --count clock"
        )
    names = sorted(mode.value for mode in distinct)
    return f"the numbers are of different modes: {' and '.join(names)}" if len(names) > 1 else ""


def warn(kind: WarningKind, reason: str, treatment: str) -> DataWarning:
    """The warning that goes with one of the reasons above."""
    return DataWarning(
        kind=kind,
        text=f"{treatment}: {reason}; this is not compared",
        advice="delete the study (ktrial list shows its number) and run it again, all on one machine",
    )


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:57]}…"
