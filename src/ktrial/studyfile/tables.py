"""The tables of a study file. Each field's description says what it may be; messages and docs quote it."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from ktrial.model import notation
from ktrial.model.design import LevelValue
from ktrial.model.parallel import QUANTA_NS, QUANTUM_NS

# The tables of a study file. Each field's description says what it may be; messages and docs quote it.


class KeyTable(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _one_line(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("it holds control characters")
    return text


def plain_text(text: str) -> str:
    """Text of one line. Raises ValueError where it is empty or holds control characters."""
    if not text.strip():
        raise ValueError("it is empty")
    return _one_line(text)


Text = Annotated[str, AfterValidator(plain_text)]


def _io_limit(text: str) -> str:
    # Documentation/admin-guide/cgroup-v2.rst, io.max
    if not re.fullmatch(r"[0-9]+:[0-9]+( (rbps|wbps|riops|wiops)=([0-9]+|max))+", text):
        raise ValueError("a limit names a device and what it may do: 8:0 rbps=1048576 wiops=120")
    return text


IoLimit = Annotated[Text, AfterValidator(_io_limit)]


def cgroup_memory(text: str) -> str:
    """A size of memory from 1 MiB on. Raises ValueError."""
    notation.memory_mib(text, smallest=1)
    return text


class CgroupTable(KeyTable):
    """`[machine] cgroup`."""

    cpus: float | None = Field(
        None, gt=0, le=65536, allow_inf_nan=False, description="a number above 0: 0.5 is half of one CPU"
    )
    memory: Annotated[Text, AfterValidator(cgroup_memory)] | None = Field(
        None, description='a whole number with M or G, as text: "256M"'
    )
    io: list[IoLimit] = Field([], description='a list of lines of io.max: ["8:0 wbps=1048576"]')


def _bandwidth(text: str) -> str:
    notation.memory_mib(text, smallest=1)
    return text


Bandwidth = Annotated[str, AfterValidator(_bandwidth)]


def _memory(text: str) -> str:
    notation.memory_mib(text)
    return text


Memory = Annotated[Text, AfterValidator(_memory)]


class DiskTable(KeyTable):
    """`[machine.disk]`."""

    kind: Literal["null_blk", "brd", "pmem"] = Field("null_blk", description="null_blk, brd or pmem")
    size: Memory = Field("256M", description='a size from 64M, as text: "256M", "1G"')
    path: Text = Field("/mnt", description='where it is mounted: "/mnt"')
    filesystem: Literal["ext4", "xfs", "btrfs"] = Field("ext4", description="ext4, xfs or btrfs")
    bandwidth: Bandwidth | None = Field(None, description='MiB or GiB a second, as text: "200M"')
    latency_us: float = Field(
        0, ge=0, le=1_000_000, allow_inf_nan=False, description="microseconds from 0 to 1000000"
    )
    rotational: bool = Field(False, description="true or false")


def _option_value(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('an option is "y", "n", "m", a number or text: SLAB = "y", HZ = 250')
    if isinstance(value, str):
        return plain_text(value)
    return value


OptionValue = Annotated[int | str, PlainValidator(_option_value)]


class KernelTable(KeyTable):
    """`[kernels.NAME]`: a kernel to be built from source."""

    source: Text = Field(
        "",
        description='"debian:linux-source-6.1", a directory, a tarball, or "git:DIRECTORY@REVISION"',
    )
    config: Text = Field("guest", description="guest, defconfig, debian, or a file")
    options: dict[str, OptionValue] = Field(
        {}, description='a table of options: { SLAB = "y", HZ = 250, DEBUG_FS = "n" }'
    )
    patches: list[Text] = Field([], description='a list of files: ["my.patch"]')
    make: dict[str, Text] = Field({}, description='a table of variables: { KCFLAGS = "-O3" }')
    fuzz: int = Field(
        0,
        ge=0,
        le=2,
        description="0, 1 or 2: how many lines around a patch's hunk may differ from the source's",
    )


class TopologyTable(KeyTable):
    """`[machine.topology]`."""

    sockets: int = Field(1, ge=1, le=64, description="a whole number from 1 to 64")
    cores: int = Field(1, ge=1, le=64, description="a whole number from 1 to 64, of each socket")
    threads: int = Field(1, ge=1, le=64, description="a whole number from 1 to 64, of each core")
    nodes: list[Memory] = Field(
        [], max_length=64, description='a list of sizes, one for each NUMA node: ["256M", "256M"]'
    )


def boot_text(text: str) -> str:
    """A boot parameter, or its value. Raises ValueError where the kernel would read more than one."""
    # A quoted value may hold spaces: dyndbg="file sched.c +p".
    if not re.fullmatch(r'(?:[^\s"]|"[^"]*")*', text):
        raise ValueError("spaces separate boot parameters: give one at a time, or quote its value")
    return text


BootParameter = Annotated[Text, AfterValidator(boot_text)]


def _interval(text: str) -> str:
    notation.interval(text)
    return text


Interval = Annotated[str, AfterValidator(_interval)]


# What a value of a study file may be: text, a level, a duration, a size, a share.

LARGEST_INTEGER = 2**63 - 1
"""TOML's own limit."""


Name = Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class MachineTable(KeyTable):
    """`[machine]`."""

    kind: Text = Field("exact", description="a machine's name")
    count: Literal["plugin", "clock"] | None = Field(
        None, description="plugin or clock: what counts instructions; the plugin where it loads"
    )
    host: Text = Field("", description='machine ssh: its name as ssh knows it: "lab1"')
    boot_seconds: float = Field(
        300, gt=0, le=86400, allow_inf_nan=False, description="seconds above 0, up to 86400, of each boot"
    )
    kernel: Text = Field("", description='a kernel, where no factor is the kernel: "debian:6.12"')
    memory: Memory = Field("512M", description='a whole number with M or G, as text: "512M", "1G"')
    cpus: int = Field(1, ge=1, le=256, description="a whole number from 1 to 256")
    quantum: int = Field(
        QUANTUM_NS,
        ge=QUANTA_NS[0],
        le=QUANTA_NS[1],
        description=f"nanoseconds of guest time from {QUANTA_NS[0]} to {QUANTA_NS[1]}",
    )
    topology: TopologyTable | None = Field(
        None, description="a table: { sockets = 2, cores = 2, threads = 1 }"
    )
    memory_model: Literal["none", "coherence"] = Field(
        "none", description="none or coherence: whether a cache line costs time that another CPU has"
    )
    model: Text = Field(
        "none",
        description='none, default, desktop, server, zen4, small, or a file of machine models: "mine.toml"',
    )
    boot: list[BootParameter] = Field([], description='a list of boot parameters: ["mitigations=off"]')
    modules: list[Name] = Field([], description='a list of names of kernel modules: ["loop"]')
    files: list[Text] = Field(
        [], description='a list of files, directories and patterns to carry into the guest: ["/usr/bin/fio"]'
    )
    disk: DiskTable | None = Field(None, description="a table: size, path, filesystem, bandwidth, latency_us")
    settle_seconds: float = Field(
        3, ge=0, le=3600, allow_inf_nan=False, description="seconds of guest time from 0 to 3600"
    )
    limit_seconds: float = Field(
        300, gt=0, le=86400, allow_inf_nan=False, description="seconds of host time above 0, up to 86400"
    )
    limit_instructions: int = Field(
        200_000_000_000, ge=1_000_000, le=LARGEST_INTEGER, description="a whole number from 1000000"
    )
    pin: list[Annotated[int, Field(ge=0, le=8191)]] = Field([], description="a list of CPUs: [2, 3]")
    cgroup: CgroupTable | None = Field(
        None, description='a table of limits: { cpus = 0.5, memory = "256M", io = ["8:0 wbps=1048576"] }'
    )
    allow_emulated_time: bool = Field(False, description="true or false")
    sample_every: Interval | None = Field(None, description='a time from 10 ms: "100 ms", "1 s"')
    monitors: list[Name] = Field(
        [], description='a list of monitors: ["perf-stat", "off-cpu"]; exact-parallel: ["run-delay"]'
    )


def _budget(text: str) -> str:
    notation.seconds(text)
    return text


Budget = Annotated[str, AfterValidator(_budget)]


class TimedTable(KeyTable):
    """`[timed]`."""

    blocks: int = Field(60, ge=3, le=10_000, description="a whole number from 3 to 10000")
    stopping: Literal["sequential", "open-ended", "fixed"] = Field(
        "sequential", description="sequential, open-ended or fixed"
    )
    alpha: float = Field(0.05, gt=0, lt=0.5, description="a probability above 0 and below 0.5: 0.05")
    budget: Budget | None = Field(None, description='a time: "90 s", "10 min", "2 h"')
    primary: list[Text] = Field(
        [], description='a list of workloads, or of "workload: metric"; else the first metric of each'
    )


class SearchTable(KeyTable):
    """`[search]`."""

    knobs: list[Text] = Field(
        description='a list of knobs: ["sched", "vm.dirty_ratio=5..60", "boot:nohz=on,off"]'
    )
    maximise: list[Text] = Field([], description='a list of metrics: ["rps"]')
    minimise: list[Text] = Field([], description='a list of metrics: ["p99"]')
    subject_to: list[Text] = Field([], description='a list of limits: ["p99<=20ms", "errors==0"]')
    budget: int | None = Field(None, ge=1, le=100_000, description="a number of runs, from 1 to 100000")
    time: Budget | None = Field(None, description='a time: "30 min", "2 h"')
    optimiser: Text = Field("tpe", description="tpe or random")
    at_once: int | None = Field(
        None, ge=1, le=1024, description="trials at once in exact mode, from 1 to 1024; else one a core"
    )


def level(value: object) -> LevelValue:
    """A level of a factor, or a parameter's value. Raises ValueError, which says what is allowed."""
    if isinstance(value, bool):
        raise ValueError('levels are numbers and text: write 0 and 1, or "on" and "off"')
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError("whole numbers have at most 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is not a finite number")
    if not isinstance(value, int | float):
        raise ValueError('levels are numbers and text: 60, 0.5, "madvise"')
    return value


Level = Annotated[LevelValue, PlainValidator(level)]


class FactorTable(KeyTable):
    """`[factors.NAME]`."""

    kind: (
        Literal[
            "kernel",
            "boot",
            "setting",
            "memory",
            "cpus",
            "parameter",
            "nothing",
            "scheduler",
            "module",
            "environment",
            "kconfig",
            "patch",
            "source",
            "compiler-flags",
        ]
        | None
    ) = Field(
        None,
        description="kernel, boot, setting, memory, parameter, nothing, scheduler, module, environment, "
        "kconfig, patch, source or compiler-flags",
    )
    levels: list[Level] = Field(description="a list of at least two numbers, or two texts")
    baseline: Level | None = Field(None, description="one of the levels; the first where it is not given")
    target: Text = Field(
        "", description="the boot parameter, the setting, workload.parameter or the option that is changed"
    )


Prose = Annotated[str, AfterValidator(lambda text: plain_text(" ".join(text.split())) if text else text)]


def _regex(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"it has {groups} groups, and needs one, around the number: ([0-9.]+)")
    return text


Regex = Annotated[str, AfterValidator(_regex)]


class MetricTable(KeyTable):
    """One of a command's `metrics`."""

    name: Name | None = Field(None, description='a name of letters, digits, ".", "_" and "-"')
    format: Text | None = Field(None, description='what the command prints: "fio-json"')
    metric: Text | None = Field(None, description='a metric of the format: "read rate"; else all')
    unit: Prose = Field("", description='text: "requests/s"')
    direction: Literal["higher", "lower"] = Field("lower", description="higher or lower: which is better")
    regex: Regex | None = Field(None, description="a regular expression with one group, around the number")
    json_path: Text | None = Field(None, alias="json", description='keys joined by dots: "results.0.rps"')


def _command(value: object) -> str | list[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError('a command is text, or a list of words: "./bench.sh 10", ["./bench.sh", "10"]')
    plain_text(words[0])
    return value if isinstance(value, str) else words


CommandText = Annotated[str | list[str], PlainValidator(_command)]


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError('it is a table of texts: { LANG = "C.UTF-8" }')
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} cannot be a variable's name, or its value holds a NUL")
    return value


Environment = Annotated[dict[str, str], PlainValidator(_environment)]


def _absolute(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError("it is a path in the guest: it begins with / and holds no ..")
    return text


GuestPath = Annotated[Text, AfterValidator(_absolute)]


def by_format(value: object) -> object:
    """A format alone stands for a list of one table with it."""
    return [{"format": value}] if isinstance(value, str) else value


class WorkloadTable(KeyTable):
    """One of `workloads`; what is not named here is a parameter of the workload."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    name: Name = Field(description='a workload\'s name: letters, digits, ".", "_" and "-"')
    command: CommandText | None = Field(None, description='a command: "./bench.sh 10"')
    files: list[Text] = Field(
        [], description='a list of the command\'s files, directories and patterns: ["bench.sh", "lib/*.py"]'
    )
    directories: list[GuestPath] = Field(
        [], description='a list of directories that the guest has, empty: ["/var/lib/mine"]'
    )
    keep_links: bool = Field(False, description="true or false: whether links among the files stay links")
    directory: GuestPath | None = Field(None, description='where a command runs: "/srv/mine"; else /tmp')
    environment: Environment = Field({}, description='a table of texts: { LANG = "C.UTF-8" }')
    metrics: Annotated[list[MetricTable], BeforeValidator(by_format)] = Field(
        [], description='a list of tables, or a format: "fio-json"; wall clock where it is not given'
    )
    repeats: int = Field(3, ge=1, le=1000, description="a whole number from 1 to 1000")
    discarded: int = Field(1, ge=0, le=1000, description="a whole number from 0 to 1000")
    notes: list[Text] = Field([], description="a list of texts that are told with each result")
    user: Text | None = Field(None, description="a user's name, on the machine host: as whom a command runs")
    file: Text | None = Field(None, description='the file of a workload: "./sqlite3.toml"')

    @property
    def parameters(self) -> dict[str, Any]:
        """What the table sets beside the keys that every workload has."""
        return self.model_extra or {}


AS_MANY_AS_IT_TAKES = 0
"""What `perturbations = "auto"` is read as; no number of perturbations is it."""


def _or_auto(value: object, number: ValidatorFunctionWrapHandler) -> object:
    return AS_MANY_AS_IT_TAKES if value == "auto" else number(value)


Perturbations = Annotated[int, Field(ge=1, le=1000), WrapValidator(_or_auto)]
"""How many."""


FROM_FILE = "from-file"
"""The name of a workload that has the name that its file gives it."""


def _margin(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('a margin is a percentage: "1 %"')
    return notation.margin(value)


Margin = Annotated[float, PlainValidator(_margin)]


def by_kind(value: object) -> object:
    """A kind alone stands for a table with it."""
    return {"kind": value} if isinstance(value, str) else value


def by_name(value: object) -> object:
    """A name, or the file of a workload: that has its name in it, unless the table gives another."""
    if isinstance(value, str):
        value = {"file": value} if value.endswith(".toml") else {"name": value}
    return {"name": FROM_FILE, **value} if isinstance(value, dict) and "file" in value else value


class StudyTable(KeyTable):
    """The whole file."""

    name: Name | None = Field(None, description='letters, digits, ".", "_" and "-"; else the file\'s name')
    question: Prose = Field("", description="a sentence")
    margin: Margin = Field(0.01, description='a percentage: "1 %"')
    perturbations: Perturbations | None = Field(None, description='a whole number from 1 to 1000, or "auto"')
    design: Literal["full-factorial", "one-factor-at-a-time"] | None = Field(
        None, description="full-factorial or one-factor-at-a-time"
    )
    treatments: list[dict[str, Level]] | None = Field(
        None, description="a list of tables, instead of a design: each names levels of factors"
    )
    seed: int = Field(1, ge=0, le=2**31 - 1, description="a whole number from 0 to 2147483647")
    machine: Annotated[MachineTable, BeforeValidator(by_kind)] = Field(
        MachineTable(), description='a machine\'s name or a table: "exact"'
    )
    timed: TimedTable | None = Field(
        None, description="a table, for machines in real time: blocks, stopping, alpha, budget, primary"
    )
    kernels: dict[str, KernelTable] = Field(
        {}, description="tables of kernels to be built from source: [kernels.mine]"
    )
    factors: dict[str, FactorTable] = Field({}, description="tables: [factors.kernel]")
    search: SearchTable | None = Field(
        None, description="a table, in place of factors: knobs, maximise, minimise, subject_to, budget"
    )
    workloads: list[Annotated[WorkloadTable, BeforeValidator(by_name)]] = Field(
        description='a list of names and tables: ["syscall", { name = "hackbench", groups = 2 }]'
    )
