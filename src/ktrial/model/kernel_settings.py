"""Values of a kernel's settings, as it has them when nobody has changed them."""

from pydantic import Field

from ktrial.model.base import Model


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
