"""Whether the guest's kernel runs on all CPUs that it was given."""

from collections.abc import Sequence
from dataclasses import dataclass

from ktrial.experiment.settings import SettingRefused
from ktrial.target import Read, Step, StepResult

_FILE = "/sys/devices/system/cpu/online"
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
        return (Read(path=_FILE),)

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """The CPUs where they are fewer. Raises SettingRefused where the boot did not ask for that."""
        (told,) = after
        online = told.content.strip()
        count = counted(online)
        if count == self.cpus:
            return {}
        if not self.fewer:
            what = f"runs on {online}" if count else f"does not tell which of them run ({_FILE})"
            raise SettingRefused(f"{self.cpus} CPUs were asked for, and the kernel {what}")
        return {NAME: online}


def cpus_online(cpus: int, parameters: Sequence[str]) -> CpusOnline:
    """The check, for a boot with these parameters."""
    return CpusOnline(cpus, any(each.partition("=")[0] in _FEWER for each in parameters))


def counted(listed: str) -> int:
    """How many CPUs a list of the kernel's names: `0-2,5` is 4; 0 where it is none."""
    try:
        ends = [[int(end) for end in part.split("-")] for part in listed.split(",")]
    except ValueError:
        return 0
    return sum(last - first + 1 for first, *_, last in ([*part, part[-1]] for part in ends))
