"""A study: one question, what it searches, and which kernels its treatments boot.

Plain data; files are read elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WrapSerializer,
)

from ktrial.model import notation
from ktrial.model.attribution import Proof
from ktrial.model.base import (
    NO_KEY,
    Flag,
    LimitMiB,
    MemoryMiB,
    Model,
    Name,
    Number,
    Seconds,
    StudyFile,
    Text,
    WholeNumber,
    digest,
    in_file,
    keys_of,
    not_allowed,
    quantity,
)
from ktrial.model.comparison import Estimand, Result
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
from ktrial.model.parallel import QUANTA_NS, QUANTUM_NS, MemoryModel, Topology
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

    size_mib: MemoryMiB = Field(
        default=256,
        ge=16,
        validation_alias="size",
        serialization_alias="size",
        description='a size from 64M, as text: "256M", "1G"',
    )
    """It takes guest memory only as it fills."""
    path: Text = Field(default="/mnt", description='where it is mounted: "/mnt"')
    filesystem: Literal["ext4", "xfs", "btrfs"] = Field(default="ext4", description="ext4, xfs or btrfs")
    bandwidth_mib: LimitMiB = Field(
        default=0,
        ge=0,
        validation_alias="bandwidth",
        serialization_alias="bandwidth",
        description='MiB or GiB a second, as text: "200M"',
    )
    """0: as fast as memory."""
    latency_us: Number = Field(default=0.0, ge=0, le=1_000_000, description="microseconds from 0 to 1000000")
    """Until a request is done; 0: at once."""
    # Left out where they are the defaults: the digest of a study must stay what it was.
    rotational: Flag = Field(default=False, exclude_if=lambda value: not value, description="true or false")
    """null_blk: it says that it turns, as most virtual disks do; newer kernels then read further ahead."""
    kind: DiskKind = Field(
        default=DiskKind.NULL_BLK,
        exclude_if=lambda value: value is DiskKind.NULL_BLK,
        description="null_blk, brd or pmem",
    )

    @property
    def device(self) -> str:
        """The kernel's name for it, the same in every kernel."""
        return _DEVICES[self.kind]


def _nanoseconds(length: float) -> int:
    if not 0 <= length <= 3600:
        raise not_allowed()
    return round(length * 1e9)


def _from_a_million(number: int) -> int:
    if number < 1_000_000:
        raise not_allowed()
    return number


def _swap(mib: int) -> int:
    if mib < SMALLEST_SWAP_MIB:
        raise not_allowed()
    return mib


SMALLEST_SWAP_MIB = 16

_SETTLE = quantity(_nanoseconds, lambda length: length / 1e9, int | float)
_INTERVAL = quantity(
    lambda text: round(notation.interval(text) * 1e9),
    lambda length: f"{length / 1e6!r} ms" if length else "",
)


def _machine_model(reference: object, info: ValidationInfo) -> object:
    if not isinstance(info.context, StudyFile):
        return reference
    if not isinstance(reference, str):
        raise not_allowed()
    return info.context.machine_model(notation.plain_text(reference))


def _reference(
    model: ModelledMachine | None, plain: SerializerFunctionWrapHandler, info: SerializationInfo
) -> object:
    return model.reference if model and isinstance(info.context, StudyFile) else plain(model)


class MachineSettings(Model):
    """The machine that a study asks for. Same for all treatments, except where a factor changes it."""

    kind: Text = Field(default="exact", description="a machine's name")
    host: Text = Field(
        default="",
        exclude_if=lambda value: not value,
        description='machine ssh: its name as ssh knows it: "lab1"',
    )
    count: CountedBy | None = Field(
        default=None, description="plugin or clock: what counts instructions; the plugin where it loads"
    )
    """Exact mode. None is the plugin where it loads, else the clock."""
    kernel: Text = Field(default="", description='a kernel, where no factor is the kernel: "debian:6.12"')
    """The kernel of every treatment; empty where a factor of kind `kernel` names it."""
    memory_mib: MemoryMiB = Field(
        default=512,
        ge=64,
        validation_alias="memory",
        serialization_alias="memory",
        description='a whole number with M or G, as text: "512M", "1G"',
    )
    cpus: WholeNumber = Field(default=1, ge=1, le=256, description="a whole number from 1 to 256")
    boot: tuple[Annotated[str, in_file(lambda text: notation.boot_text(notation.plain_text(text)))], ...] = (
        Field(default=(), description='a list of boot parameters: ["mitigations=off"]')
    )
    """Added to the machine's own."""
    modules: tuple[Name, ...] = Field(default=(), description='a list of names of kernel modules: ["loop"]')
    files: tuple[Text, ...] = Field(
        default=(),
        description='a list of files, directories and patterns to carry into the guest: ["/usr/bin/fio"]',
    )
    """Host files, at the path they have on the host."""
    settle_ns: Annotated[int, *_SETTLE] = Field(
        default=3_000_000_000,
        ge=0,
        validation_alias="settle_seconds",
        serialization_alias="settle_seconds",
        description="seconds of guest time from 0 to 3600",
    )
    """Guest time waited after boot: deferred boot work must be over."""
    boot_seconds: Number = Field(
        default=300.0,
        gt=0,
        le=86400,
        exclude_if=lambda value: value == 300.0,
        description="seconds above 0, up to 86400, of each boot",
    )
    """Machine ssh: after so long without an answer what was booted has hung."""
    limit_instructions: Annotated[WholeNumber, in_file(_from_a_million)] = Field(
        default=200_000_000_000, gt=0, lt=2**63, description="a whole number from 1000000"
    )
    """Guest instructions (nanoseconds of guest time) after which a trial has hung."""
    disk: Disk | None = Field(
        default=None, description="a table: size, path, filesystem, bandwidth, latency_us"
    )
    """None: the guest has no disk."""
    swap_mib: Annotated[LimitMiB, in_file(_swap)] = Field(
        default=0,
        ge=0,
        validation_alias="swap",
        serialization_alias="swap",
        exclude_if=lambda value: not value,
        description='a size from 16M, as text: "64M"',
    )
    """Of the guest, beside its memory; 0: it has none."""
    limit_seconds: Number = Field(
        default=300.0, gt=0, le=86400, description="seconds of host time above 0, up to 86400"
    )
    """Host seconds after which a trial has hung."""
    pin: tuple[Annotated[WholeNumber, Field(ge=0, le=8191)], ...] = Field(
        default=(), description="a list of CPUs: [2, 3]"
    )
    """Machines in real time: the CPUs of this host that programs, or QEMU, run on; empty: all."""
    cgroup: CgroupLimits | None = Field(
        default=None,
        description='a table of limits: { cpus = 0.5, memory = "256M", io = ["8:0 wbps=1048576"] }',
    )
    """Limits for the programs of a trial; in a guest only of their memory."""
    allow_emulated_time: Flag = Field(default=False, description="true or false")
    """Machine kvm: without KVM, the time that emulation takes will do."""
    # Left out where it is the default: the digest of a study must stay what it was.
    sample_ns: Annotated[int, *_INTERVAL] = Field(
        default=0,
        ge=0,
        validation_alias="sample_every",
        serialization_alias="sample_every",
        exclude_if=lambda value: not value,
        description='a time from 10 ms: "100 ms", "1 s"',
    )
    """Nanoseconds, in a guest its own, between two readings of the monitors while programs run; 0: none."""
    quantum_ns: WholeNumber = Field(
        default=QUANTUM_NS,
        ge=QUANTA_NS[0],
        le=QUANTA_NS[1],
        validation_alias="quantum",
        serialization_alias="quantum",
        exclude_if=lambda value: value == QUANTUM_NS,
        description=f"nanoseconds of guest time from {QUANTA_NS[0]} to {QUANTA_NS[1]}",
    )
    """Machine exact-parallel: how long a round is."""
    topology: Topology | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="a table: { sockets = 2, cores = 2, threads = 1 }",
    )
    """Machine exact-parallel: how its CPUs belong together; None: one socket of cores."""
    memory_model: MemoryModel = Field(
        default=MemoryModel.NONE,
        exclude_if=lambda value: value == "none",
        description="none or coherence: whether a cache line costs time that another CPU has",
    )
    """Machine exact-parallel: what memory costs beside the instruction that uses it."""
    model: Annotated[ModelledMachine | None, BeforeValidator(_machine_model), WrapSerializer(_reference)] = (
        Field(
            default=None,
            exclude_if=lambda value: value is None,
            description='none, default, desktop, server, zen4, small, or a file of models: "mine.toml"',
        )
    )
    """Machine exact: what cycles are modelled on; None: none are."""
    boots: Annotated[bool, NO_KEY] = Field(default=False, exclude_if=lambda value: not value)
    """Machine ssh: it is booted, since its kernel or boot parameters are not its own."""
    monitors: tuple[Name, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description='a list of monitors: ["perf-stat", "off-cpu"]; exact-parallel: ["run-delay"]',
    )
    """Machines host, exact-parallel: programs that watch the workloads, each in a run of its own."""

    @property
    def counted_by(self) -> CountedBy | None:
        """As `count`; cycles are modelled by the plugin only."""
        return CountedBy.PLUGIN if self.model else self.count


REAL_MACHINES = frozenset({"host", "ssh"})
"""Machines that run already: memory and CPUs are their own, and the kernel, unless ssh boots another."""


_KEYS_OF_SSH = frozenset({"host", "boot_seconds"})
_KEYS_OF_EXACT = frozenset({"count", "model"})
_KEYS_OF_PARALLEL = frozenset({"quantum", "memory_model", "topology"})
_KEYS = frozenset(keys_of(MachineSettings))
MEANINGLESS_KEYS = {
    "host": _KEYS - {"kind", "pin", "cgroup", "limit_seconds", "sample_every", "monitors"},
    "ssh": _KEYS
    - {"kind", "pin", "limit_seconds", "sample_every", "kernel", "boot", "settle_seconds"}
    - _KEYS_OF_SSH,
    "exact": frozenset({"pin", "allow_emulated_time", "monitors"}) | _KEYS_OF_SSH | _KEYS_OF_PARALLEL,
    "exact-parallel": frozenset({"pin", "allow_emulated_time"}) | _KEYS_OF_SSH | _KEYS_OF_EXACT,
    "kvm": frozenset({"monitors"}) | _KEYS_OF_SSH | _KEYS_OF_EXACT | _KEYS_OF_PARALLEL,
}
"""Machine → keys of `[machine]` that mean nothing there."""


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

    blocks: WholeNumber = Field(default=60, ge=3, le=10_000, description="a whole number from 3 to 10000")
    """The most that there may be."""
    stopping: Stopping = Field(default=Stopping.SEQUENTIAL, description="sequential, open-ended or fixed")
    estimand: Estimand = Field(
        default=Estimand.TYPICAL,
        exclude_if=lambda value: value == Estimand.TYPICAL,
        description="typical, total or tail",
    )
    """What verdicts are about."""
    alpha: Number = Field(default=0.05, gt=0, lt=0.5, description="a probability above 0 and below 0.5: 0.05")
    """Probability of a false claim of a difference, over all looks and all primary comparisons together."""
    budget_seconds: Seconds = Field(
        default=0.0,
        ge=0,
        validation_alias="budget",
        serialization_alias="budget",
        description='a time: "90 s", "10 min", "2 h"',
    )
    """Host seconds that the trials may take together; 0: no limit."""
    primary: tuple[Text, ...] = Field(
        default=(),
        description='a list of workloads, or of "workload: metric"; else the first metric of each',
    )
    """What the study is about. Empty: every workload."""


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
    made_by: str = Field(default="", exclude_if=lambda value: not value)
    """The command that made it for itself, as one of its steps: `explain`, `bisect`. Only `ktrial list --all`
    shows it, and no name stands for it. Empty: it is the user's."""

    references: References = Field(default=References(), exclude=True, repr=False)
    """What its names mean. Not stored: who reads a study resolves them (studyfile.references.resolved)."""

    @property
    def blocks(self) -> int:
        """How many blocks there may be: each has a perturbation of its own, the same for every treatment."""
        return self.timing.blocks if self.timing else self.perturbations


def kernel_name(study: Study, treatment: Treatment) -> str:
    """The name of the treatment's kernel: as the study has it, or `Build.name` where it is built."""
    build = build_of(study, treatment)
    return build.name if build else kernel_reference(study, treatment)


def kernel_of(study: Study, treatment: Treatment) -> KernelRef:
    """Which kernel the treatment boots, of a study whose references are resolved."""
    name, build = kernel_reference(study, treatment), build_of(study, treatment)
    return built_kernel(name, build) if build else study.references.kernels[name]


def build_of(study: Study, treatment: Treatment) -> Build | None:
    """How the treatment's kernel is built, with what the factors change; None where it is not built."""
    build = study.builds.get(kernel_reference(study, treatment))
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


def kernel_reference(study: Study, treatment: Treatment) -> str:
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
