"""What differs around two profiles: treatments, configuration, settings with their values, counters."""

from pydantic import Field

from ktrial.model.attribution import Explanation
from ktrial.model.base import Model
from ktrial.model.profile import Profile


class KernelValues(Model):
    """What one boot of a kernel has in its files of settings (sysctl, sysfs, debugfs)."""

    kernel: str
    parameters: tuple[str, ...] = ()
    """Boot parameters beside the machine's own."""
    values: dict[str, str] = Field(default_factory=dict)
    """File → text, without its last newline; what is no setting is left out."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """File or directory → why it has no value here: the errno's name, `changing`, `long`, `unreadable`."""


class Governed(Model):
    """One metric that a setting decides, and that moved as the setting says."""

    metric: str
    before: float
    after: float


class ValueDifference(Model):
    """One setting whose default differs between two kernels, or that one of them does not have."""

    path: str
    before: str | None
    """None: the kernel has no such file."""
    after: str | None
    subsystem: str = ""
    """Told by the path; empty where that is not known."""
    governs: tuple[Governed, ...] = ()
    """What was measured, hangs on it, and moved as it says: then it is plausibly a cause."""


class LevelDifference(Model):
    """A factor that has another level in each of two treatments."""

    factor: str
    before: str
    after: str


class OptionDifference(Model):
    """One `.config` option that is not the same in two kernels."""

    option: str
    """With its `CONFIG_`."""
    before: str | None
    """`y`, `m`, a number, a string; None where it is not set."""
    after: str | None
    owners: tuple[str, ...] = ()
    """Subsystems of the explanation whose functions it, or what follows from it, plausibly changes; the
    heaviest first."""
    followers: tuple[str, ...] = ()
    """Options that are not the same only because of this one, where Kconfig could be asked."""


class CounterDifference(Model):
    """One event counter, an operation, in each of the two.

    Counted from the workload's start to its end: with its first pass, which is not measured.
    """

    counter: str
    before: float
    after: float


class Differences(Model):
    """All that differs and may be the cause. What could not be compared is said, with the reason."""

    levels: tuple[LevelDifference, ...] = ()
    boot_before: tuple[str, ...] = ()
    """Boot parameters that only the first has."""
    boot_after: tuple[str, ...] = ()
    options: tuple[OptionDifference, ...] = ()
    """Those with owners first, by what the owners weigh; then the others, by name."""
    values: tuple[ValueDifference, ...] = ()
    """Settings as the kernels boot: with other values first, then those that one of the two does not have; of
    each, those of the explanation's heavy subsystems first."""
    counters: tuple[CounterDifference, ...] = ()
    """The largest relative difference first."""
    unknown: tuple[str, ...] = ()
    """What could not be compared, and why: one sentence each."""


class Attribution(Model):
    """An explanation with all that differs around it."""

    before: Profile
    after: Profile
    """What it was made from: with the tree of calls, where calls were followed."""
    explanation: Explanation
    differences: Differences
    counted_anew: tuple[str, ...] = ()
    """Treatments whose stored trials had no profile, so that they were counted for this explanation."""
