"""What the host lays out for the guest's agent: once before the snapshot, and for each trial after it."""

from ktrial.model.base import Model
from ktrial.target.steps import Step

PROTOCOL = 1
"""Of plans, frames and results. An agent refuses a plan of another protocol."""
BOOT_PLAN_PATH = "/ktrial/boot.json"
"""Where the initial RAM disk holds the BootPlan."""
PLAN_FW_CFG_NAME = "opt/ktrial/plan"
"""The fw_cfg file that holds the GuestPlan."""


class BootModule(Model):
    """A module that is loaded before the snapshot."""

    path: str
    """A file in the guest, not compressed."""
    parameters: str = ""


class BootPlan(Model):
    """What is done once, before the snapshot."""

    protocol: int = PROTOCOL
    settle_ns: int
    """Guest nanoseconds waited for the work that the kernel puts off at boot."""
    modules: tuple[BootModule, ...] = ()


class GuestPlan(Model):
    """What one trial does: steps in order; one that fails does not stop those after it."""

    protocol: int = PROTOCOL
    steps: tuple[Step, ...]
