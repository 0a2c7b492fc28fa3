"""What a treatment puts in force around a workload, and how one knows that it was: more than a setting.

A kernel that does not know a preemption model says so in its log, and boots with its default. Built with
CONFIG_PREEMPT_DYNAMIC it tells in debugfs which one is in force (since Linux 5.13); else its configuration
does. lazy came with 6.13; of Debian's kernels, 6.18 knows all four and 7.2 only full and lazy.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ktrial.kernels.config import scheduling
from ktrial.knobs.values import form_of
from ktrial.model.design import AS_IT_IS, FactorKind, Treatment, level_text, scheduler_argv
from ktrial.model.kernel import Kernel
from ktrial.model.references import KnobRef
from ktrial.model.study import Study
from ktrial.target import Read, Start, Step, StepResult, Stop, Write
from ktrial.workloads.command import ENVIRONMENT
from ktrial.workloads.host_files import program_path

Results = tuple[StepResult, ...]


@dataclass(frozen=True)
class ManipulationCheck:
    """Steps before and after the workload, and what their results say."""

    before: tuple[Step, ...]
    """Done before anything else."""
    after: tuple[Step, ...]
    """Done after the workload."""
    in_force: Callable[[Results, Results, str], dict[str, str]]
    """From the results of both and the console: what was in force, by name. Raises SettingRefused where that
    is not what was asked for. It may be pickled."""


def manipulation_checks(
    study: Study, treatment: Treatment, kernel: Kernel, parameters: Sequence[str]
) -> tuple[ManipulationCheck, ...]:
    """The treatment's scheduler and preemption model; nothing where the study does not speak of them.

    `parameters`: the kernel's, as it is booted. Raises WorkloadError where a scheduler's program is not
    there.
    """
    models = [
        parameter.partition("=")[2] for parameter in parameters if parameter.startswith(f"{PARAMETER}=")
    ]
    is_factor = any(factor.kind is FactorKind.BOOT and factor.target == PARAMETER for factor in study.factors)
    checks = []
    if models or is_factor:
        kernel_scheduling = scheduling(kernel)
        built_in = "" if kernel_scheduling.chosen_at_boot else kernel_scheduling.preemption
        in_force = partial(_preemption_in_force, models[-1] if models else "", built_in)
        checks.append(ManipulationCheck((Read(path=_PREEMPTION_FILE),), (), in_force))
    for factor in study.factors:
        if factor.kind is FactorKind.SCHEDULER and (argv := scheduler_argv(treatment.levels[factor.name])):
            checks.append(_scheduler_check(argv))
    return tuple(checks)


PARAMETER = "preempt"
_PREEMPTION_FILE = "/sys/kernel/debug/sched/preempt"


def _preemption_in_force(
    requested: str, built_in: str, before: Results, _after: Results, _console: str
) -> dict[str, str]:
    """The model in force. Raises SettingRefused where it is another one than was asked for.

    `requested`: empty where the kernel's own will do. `built_in`: the only model of a kernel that cannot
    choose; empty where it can, or nobody knows.
    """
    (result,) = before
    chosen = re.search(r"\((\w+)\)", result.content)
    model = chosen.group(1) if chosen else built_in
    if not requested or requested == model:
        return {PARAMETER: model} if model else {}
    if result.content:
        models = ", ".join(result.content.replace("(", "").replace(")", "").split())
        instead = f"the kernel made it {model}: it knows {models}"
    elif model:
        instead = f"the kernel is built for {model} and nothing else (CONFIG_PREEMPT_DYNAMIC is not set)"
    else:
        problem = result.failure.text if result.failure else _PREEMPTION_FILE
        instead = f"and its effect is not known: {problem}"
    raise SettingRefused(f"{PARAMETER}={requested} was asked for, {instead}")


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
        if (result := by_step.get(place)) is None:
            raise SettingRefused(f"{setting.name} was never written")
        if result.failure:
            answer = ": ".join(filter(None, (result.failure.name, result.failure.text)))
            raise SettingRefused(f"{setting.name} = {setting.value} was refused: {answer}")
        # Some files show more than a value.
        if not form_of(setting.path).shows(setting.value, result.after):
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


def cpus_online(cpus: int, parameters: Sequence[str]) -> ManipulationCheck:
    """The check, for a boot of so many CPUs with these parameters.

    The kernel is asked once the workload is done: before it that would be a part of what the workload meets,
    and a CPU may be lost meanwhile, too.
    """
    fewer = any(parameter.partition("=")[0] in _FEWER for parameter in parameters)
    return ManipulationCheck((), (Read(path=_CPUS_ONLINE_FILE),), partial(_cpus_in_force, cpus, fewer))


def _cpus_in_force(cpus: int, fewer: bool, _before: Results, after: Results, _console: str) -> dict[str, str]:
    """The CPUs where they are fewer. Raises SettingRefused where the boot did not ask for that."""
    (result,) = after
    online = result.content.strip()
    count = counted(online)
    if count == cpus:
        return {}
    if not fewer:
        state = f"runs on {online}" if count else f"does not tell which of them run ({_CPUS_ONLINE_FILE})"
        raise SettingRefused(f"{cpus} CPUs were asked for, and the kernel {state}")
    return {NAME: online}


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


def scheduler_program(argv: Sequence[str]) -> str:
    """Where the host, and the guest, has it. Raises WorkloadError."""
    return program_path("the scheduler", argv[0])


def _scheduler_check(argv: tuple[str, ...]) -> ManipulationCheck:
    """Load it, and see what has been loaded; see whether it is still there, and take it away."""
    start = Start(
        name=_NAME,
        argv=(scheduler_program(argv), *argv[1:]),
        environment=ENVIRONMENT,
        directory="/tmp",
        path=_STATE,
        value="enabled",
        limit_ns=_UNTIL,
    )
    stop = Stop(name=_NAME, path=_STATE, value="disabled", limit_ns=_UNTIL)
    files = ("root/ops", "switch_all", "nr_rejected", "enable_seq")
    files_after = ("state", "root/ops", "nr_rejected", "enable_seq")
    return ManipulationCheck(
        (start, *(Read(path=f"{_DIRECTORY}/{name}") for name in files)),
        (*(Read(path=f"{_DIRECTORY}/{name}") for name in files_after), stop),
        partial(_scheduler_in_force, f"the scheduler {Path(argv[0]).name}"),
    )


def _scheduler_in_force(program: str, before: Results, after: Results, console: str) -> dict[str, str]:
    """The scheduler's own name for itself. Raises SettingRefused where it did not schedule throughout."""
    start, *_ = before
    *_, stop = after
    name, all_tasks, rejected, sequence = (result.content.strip() for result in before[1:])
    if start.failure:
        raise SettingRefused(f"{program} was not loaded: {_why(start, console)}")
    if all_tasks != "1":
        raise SettingRefused(
            f"{program} schedules only tasks that ask for it (SCX_OPS_SWITCH_PARTIAL), "
            "and the workloads do not"
        )
    state, name_after, rejected_after, sequence_after = (result.content.strip() for result in after[:4])
    if (state, name_after, sequence_after) != ("enabled", name, sequence):
        raise SettingRefused(f"{program} was gone before the workload had ended: {_why(stop, console)}")
    return {_NAME: name, f"{_NAME}: rejected tasks": str(int(rejected_after) - int(rejected))}


def _why(result: StepResult, console: str) -> str:
    """The end of the program, its last words, and the kernel's."""
    parts = [result.failure.text.partition(": ")[2]] if result.failure else []
    if result.exit is not None:
        parts.append(f"it ended with status {result.exit}")
    words = " ".join((result.stderr.strip() or result.stdout.strip()).split())
    if words:
        parts.append(f"it said: {words[-_LONGEST_WORDS:]}")
    messages = dict.fromkeys(line.strip() for line in re.findall(r"sched_ext: (.+)", console))
    if messages:
        parts.append(f"the kernel says: {'; '.join(messages)[:_LONGEST_WORDS]}")
    return "; ".join(parts) or "the reason is not known"
