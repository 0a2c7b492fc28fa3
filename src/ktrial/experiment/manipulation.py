"""What a treatment puts in force around a workload, and how one knows that it was: more than a setting.

Of schedulers that are programs `sched_ext` knows that; the preemption model is here. A kernel that does not
know a model says so in its log, and boots with its default. Built with CONFIG_PREEMPT_DYNAMIC it tells in
debugfs which one is in force (since Linux 5.13); else its configuration does. lazy came with 6.13; of
Debian's kernels, 6.18 knows all four and 7.2 only full and lazy.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrial.kernels.config import scheduling
from ktrial.knobs.values import form_of
from ktrial.model.design import AS_IT_IS, FactorKind, Treatment, level_text, scheduler_argv
from ktrial.model.kernel import Kernel
from ktrial.model.references import KnobRef
from ktrial.model.study import Study
from ktrial.target import Read, Start, Step, StepResult, Stop, Write
from ktrial.workloads.command import ENVIRONMENT
from ktrial.workloads.host_files import program_path

# What a treatment puts in force around a workload, and how one knows that it was: more than a setting.
#
# Of schedulers that are programs `sched_ext` knows that; the preemption model is here. A kernel that does
# not know a model says so in its log, and boots with its default. Built with CONFIG_PREEMPT_DYNAMIC it
# tells in debugfs which one is in force (since Linux 5.13); else its configuration does. lazy came with
# 6.13; of Debian's kernels, 6.18 knows all four and 7.2 only full and lazy.


class ManipulationCheck(Protocol):
    """Steps before and after the workload, and what their results say."""

    @property
    def before(self) -> tuple[Step, ...]:
        """Done before anything else."""
        ...

    @property
    def after(self) -> tuple[Step, ...]:
        """Done after the workload."""
        ...

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """What was in force, by name. Raises SettingRefused where that is not what was asked for."""
        ...


def manipulation_checks(
    study: Study, treatment: Treatment, kernel: Kernel, parameters: Sequence[str]
) -> tuple[ManipulationCheck, ...]:
    """The treatment's scheduler and preemption model; nothing where the study does not speak of them.

    `parameters`: the kernel's, as it is booted.
    """
    checks: list[ManipulationCheck] = []
    if model := preemption_of(study, kernel, parameters):
        checks.append(model)
    for factor in study.factors:
        if factor.kind is FactorKind.SCHEDULER and (argv := scheduler_argv(treatment.levels[factor.name])):
            checks.append(SchedExt(argv))
    return tuple(checks)


PARAMETER = "preempt"
_FILE = "/sys/kernel/debug/sched/preempt"


@dataclass(frozen=True)
class Preemption:
    """One model, as it is asked for."""

    asked: str
    """Empty: the kernel's own, which is told."""
    built_in: str
    """The only model of a kernel that cannot choose; empty where it can, or nobody knows."""

    @property
    def before(self) -> tuple[Step, ...]:
        """What the kernel says."""
        return (Read(path=_FILE),)

    @property
    def after(self) -> tuple[Step, ...]:
        """It stays as it is."""
        return ()

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """The model in force. Raises SettingRefused where it is another one than was asked for."""
        (result,) = before
        chosen = re.search(r"\((\w+)\)", result.content)
        model = chosen.group(1) if chosen else self.built_in
        if self.asked and self.asked != model:
            raise SettingRefused(f"{PARAMETER}={self.asked} was asked for, {self._instead(result, model)}")
        return {PARAMETER: model} if model else {}

    def _instead(self, result: StepResult, model: str) -> str:
        if result.content:
            models = result.content.replace("(", "").replace(")", "").split()
            return f"the kernel made it {model}: it knows {', '.join(models)}"
        if model:
            return f"the kernel is built for {model} and nothing else (CONFIG_PREEMPT_DYNAMIC is not set)"
        return f"and nothing tells what became of it: {result.failure.text if result.failure else _FILE}"


def preemption_of(study: Study, kernel: Kernel, parameters: Sequence[str]) -> Preemption | None:
    """The model that the boot asks for; None where neither the study nor its machine speaks of it."""
    models = [
        parameter.partition("=")[2] for parameter in parameters if parameter.startswith(f"{PARAMETER}=")
    ]
    is_factor = any(factor.kind is FactorKind.BOOT and factor.target == PARAMETER for factor in study.factors)
    if not models and not is_factor:
        return None
    kernel_scheduling = scheduling(kernel)
    built_in = "" if kernel_scheduling.chosen_at_boot else kernel_scheduling.preemption
    return Preemption(asked=models[-1] if models else "", built_in=built_in)


# Settings of a treatment: where they are, how they are written, and whether the kernel took them.


@dataclass(frozen=True)
class TreatmentSetting:
    """One setting and the value that a treatment gives it."""

    knob: KnobRef
    """A knob (`base_slice_ns`), a sysctl (`vm.swappiness`), or a path."""
    value: str
    path: str
    """Where the treatment's kernel has it: kernels keep the same knob in different places."""

    @property
    def name(self) -> str:
        """The factor's target."""
        return self.knob.asked

    @property
    def step(self) -> Write:
        """The step that writes it and reads it back."""
        return Write(path=self.path, value=self.value, knob=self.knob)

    def is_shown_by(self, text: str) -> bool:
        """Whether the file's text says so: some files show more than a value."""
        return form_of(self.path).shows(self.value, text)


class SettingRefused(Exception):
    """The kernel refused a setting, or made something else of it. The text says which, in one sentence."""


def settings_of(study: Study, treatment: Treatment, release: str = "") -> tuple[TreatmentSetting, ...]:
    """The treatment's settings in a kernel of this release, in the order of the study's factors.

    What stays as it is is not among them.
    """
    knobs = study.references.knobs
    return tuple(
        TreatmentSetting(knob, level_text(treatment.levels[factor.name]), knob.path_in(release))
        for factor in study.factors
        if factor.kind is FactorKind.SETTING
        and treatment.levels[factor.name] != AS_IT_IS
        and (knob := knobs[factor.target])
    )


def read_back(settings: tuple[TreatmentSetting, ...], results: tuple[StepResult, ...]) -> dict[str, str]:
    """The settings in force, by name, from the results of their steps. Raises SettingRefused."""
    by_step = {result.step: result for result in results}
    values = {}
    for place, setting in enumerate(settings):
        result = by_step.get(place)
        if result is None:
            raise SettingRefused(f"{setting.name} was never written")
        if result.failure:
            answer = ": ".join(filter(None, (result.failure.name, result.failure.text)))
            raise SettingRefused(f"{setting.name} = {setting.value} was refused: {answer}")
        if not setting.is_shown_by(result.after):
            value = result.after.strip()
            raise SettingRefused(
                f"{setting.name} = {setting.value} was asked for, the kernel made it {value}"
            )
        values[setting.name] = result.after.strip()
    return values


# Whether the guest's kernel runs on all CPUs that it was given.

_CPUS_ONLINE_FILE = "/sys/devices/system/cpu/online"
_FEWER = ("nosmp", "maxcpus", "nr_cpus", "possible_cpus", "nosmt", "disable_cpu_apicid", "noapic", "nolapic")
"""Boot parameters that leave CPUs out, as they should."""
NAME = "CPUs online"


@dataclass(frozen=True)
class CpusOnline:
    """How many there are to be, and whether the boot asks for fewer."""

    cpus: int
    fewer: bool

    @property
    def before(self) -> tuple[Step, ...]:
        """Nothing: it would be a part of what the workload meets."""
        return ()

    @property
    def after(self) -> tuple[Step, ...]:
        """What the kernel says once the workload is done: a CPU may be lost meanwhile, too."""
        return (Read(path=_CPUS_ONLINE_FILE),)

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """The CPUs where they are fewer. Raises SettingRefused where the boot did not ask for that."""
        (result,) = after
        online = result.content.strip()
        count = counted(online)
        if count == self.cpus:
            return {}
        if not self.fewer:
            state = f"runs on {online}" if count else f"does not tell which of them run ({_FILE})"
            raise SettingRefused(f"{self.cpus} CPUs were asked for, and the kernel {state}")
        return {NAME: online}


def cpus_online(cpus: int, parameters: Sequence[str]) -> CpusOnline:
    """The check, for a boot with these parameters."""
    return CpusOnline(cpus, any(parameter.partition("=")[0] in _FEWER for parameter in parameters))


def counted(listed: str) -> int:
    """How many CPUs a list of the kernel's names: `0-2,5` is 4; 0 where it is none."""
    try:
        ends = [[int(end) for end in part.split("-")] for part in listed.split(",")]
    except ValueError:
        return 0
    return sum(last - first + 1 for first, *_, last in ([*part, part[-1]] for part in ends))


# A scheduler that is a program: loaded into the guest before the workload, watched, taken away after it.
#
# The kernel's class sched_ext (Linux 6.12, CONFIG_SCHED_CLASS_EXT) lets a BPF program schedule for as long
# as the process that loaded it lives. It throws a scheduler out that stalls or breaks its rules, and goes
# on with its own: numbers measured after that are not the scheduler's. /sys/kernel/sched_ext tells
# (Documentation/scheduler/sched-ext.rst).

_DIRECTORY = "/sys/kernel/sched_ext"
_STATE = f"{_DIRECTORY}/state"
_NAME = "scheduler"
_UNTIL = 30_000_000_000
_LONGEST_WORDS = 400


@dataclass(frozen=True)
class SchedExt:
    """One program, which loads a scheduler and stays."""

    argv: tuple[str, ...]

    @property
    def program(self) -> str:
        """Where the host, and the guest, has it. Raises WorkloadError."""
        return program_path("the scheduler", self.argv[0])

    @property
    def before(self) -> tuple[Step, ...]:
        """Load it, and see what has been loaded."""
        start = Start(
            name=_NAME,
            argv=(self.program, *self.argv[1:]),
            environment=ENVIRONMENT,
            directory="/tmp",
            path=_STATE,
            value="enabled",
            limit_ns=_UNTIL,
        )
        return (start, *_reads("root/ops", "switch_all", "nr_rejected", "enable_seq"))

    @property
    def after(self) -> tuple[Step, ...]:
        """See whether it is still there, and take it away."""
        stop = Stop(name=_NAME, path=_STATE, value="disabled", limit_ns=_UNTIL)
        return (*_reads("state", "root/ops", "nr_rejected", "enable_seq"), stop)

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """The scheduler's own name for itself. Raises SettingRefused where it did not schedule throughout."""
        start, name, all_tasks, rejected, sequence = before
        *_, stop = after
        if start.failure:
            raise SettingRefused(f"{self._called} was not loaded: {_why(start, console)}")
        if _said(all_tasks) != "1":
            raise SettingRefused(
                f"{self._called} schedules only tasks that ask for it (SCX_OPS_SWITCH_PARTIAL), "
                "and the workloads do not"
            )
        state, still, rejected_since, sequence_since = after[:4]
        if (_said(state), _said(still), _said(sequence_since)) != ("enabled", _said(name), _said(sequence)):
            raise SettingRefused(
                f"{self._called} was gone before the workload had ended: {_why(stop, console)}"
            )
        return {
            _NAME: _said(name),
            f"{_NAME}: rejected tasks": str(int(_said(rejected_since)) - int(_said(rejected))),
        }

    @property
    def _called(self) -> str:
        return f"the scheduler {Path(self.argv[0]).name}"


def _reads(*names: str) -> tuple[Read, ...]:
    return tuple(Read(path=f"{_DIRECTORY}/{name}") for name in names)


def _said(result: StepResult) -> str:
    return result.content.strip()


def _why(result: StepResult, console: str) -> str:
    """The end of the program, its last words, and the kernel's."""
    parts = [result.failure.text.partition(": ")[2]] if result.failure else []
    if result.exit is not None:
        parts.append(f"it ended with status {result.exit}")
    words = " ".join((result.stderr.strip() or result.stdout.strip()).split())
    if words:
        parts.append(f"it said: {words[-_LONGEST_WORDS:]}")
    if kernels := _kernels_words(console):
        parts.append(f"the kernel says: {kernels}")
    return "; ".join(parts) or "nothing tells why"


def _kernels_words(console: str) -> str:
    messages = re.findall(r"sched_ext: (.+)", console)
    return "; ".join(dict.fromkeys(line.strip() for line in messages))[:_LONGEST_WORDS]
