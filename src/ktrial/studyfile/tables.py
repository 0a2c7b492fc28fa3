"""The tables of a study file that are not plain data themselves (those of `ktrial.model` are).

Each field's description says what it may be; messages and docs quote it.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from ktrial.model import notation
from ktrial.model.base import Model, Name, Prose, Seconds, Text, before_in_file
from ktrial.model.design import LevelValue, of_label
from ktrial.model.study import MachineSettings, Timing
from ktrial.model.workload import Command, words

_LARGEST_INTEGER = 2**63 - 1
"""TOML's own limit."""


class KeyTable(Model):
    """A table of the file."""

    model_config = ConfigDict(strict=True)


def _option_value(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('an option is "y", "n", "m", a number or text: SLAB = "y", HZ = 250')
    if isinstance(value, str):
        return notation.plain_text(value)
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


class SearchTable(KeyTable):
    """`[search]`."""

    knobs: list[Text] = Field(
        description='a list of knobs: ["sched", "vm.dirty_ratio=5..60", "boot:nohz=on,off"]'
    )
    maximise: list[Text] = Field([], description='a list of metrics: ["rps"]')
    minimise: list[Text] = Field([], description='a list of metrics: ["p99"]')
    subject_to: list[Text] = Field([], description='a list of limits: ["p99<=20ms", "errors==0"]')
    budget: int | None = Field(None, ge=1, le=100_000, description="a number of runs, from 1 to 100000")
    time: Seconds | None = Field(None, description='a time: "30 min", "2 h"')
    optimiser: Text = Field("tpe", description="tpe or random")
    at_once: int | None = Field(
        None, ge=1, le=1024, description="trials at once in exact mode, from 1 to 1024; else one a core"
    )


def level(value: object) -> LevelValue:
    """A level of a factor, or a parameter's value. Raises ValueError, which says what is allowed."""
    if isinstance(value, bool):
        raise ValueError('levels are numbers and text: write 0 and 1, or "on" and "off"')
    if isinstance(value, str):
        return notation.one_line(value)
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
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


FROM_FILE = "from-file"
"""The name of a workload that has the name that its file gives it."""


class WorkloadTable(Command):
    """One of `workloads`; what is not named here is a parameter of the workload."""

    model_config = ConfigDict(extra="allow")

    name: Name = Field(description='a workload\'s name: letters, digits, ".", "_" and "-"')
    argv: Annotated[tuple[str, ...], before_in_file(words)] = Field(
        default=(),
        validation_alias="command",
        serialization_alias="command",
        description='a command: "./bench.sh 10"',
    )
    file: Text | None = Field(default=None, description='the file of a workload: "./sqlite3.toml"')

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
        name, parameters = of_label(value)
        value = {"file": value} if value.endswith(".toml") else {**parameters, "name": name}
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
    machine: Annotated[MachineSettings, BeforeValidator(by_kind)] = Field(
        MachineSettings(), description='a machine\'s name or a table: "exact"'
    )
    timed: Timing | None = Field(
        None,
        description=(
            "a table, for machines in real time: blocks, stopping, estimand, alpha, budget, primary"
        ),
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
