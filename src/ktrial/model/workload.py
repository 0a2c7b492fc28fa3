"""Workloads, metrics and samples."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from ktrial.model.base import (
    Flag,
    Model,
    Name,
    Prose,
    StoredInteger,
    Text,
    WholeNumber,
    before_in_file,
    in_file,
)
from ktrial.model.design import use_label
from ktrial.model.notation import guest_path, plain_text, regular_expression
from ktrial.model.system_calls import occurrence_text


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
"""Bytes that string instructions (`rep movsb`…) worked on, per operation. Mode exact-plugin has it beside
each workload's own metrics, because it counts each of those instructions as one."""

MODELLED_CYCLES = Metric(name="modelled-cycles", unit="cycles", direction=Direction.LOWER)
"""Cycles per operation on the machine that the study models. Mode exact-plugin has it beside each workload's
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

    # The key `json` is its name in stores as well: a model may have no field of this name.
    model_config = ConfigDict(validate_by_alias=True, serialize_by_alias=True)

    name: Name = Field(default="", description='a name of letters, digits, ".", "_" and "-"')
    """Empty: all metrics of the format, each by the name that it has there."""
    unit: Prose = Field(default="", description='text: "requests/s"')
    direction: Direction = Field(default=Direction.LOWER, description="higher or lower: which is better")
    regex: Annotated[str, in_file(regular_expression)] = Field(
        default="", description="a regular expression with one group, around the number"
    )
    """Every match is a sample, their median is the value."""
    json_path: Text = Field(
        default="",
        validation_alias="json",
        serialization_alias="json",
        description='keys joined by dots: "results.0.rps"',
    )
    """In the JSON that the command printed."""
    format: Text = Field(
        default="", exclude_if=lambda value: not value, description='what the command prints: "fio-json"'
    )
    """As `ktrial.program_outputs` names it. It tells the unit, too."""
    metric: Text = Field(
        default="",
        exclude_if=lambda value: not value,
        description='a metric of the format: "read rate"; else all',
    )


def words(command: object) -> list[str]:
    """The words of a command as a file has it, text or a list. Raises ValueError."""
    argv = [command] if isinstance(command, str) else command
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise ValueError('a command is text, or a list of words: "./bench.sh 10", ["./bench.sh", "10"]')
    plain_text(argv[0])
    return argv if isinstance(command, list) else _split(argv[0])


def _split(command: str) -> list[str]:
    """The words of a command, which runs without a shell."""
    plain = re.sub(r"\\.|'[^']*'", "x", command, flags=re.DOTALL)
    for_a_shell = re.search(r"[$`]\S*", plain) or re.search(
        r"(?<!\S)~\S*|\d?[|&;<>()]+\S*|\S*[*?]\S*", re.sub(r'"[^"]*"', "x", plain)
    )
    if for_a_shell:
        raise ValueError(
            f"{for_a_shell[0]} is for a shell, and commands run without one; write a path out, or have a "
            'shell: command = ["sh", "-c", "…"]; to pass it on as it is, quote it: \'…\''
        )
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(str(error).lower()) from error


def _environment(variables: object) -> object:
    if not isinstance(variables, dict) or not all(isinstance(text, str) for text in variables.values()):
        raise ValueError('it is a table of texts: { LANG = "C.UTF-8" }')
    for name, text in variables.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} cannot be a variable's name, or its value holds a NUL")
    return variables


def _rules(value: object) -> object:
    """A format alone stands for a list of one table with it."""
    return [{"format": value}] if isinstance(value, str) else value


GuestPath = Annotated[str, in_file(guest_path)]


class Command(Model):
    """A command of the user's as a workload."""

    argv: Annotated[tuple[str, ...], before_in_file(words)] = Field(
        validation_alias="command", serialization_alias="command", description='a command: "./bench.sh 10"'
    )
    files: tuple[Text, ...] = Field(
        default=(),
        description='a list of the command\'s files, directories and patterns: ["bench.sh", "lib/*.py"]',
    )
    """Host files, directories and patterns to carry into the guest; a program brings its shared libraries."""
    # Left out where it is the default: the digest of a study must stay what it was.
    directories: tuple[GuestPath, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description='a list of directories that the guest has, empty: ["/var/lib/mine"]',
    )
    """Directories that a guest has, without what is in them here."""
    keep_links: Flag = Field(
        default=False,
        exclude_if=lambda value: not value,
        description="true or false: whether links among the files stay links",
    )
    """Whether links among the files are links in the guest; else each is the file that it leads to."""
    directory: GuestPath = Field(
        default="",
        exclude_if=lambda value: not value,
        description='where a command runs: "/srv/mine"; else /tmp',
    )
    environment: Annotated[dict[str, str], before_in_file(_environment)] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description='a table of texts: { LANG = "C.UTF-8" }',
    )
    """Variables that it has beside those that every command has, or instead of them."""
    metrics: Annotated[tuple[MetricRule, ...], before_in_file(_rules)] = Field(
        default=(),
        description='a list of tables, or a format: "fio-json"; wall clock where it is not given',
    )
    repeats: WholeNumber = Field(default=3, ge=1, le=1000, description="a whole number from 1 to 1000")
    """Runs that count."""
    discarded: WholeNumber = Field(
        default=1,
        ge=0,
        le=1000,
        exclude_if=lambda value: value == 1,
        description="a whole number from 0 to 1000",
    )
    """Runs before those, which do not count: the first one meets cold caches."""
    after: Text = Field(
        default="",
        exclude_if=lambda value: not value,
        description='what a command prints where counting begins: "listening"; what is before is set-up',
    )
    """Empty: from the start."""
    skip_start: Annotated[Text, in_file(occurrence_text)] = Field(
        default="",
        exclude_if=lambda value: not value,
        description='where counting begins: "accept4 3", "SIGUSR1", "output 2"; else at the start',
    )
    """As `ktrial.model.system_calls.occurrence` reads it."""
    notes: tuple[Text, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="a list of texts that are told with each result",
    )
    """What is otherwise in a guest, as it was found when the command was captured."""
    user: Text = Field(
        default="",
        exclude_if=lambda value: not value,
        description="a user's name, on the machine host: as whom a command runs",
    )
    """Empty: as ktrial does."""


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
