"""A profile: what one kernel did in a workload's marked region, by function."""

from ktrial.model.base import Model
from ktrial.model.profile import ProgramCount, RegionCounts


class Profile(Model):
    """One kernel, one workload, counted once by the QEMU plugin. The same again gives the same."""

    kernel: str
    release: str = ""
    workload: str
    """The label of the workload's use."""
    parameters: tuple[str, ...] = ()
    """Boot parameters beside the machine's own."""
    operations: int
    """Operations in the region: what all counts are divided by."""
    region: RegionCounts
    programs: tuple[ProgramCount, ...] = ()
    """The region's user part, by program."""
    qemu: str = ""
    cpu_model: str = ""

    @property
    def label(self) -> str:
        """The kernel, with its boot parameters."""
        return " ".join((self.kernel, *self.parameters))

    def per_operation(self, count: int) -> float:
        """A count of the region, an operation."""
        return count / self.operations
