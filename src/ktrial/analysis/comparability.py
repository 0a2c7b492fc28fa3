"""The trials of one treatment: its numbers, what is missing of them, and whether they may be compared with
another's at all: same kind of number, same machine.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from ktrial.format.labels import OUTCOMES
from ktrial.model.design import Perturbation, Treatment
from ktrial.model.study import Study, treatments
from ktrial.model.trial import BETWEEN_REASONS, WATCHED_FILES, Outcome, Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import MODELLED_CYCLES, Mode, Sample
from ktrial.stats.verdict_rules import Arm

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
    "rewind": "build of ktrial's rewind",
    WATCHED_FILES: "set of files read around the programs (installed monitors name them)",
}
"""As a trial notes what of ktrial's own it executed, and in words. What was not noted says nothing."""
_MACHINE_MODEL, _COMMAND = "machine model", "command"
Programs = Mapping[str, str]
"""A program of a number → its digest."""
_Item = TypeVar("_Item")


def machine_difference(baseline: Iterable[Trial], treatment: Iterable[Trial]) -> str:
    """Why these trials ran on different machines, in one sentence; empty where they did not.

    Trials that never reached a machine (no kernel) say nothing.
    """
    ran = [trial.provenance for trial in (*baseline, *treatment) if trial.provenance.machine]
    for name, value_of in _MACHINE.items():
        values = sorted({value_of(provenance) for provenance in ran})
        if len(values) > 1:
            short = (value if len(value) <= 60 else f"{value[:57]}…" for value in values)
            return f"the trials ran with a different {name}: {' and '.join(short)}"
    executed = [provenance.executed for provenance in ran]
    for name, words in _PROGRAMS.items():
        digests = sorted({programs[name] for programs in executed if name in programs})
        if len(digests) > 1:
            builds = " and ".join(digest[:12] for digest in digests)
            return f"the trials ran with a different {words}: {builds}"
    return ""


def programs_of(provenance: Provenance, metric: str, command: str) -> Programs:
    """What a number of this metric was measured with, apart from the machine. `command`: the digest of a
    command's definition, which its name does not tell; empty for a workload of ktrial's.
    """
    names = (*_PROGRAMS, *([_MACHINE_MODEL] if metric == MODELLED_CYCLES.name else []))
    noted = {name: provenance.executed[name] for name in names if name in provenance.executed}
    return noted | ({_COMMAND: command} if command else {})


def with_same_programs(
    measured: Iterable[tuple[Programs, _Item]],
) -> list[tuple[dict[str, str], list[_Item]]]:
    """What was measured with the same programs, together, in the order of the first of each."""
    groups: list[tuple[dict[str, str], list[_Item]]] = []
    for programs, item in measured:
        for noted, items in groups:
            if all(noted[name] == programs[name] for name in noted.keys() & programs.keys()):
                noted.update(programs)
                items.append(item)
                break
        else:
            groups.append((dict(programs), [item]))
    return groups


def differing_programs(first: Programs, second: Programs) -> list[str]:
    """In words, those of which both noted another one."""
    words = {**_PROGRAMS, _MACHINE_MODEL: "model of the machine", _COMMAND: "command of this name"}
    return [words[name] for name in words if name in first and name in second and first[name] != second[name]]


def kernel_difference(trials: Iterable[Trial]) -> str:
    """Why one treatment's trials ran on different kernels, in one sentence; empty where they did not."""
    kernels = {
        (trial.provenance.kernel_digest, trial.provenance.config_digest): trial.provenance
        for trial in trials
        if trial.provenance.kernel_digest
    }
    if len(kernels) < 2:
        return ""
    names = sorted(
        {f"{kernel.kernel_release} {kernel.kernel_digest[:12]}".strip() for kernel in kernels.values()}
    )
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


# Why a number that was planned is not there, in one sentence.


def why_missing(
    treatment: str,
    workload: str,
    trials: Sequence[Trial],
    measured: set[int],
    planned: int,
    beside: Collection[str] = (),
) -> str:
    """Why `workload` has no number under some of the perturbations; empty where it has one under each.

    `measured` are the perturbations with a number, `planned` is how many there should be, `beside` the
    study's other workloads, which may have failed as well.
    """
    if len(measured) >= planned:
        return ""
    without = [trial for trial in trials if trial.planned.perturbation.number not in measured]
    if failed := [trial for trial in without if trial.outcome_of(workload) is not Outcome.COMPLETED]:
        of_workload = [
            trial.model_copy(
                update={
                    "outcome": trial.outcome_of(workload),
                    "reason": _of_workload(trial.reason_of(workload), workload, beside),
                }
            )
            for trial in failed
        ]
        return f"{treatment}: {failures(of_workload, planned)}"
    if without:
        return f"{treatment}: {workload} gave no number in {len(without)} of {planned} trials"
    return f"{treatment}: {planned - len(measured)} of {planned} trials have not run yet"


def _of_workload(reason: str, workload: str, beside: Collection[str]) -> str:
    """What a reason says of one workload; all of it where it does not speak of that one."""
    labels = "|".join(re.escape(label) for label in sorted({workload, *beside}, key=len, reverse=True))
    begins = list(re.finditer(rf"(?:^|{re.escape(BETWEEN_REASONS)})(?:Workload )?({labels}): ", reason))
    for begin, after in pairwise([*begins, None]):
        if begin and begin[1] == workload:
            part = reason[begin.start() : after.start() if after else len(reason)]
            return part.removeprefix(BETWEEN_REASONS)
    return reason


def failures(failed: Sequence[Trial], planned: int) -> str:
    """`2 of 3 trials panicked (Kernel panic - not syncing: …)`, the most frequent outcome first."""
    counts = Counter(trial.outcome for trial in failed)
    outcome, number = min(counts.items(), key=lambda item: (-item[1], item[0].value))
    reason = next((trial.reason for trial in failed if trial.outcome is outcome), "")
    otherwise = len(failed) - number
    return (
        f"{number} of {planned} trials {OUTCOMES[outcome].predicate}"
        + (f" ({reason.rstrip('.')})" if reason else "")
        + (f", {otherwise} more failed otherwise" if otherwise else "")
    )


# The trials of one treatment: its numbers for each metric, and what is missing of them.

_INSTRUCTIONS = "instructions"
"""The unit of what counts instructions."""


@dataclass(frozen=True, eq=False)
class TreatmentTrials:
    """The trials of one treatment that ended, in run order."""

    treatment: Treatment
    trials: tuple[Trial, ...]
    planned: int
    some_will_do: bool
    """In real time a trial that failed leaves its block out; it does not undo the others."""
    workloads: tuple[str, ...] = ()
    """All of the study's."""
    _arms: dict[tuple[str, str], Arm] = field(default_factory=dict)

    def samples(self, label: str, metric: str) -> dict[int, Sample]:
        """Perturbation's number → sample."""
        return self._by_metric.get((label, metric), {})

    @cached_property
    def _by_metric(self) -> dict[tuple[str, str], dict[int, Sample]]:
        by_metric: dict[tuple[str, str], dict[int, Sample]] = {}
        for trial in self.trials:
            for sample in trial.samples:
                by_number = by_metric.setdefault((sample.workload, sample.metric), {})
                by_number[trial.planned.perturbation.number] = sample
        return by_metric

    def instructions(self, label: str) -> dict[Perturbation, float]:
        """The workload's instructions; empty where it counts none."""
        for (workload, _), samples in self._by_metric.items():
            if workload == label and any(sample.unit == _INSTRUCTIONS for sample in samples.values()):
                return {self._perturbations[number]: sample.value for number, sample in samples.items()}
        return {}

    @cached_property
    def last_mode(self) -> Mode | None:
        """How its last number came about; None where it has no number."""
        return next(
            (sample.mode for trial in reversed(self.trials) for sample in reversed(trial.samples)), None
        )

    def arm(self, label: str, metric: str) -> Arm:
        """The treatment's numbers for one metric, with what is missing of them."""
        if (label, metric) not in self._arms:
            name, samples, missing = self.treatment.label, self.samples(label, metric), ""
            if not (samples and self.some_will_do):
                planned = max(1, self.planned)
                missing = why_missing(name, label, self.trials, set(samples), planned, self.workloads)
            values = {self._perturbations[number]: sample.value for number, sample in sorted(samples.items())}
            self._arms[label, metric] = Arm(name, values, missing)
        return self._arms[label, metric]

    @cached_property
    def _perturbations(self) -> dict[int, Perturbation]:
        return {trial.planned.perturbation.number: trial.planned.perturbation for trial in self.trials}


def sides_of(study: Study, trials: Sequence[Trial]) -> list[TreatmentTrials]:
    """One a treatment, the baseline first; the trials in run order."""
    by_key: dict[str, list[Trial]] = {}
    for trial in trials:
        by_key.setdefault(trial.planned.treatment.key, []).append(trial)
    labels = tuple(use.label for use in study.workloads)
    sides = []
    for treatment in treatments(study):
        ended = tuple(by_key.get(treatment.key, ()))
        planned = len(ended) if study.timing else study.perturbations
        sides.append(TreatmentTrials(treatment, ended, planned, bool(study.timing), labels))
    return sides
