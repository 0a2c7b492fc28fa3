"""A scheduler that is a program: loaded into the guest before the workload, watched, taken away after it.

The kernel's class sched_ext (Linux 6.12, CONFIG_SCHED_CLASS_EXT) lets a BPF program schedule for as long as
the process that loaded it lives. It throws a scheduler out that stalls or breaks its rules, and goes on with
its own: numbers measured after that are not the scheduler's. /sys/kernel/sched_ext tells
(Documentation/scheduler/sched-ext.rst).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from ktrial.experiment.settings import SettingRefused
from ktrial.target import Read, Start, Step, StepResult, Stop
from ktrial.workloads.command import ENVIRONMENT
from ktrial.workloads.host_files import program_path

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
        """Where the host, and the guest, has it. Raises ProgramNotFound."""
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
