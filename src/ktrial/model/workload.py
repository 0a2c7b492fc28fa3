"""Workloads, metrics and samples."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model, StoredInteger
from ktrial.model.design import use_label


class Direction(StrEnum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Mode(StrEnum):
    """What a number means. Numbers of different modes are never compared with each other."""

    EXACT_CLOCK = "exact-clock"
    """Guest instructions, read from the guest's clock (one nanosecond is one instruction)."""
    EXACT_PLUGIN = "exact-plugin"
    """Guest instructions, counted by the QEMU plugin."""
    EXACT_PARALLEL = "exact-parallel"
    """Guest time on several CPUs, simulated: an instruction takes a nanosecond, and there are no caches."""
    TIMED = "timed"
    """Real time on real hardware."""
    EMULATED_TIME = "emulated-time"
    """Host time under emulation: says little about any hardware."""


EXACT_MODES = frozenset({Mode.EXACT_CLOCK, Mode.EXACT_PLUGIN, Mode.EXACT_PARALLEL})
"""Those in which two runs give the same numbers, whatever the host does, and a guest's nanosecond is one
instruction of a CPU."""


class CountedBy(StrEnum):
    """What counts instructions in exact mode. The two are never compared with each other."""

    PLUGIN = "plugin"
    """The QEMU plugin: a repeated string instruction counts once, and its bytes apart."""
    CLOCK = "clock"
    """The guest's clock: each pass of a string instruction counts, so that the CPU hides the fast ones."""


class Metric(Model):
    """A name, a unit and a direction."""

    name: str
    unit: str
    direction: Direction


STRING_BYTES = Metric(name="string-bytes", unit="bytes", direction=Direction.LOWER)
"""Bytes that string instructions (`rep movsb`…) worked on, an operation. Mode exact-plugin has it beside each
workload's own metrics, because it counts each of those instructions as one."""

MODELLED_CYCLES = Metric(name="modelled-cycles", unit="cycles", direction=Direction.LOWER)
"""Cycles an operation on the machine that the study models. Mode exact-plugin has it beside each workload's
own metrics, where a machine is modelled."""
BESIDE_THE_OWN = frozenset({STRING_BYTES.name, MODELLED_CYCLES.name})
"""Metrics that mode exact-plugin has beside a workload's own: they always say which they are."""


ALL_INSTRUCTIONS = Metric(name="instructions", unit="instructions", direction=Direction.LOWER)
"""Instructions of all CPUs together while one operation is done, whatever they are for. Mode exact-parallel
has it beside each workload's own metrics, which are time."""


class Parameter(Model):
    """One parameter of a workload, with what it may be."""

    name: str
    summary: str
    default: int | float | str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


class WorkloadDescription(Model):
    """What `ktrial workload show` prints."""

    name: str
    summary: str
    does: str
    """A paragraph: one operation, step by step, and what is checked."""
    system_calls: tuple[str, ...] = ()
    metrics: tuple[Metric, ...]
    parameters: tuple[Parameter, ...] = ()
    source: str = ""
    """Where the operation comes from: UnixBench, lmbench, hackbench…"""
    group: str = "built-in"


class WorkloadUse(Model):
    """One workload with its parameters, as a study names it."""

    name: str
    """The workload in the catalogue, or the name the user gave to a command."""
    parameters: dict[str, int | float | str] = Field(default_factory=dict)
    command: "Command | None" = None

    @property
    def label(self) -> str:
        """`hackbench(groups=2)`: the name, with the parameters that were set."""
        return use_label(self.name, self.parameters)


def short_labels(labels: Iterable[str]) -> dict[str, str]:
    """Label → what a sentence calls it: `seq-read` for `seq-read(path=/mnt, size=8)`, the only one.

    Parameters stay where two labels would become the same.
    """
    names = {label: label.partition("(")[0] if label.endswith(")") else label for label in labels}
    counts = Counter(names.values())
    return {label: name if name and counts[name] == 1 else label for label, name in names.items()}


class MetricRule(Model):
    """How a metric is found in what a command printed: by a format, by regular expression, by JSON, or by the
    clock."""

    name: str = ""
    """Empty: all metrics of the format, each by the name that it has there."""
    unit: str = ""
    direction: Direction = Direction.LOWER
    regex: str = ""
    """One group, a number; every match is a sample, their median is the value."""
    json_path: str = Field(default="", alias="json")
    """Keys joined by dots (`results.0.rps`) in the JSON that the command printed."""
    format: str = Field(default="", exclude_if=lambda value: not value)
    """What the command prints, as `ktrial.program_outputs` names it: `fio-json`. It tells the unit, too."""
    metric: str = Field(default="", exclude_if=lambda value: not value)
    """The metric of the format that this is; empty: all."""


class Command(Model):
    """A command of the user's as a workload."""

    argv: tuple[str, ...]
    files: tuple[str, ...] = ()
    """Host files, directories and patterns to carry into the guest; a program brings its shared libraries."""
    # Left out where it is the default: the digest of a study must stay what it was.
    directories: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Directories that a guest has, without what is in them here."""
    keep_links: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether links among the files are links in the guest; else each is the file that it leads to."""
    directory: str = Field(default="", exclude_if=lambda value: not value)
    """Where it runs; empty: /tmp."""
    environment: dict[str, str] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Variables that it has beside those that every command has, or instead of them."""
    metrics: tuple[MetricRule, ...] = ()
    """Empty: wall clock."""
    repeats: int = Field(default=3, ge=1)
    """Runs that count."""
    discarded: int = Field(default=1, ge=0, exclude_if=lambda value: value == 1)
    """Runs before those, which do not count: the first one meets cold caches."""
    notes: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What is otherwise in a guest, as it was found when the command was captured: told with each result."""
    user: str = Field(default="", exclude_if=lambda value: not value)
    """Machine host: as whom it runs; empty: as ktrial does."""


class Sample(Model):
    """One workload, one metric, in one trial: the statistics over its operations.

    `value` is what is compared: the per-operation median, or what a MetricRule found.
    """

    workload: str
    """The label of the workload's use (WorkloadUse.label)."""
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    value: float
    operations: StoredInteger = 1
    minimum: float | None = None
    median: float | None = None
    mean: float | None = None
