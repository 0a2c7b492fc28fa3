"""A study: one question, and what is needed to answer it. Plain data; files are read elsewhere."""

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.design import Design, Factor
from ktrial.model.machine import CgroupLimits
from ktrial.model.workload import CountedBy, WorkloadUse


class MachineSettings(Model):
    """The machine that a study asks for. Same for all treatments, except where a factor changes it."""

    kind: str = "exact"
    count: CountedBy | None = None
    """What counts instructions; None is the plugin where it loads, else the clock. Exact mode only."""
    kernel: str = ""
    """The kernel of every treatment; empty where a factor of kind `kernel` names it."""
    memory_mib: int = Field(default=512, ge=64)
    cpus: int = Field(default=1, ge=1)
    boot: tuple[str, ...] = ()
    """Boot parameters added to the machine's own."""
    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Host files carried into the guest, at the path they have on the host."""
    settle_ns: int = Field(default=3_000_000_000, ge=0)
    """Guest time waited after boot: deferred boot work must be over."""
    limit_instructions: int = Field(default=200_000_000_000, gt=0)
    """Guest instructions (nanoseconds of guest time) after which a trial has hung."""
    limit_seconds: float = Field(default=300.0, gt=0)
    """Host seconds after which a trial has hung."""
    pin: tuple[int, ...] = ()
    """Machines in real time: the CPUs of this host that programs, or QEMU, run on; empty: all."""
    cgroup: CgroupLimits | None = None
    """Machine host: limits for the programs of a trial."""
    allow_emulated_time: bool = False
    """Machine kvm: without KVM, the time that emulation takes will do."""


class Study(Model):
    """What a study file says, checked and completed."""

    name: str
    question: str = ""
    machine: MachineSettings = MachineSettings()
    factors: tuple[Factor, ...]
    workloads: tuple[WorkloadUse, ...]
    margin: float = Field(default=0.01, gt=0, lt=1)
    perturbations: int = Field(default=3, ge=1)
    """How many perturbations each treatment runs under; number 0 changes nothing."""
    design: Design = Design.FULL
    seed: int = 1
    """Of the run order and of the perturbations."""
