"""A study: one question, what it searches, and which kernels its treatments boot.

Plain data; files are read elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from ktrial.model.attribution import Proof
from ktrial.model.base import Model, digest
from ktrial.model.comparison import Result
from ktrial.model.design import (
    Design,
    Factor,
    FactorKind,
    FactorLevels,
    LevelValue,
    Perturbation,
    Plan,
    PlannedTrial,
    Treatment,
    combinations,
    count,
)
from ktrial.model.kernel import Build, KernelDifference
from ktrial.model.machine import CgroupLimits, ModelledMachine
from ktrial.model.parallel import QUANTUM_NS, MemoryModel, Topology
from ktrial.model.references import KernelRef, References, built_kernel
from ktrial.model.trial import Trial, TrialSampled
from ktrial.model.tuning import Budget, Goal, Space
from ktrial.model.workload import CountedBy, WorkloadUse


class LeftOut(Model):
    """A knob that was asked for, and is not searched."""

    name: str
    reason: str
    """Why not, in one sentence without its end."""


class Search(Model):
    """A study's search. Its digest, with the space, says which search an interrupted one goes on with."""

    knobs: tuple[str, ...]
    """As they were written: `vm`, `vm.swappiness=0..100`, `boot:nohz=on,off`."""
    goal: Goal
    budget: Budget
    optimiser: str = "tpe"
    at_once: int = 1
    """Trials in parallel: a search asks for so many before it knows what they say."""
    space: Space | None = None
    """With the values in force on the system; None until that was asked."""
    left_out: tuple[LeftOut, ...] = ()


class DiskKind(StrEnum):
    """Which of the kernel's drivers makes a disk of memory."""

    NULL_BLK = "null_blk"
    """One with queues: bandwidth and latency can be set."""
    BRD = "brd"
    """A RAM disk: as fast as memory, and without counts of requests (neither 5.10 nor 6.12 has them)."""
    PMEM = "pmem"
    """Persistent memory, in a part of the guest's memory that the kernel does not have for itself."""


SMALLEST_DISK_MIB = {"ext4": 16, "xfs": 300, "btrfs": 128}
"""File system → MiB below which it is not made."""


# Loading null_blk makes nullb0, which has no memory behind it. A disk that configfs makes has the next number
# for its name, in newer kernels that of its directory. This name is both.
_DEVICES = {DiskKind.NULL_BLK: "nullb1", DiskKind.BRD: "ram0", DiskKind.PMEM: "pmem0"}


class Disk(Model):
    """A disk in the guest's memory, of one of the kernel's own drivers, with a file system on it."""

    # Left out where they are the defaults: the digest of a study must stay what it was.
    kind: DiskKind = Field(default=DiskKind.NULL_BLK, exclude_if=lambda value: value is DiskKind.NULL_BLK)
    rotational: bool = Field(default=False, exclude_if=lambda value: not value)
    """null_blk: it says that it turns, as most virtual disks do; newer kernels then read further ahead."""
    size_mib: int = Field(default=256, ge=16)
    """It takes guest memory only as it fills."""
    path: str = "/mnt"
    """Where it is mounted."""
    filesystem: str = "ext4"
    bandwidth_mib: int = Field(default=0, ge=0)
    """MiB a second; 0: as fast as memory."""
    latency_us: float = Field(default=0.0, ge=0)
    """Microseconds until a request is done; 0: at once."""

    @property
    def device(self) -> str:
        """The kernel's name for it, the same in every kernel."""
        return _DEVICES[self.kind]


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
    disk: Disk | None = None
    """None: the guest has no disk."""
    limit_seconds: float = Field(default=300.0, gt=0)
    """Host seconds after which a trial has hung."""
    pin: tuple[int, ...] = ()
    """Machines in real time: the CPUs of this host that programs, or QEMU, run on; empty: all."""
    cgroup: CgroupLimits | None = None
    """Limits for the programs of a trial; in a guest only of their memory."""
    allow_emulated_time: bool = False
    """Machine kvm: without KVM, the time that emulation takes will do."""
    # Left out where it is the default: the digest of a study must stay what it was.
    sample_ns: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Nanoseconds, in a guest its own, between two readings of the monitors while programs run; 0: none."""
    quantum_ns: int = Field(default=QUANTUM_NS, exclude_if=lambda value: value == QUANTUM_NS)
    """Machine exact-parallel: how long a round is, in guest nanoseconds."""
    topology: Topology | None = Field(default=None, exclude_if=lambda value: value is None)
    """Machine exact-parallel: how its CPUs belong together; None: one socket of cores."""
    memory_model: MemoryModel = Field(default=MemoryModel.NONE, exclude_if=lambda value: value == "none")
    """Machine exact-parallel: what memory costs beside the instruction that uses it."""
    model: ModelledMachine | None = Field(default=None, exclude_if=lambda value: value is None)
    """Machine exact: what cycles are modelled on; None: none are."""
    host: str = Field(default="", exclude_if=lambda value: not value)
    """Machine ssh: which one, as the user's ssh calls it."""
    boots: bool = Field(default=False, exclude_if=lambda value: not value)
    """Machine ssh: it is booted, since its kernel or boot parameters are not its own."""
    boot_seconds: float = Field(default=300.0, gt=0, exclude_if=lambda value: value == 300.0)
    """Machine ssh: after so long without an answer what was booted has hung."""
    monitors: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Machines host, exact-parallel: programs that watch the workloads, each in a run of its own."""

    @property
    def counted_by(self) -> CountedBy | None:
        """As `count`; cycles are modelled by the plugin only."""
        return CountedBy.PLUGIN if self.model else self.count


REAL_MACHINES = frozenset({"host", "ssh"})
"""Machines that run already: memory and CPUs are their own, and the kernel, unless ssh boots another."""


EXACT_MACHINES = frozenset({"exact", "exact-parallel"})
"""Machines on which the same trial gives the same numbers: blocks differ by their seeds alone."""


class Stopping(StrEnum):
    """When a study in real time is over."""

    SEQUENTIAL = "sequential"
    """Looks after a few numbers of blocks, fixed beforehand, until all primary comparisons are decided."""
    OPEN_ENDED = "open-ended"
    """A look after every block, for as long as it takes."""
    FIXED = "fixed"
    """One look, after the last block."""


class Timing(Model):
    """How a study goes whose numbers scatter. A block is every treatment once, in random order.

    In real time that is noise. On an exact machine a block is a seed, which moves what is chaotic.
    """

    blocks: int = Field(default=60, ge=3)
    """The most that there may be."""
    stopping: Stopping = Stopping.SEQUENTIAL
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Probability of a false claim of a difference, over all looks and all primary comparisons together."""
    budget_seconds: float = Field(default=0.0, ge=0)
    """Host seconds that the trials may take together; 0: no limit."""
    primary: tuple[str, ...] = ()
    """What the study is about: `workload` (its first metric) or `workload: metric`. Empty: every workload."""


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
    listed: tuple[dict[str, LevelValue], ...] = ()
    """With the design `listed`: factor → level of each treatment; a factor that is not named is as in the
    baseline."""
    seed: int = 1
    """Of the run order and of the perturbations."""
    timing: Timing | None = None
    """None: the numbers are exact, and need no repetition beyond the perturbations."""
    # Left out where it is empty: the digest of a study without builds must stay what it was.
    builds: dict[str, Build] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """What the study calls a kernel → how it is built from source, before a factor changes that."""
    search: Search | None = Field(default=None, exclude_if=lambda value: value is None)
    """In place of factors: what is searched, and what for."""

    references: References = Field(default=References(), exclude=True, repr=False)
    """What its names mean. Not stored: who reads a study resolves them (studyfile.references.resolved)."""

    @property
    def blocks(self) -> int:
        """How many blocks there may be: each has a perturbation of its own, the same for every treatment."""
        return self.timing.blocks if self.timing else self.perturbations


def kernel_name(study: Study, treatment: Treatment) -> str:
    """The name of the treatment's kernel: as the study has it, or `Build.name` where it is built."""
    build = build_of(study, treatment)
    return build.name if build else named_kernel(study, treatment)


def kernel_of(study: Study, treatment: Treatment) -> KernelRef:
    """Which kernel the treatment boots, of a study whose references are resolved."""
    name, build = named_kernel(study, treatment), build_of(study, treatment)
    return built_kernel(name, build) if build else study.references.kernels[name]


def build_of(study: Study, treatment: Treatment) -> Build | None:
    """How the treatment's kernel is built, with what the factors change; None where it is not built."""
    build = study.builds.get(named_kernel(study, treatment))
    if build is None:
        return None
    for factor in study.factors:
        if change := factor.changes.get(str(treatment.levels[factor.name])):
            build = build.changed(change)
    return build


def builds_of(study: Study, treatments: Iterable[Treatment]) -> dict[str, Build]:
    """Every kernel to build that the treatments need, by its name, in their order."""
    builds = (build_of(study, treatment) for treatment in treatments)
    return {build.name: build for build in builds if build}


def named_kernel(study: Study, treatment: Treatment) -> str:
    """What the treatment, or the study, calls its kernel."""
    for factor in study.factors:
        if factor.kind is FactorKind.KERNEL:
            return str(treatment.levels[factor.name])
    return study.machine.kernel


def kernel_names(study: Study, treatments: Iterable[Treatment]) -> tuple[str, ...]:
    """Every kernel that the treatments need, once, in their order."""
    return tuple(dict.fromkeys(kernel_name(study, treatment) for treatment in treatments))


# From a study to its trials: treatments, perturbations, and the order in which they run.
#
# Everything here follows from the study alone, through SHA-256: the same on every host and every Python.

_LONGEST_ENVIRONMENT = 4096
"""One page: moves the stack's start through every alignment that matters (Mytkowicz et al., ASPLOS 2009)."""


_LONGEST_OFFSET_NS = 10_000_000
"""More than two timer ticks at 250 Hz: every phase between the tick and the workload."""


_LARGEST_SEED = 2**31 - 1


def plan(study: Study) -> Plan:
    """All trials of the study, in run order: one block a perturbation, each treatment once in a block.

    The order inside a block is random, drawn from the study's seed.
    """
    chosen = treatments(study)
    in_order = [
        (block, treatment)
        for block in range(study.blocks)
        for treatment in _shuffled(chosen, study.seed, block)
    ]
    return Plan(
        may_end_early=bool(study.timing and study.timing.stopping is not Stopping.FIXED),
        treatments=chosen,
        baseline=chosen[0],
        trials=tuple(
            PlannedTrial(
                order=order,
                block=block,
                treatment=treatment,
                perturbation=perturbation(study.seed, block),
            )
            for order, (block, treatment) in enumerate(in_order)
        ),
    )


def treatments(study: Study) -> tuple[Treatment, ...]:
    """The study's treatments, the baseline first, the others in the order of factors and levels."""
    every = combinations(_factor_levels(study), study.design.value, study.listed)
    return tuple(Treatment(levels=levels) for levels in every)


def treatment_count(study: Study) -> int:
    """How many treatments the study has: without making them, where that can be told."""
    return count(_factor_levels(study), study.design.value, study.listed)


def baseline(study: Study) -> Treatment:
    """The first of the study's treatments, without making the others."""
    return Treatment(levels={factor.name: factor.baseline for factor in study.factors})


def _factor_levels(study: Study) -> list[FactorLevels]:
    return [FactorLevels(factor.name, factor.levels, factor.baseline) for factor in study.factors]


def _shuffled(chosen: tuple[Treatment, ...], seed: int, block: int) -> list[Treatment]:
    return sorted(chosen, key=lambda treatment: digest(["order", seed, block, treatment.key]))


def perturbation(seed: int, number: int) -> Perturbation:
    """Perturbation `number` of a study with this seed; the same for every treatment. 0 changes nothing."""
    if number == 0:
        return Perturbation(number=0)
    return Perturbation(
        number=number,
        environment_bytes=_drawn("environment", seed, number, _LONGEST_ENVIRONMENT),
        start_offset=_drawn("offset", seed, number, _LONGEST_OFFSET_NS),
        layout_seed=_drawn("layout", seed, number, _LARGEST_SEED),
    )


def _drawn(purpose: str, seed: int, number: int, largest: int) -> int:
    """A whole number from 1 to `largest`, drawn from the seed."""
    return 1 + int(digest([purpose, seed, number])[:16], 16) % largest


# A study with everything that it measured: what the store yields and reports are made from.


class StudyRecord(Model):
    """One study in the store."""

    id: int
    study: Study
    study_digest: str
    created: datetime
    planned: int
    """How many trials the study plans."""
    trials: tuple[Trial, ...]
    """Those that ended, in run order."""
    result: Result
    kernels: tuple[KernelDifference, ...] = ()
    """What differs from the baseline's kernel to each other one that trials ran on."""
    sampled: tuple[TrialSampled, ...] = ()
    """What monitors read over time in each treatment's first trial that completed, where they did."""
    proofs: tuple[Proof, ...] = ()
    """What was proved about the causes of its differences (`explain --prove`)."""


@dataclass(frozen=True)
class Measurement:
    """How kernels are measured that are to be compared: the same for all of them."""

    workloads: tuple[WorkloadUse, ...]
    settings: MachineSettings = field(default_factory=MachineSettings)
    """Without a kernel."""
    perturbations: int = 3
