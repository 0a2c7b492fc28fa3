"""Options that say on which machine instructions are counted by function."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ktrial.cli.command_line import BadOption
from ktrial.cli.console import write_text
from ktrial.model.notation import nearest

if TYPE_CHECKING:
    from ktrial.machines.qemu.plugin import CacheShape, CacheShapes
    from ktrial.model.attribution import Explanation
    from ktrial.model.profile import Profile
    from ktrial.model.study import MachineSettings
    from ktrial.report.exports import ProfileExport


# Options that say on which machine instructions are counted by function.

_EXACT = "exact"


_PARALLEL = "exact-parallel"


CountedOn = Annotated[
    Literal["exact", "exact-parallel"] | None,
    typer.Option(
        "--machine",
        metavar="exact|exact-parallel",
        help="One CPU; or several in simulated time, with what waits and idles. Else exact.",
    ),
]


CountedCpus = Annotated[
    int | None,
    typer.Option("--cpus", min=1, metavar="N", help="CPUs, of the machine exact-parallel; else 1."),
]


CountedModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model cycles, too: desktop, server, zen4, small, FILE; machine exact.",
    ),
]


RankedBy = Annotated[
    Literal[
        "cycles",
        "code-misses",
        "data-misses",
        "second-misses",
        "last-misses",
        "translation-misses",
        "walks",
        "mispredictions",
    ]
    | None,
    typer.Option(
        "--by", metavar="KIND", help="Of modelled cycles: rank by cycles, walks, mispredictions, …-misses."
    ),
]


def on_model(settings: "MachineSettings", model: str | None) -> "MachineSettings":
    """The settings with the machine that cycles are modelled on. Raises BadOption, StudyError."""
    from ktrial.studyfile.machine_model_files import machine_model

    if model is None:
        return settings
    if settings.kind != _EXACT:
        raise BadOption(option="--model", problem=f"cycles are modelled on the machine {_EXACT}, on one CPU")
    return settings.model_copy(update={"model": machine_model(model, Path.cwd())})


def on_machine(settings: "MachineSettings", machine: str | None, cpus: int | None) -> "MachineSettings":
    """The settings with the machine that was asked for. Raises BadOption."""
    machine = machine or (_EXACT if cpus is None else _PARALLEL)
    if cpus is not None and machine == _EXACT:
        problem = f"the machine {_EXACT} counts on one CPU; several are for --machine {_PARALLEL}"
        raise BadOption(option="--cpus", problem=problem)
    return settings.model_copy(update={"kind": machine, "cpus": cpus or 1})


def with_model(settings: "MachineSettings", model: str) -> "MachineSettings":
    """The settings with what cycles are modelled on. Raises BadOption, StudyError for a file's mistakes."""
    from pathlib import Path

    from ktrial.model.machine import NO_MODEL
    from ktrial.studyfile.machine_model_files import machine_model

    if model == NO_MODEL:
        return settings
    if settings.kind != _EXACT or settings.cpus > 1:
        problem = f"cycles are modelled on the machine {_EXACT}, with one CPU"
        raise BadOption(option="--model", problem=problem)
    return settings.model_copy(update={"model": machine_model(model, Path.cwd())})


# The options of modelled caches: `--caches`, and their shapes as SIZE:WAYS[:LINE].

_LARGEST = 1 << 30


_LINES = (8, 4096)


Caches = Annotated[
    bool, typer.Option("--caches", help="Model caches, too: misses by function. Several times slower.")
]


FirstCode = Annotated[
    str | None, typer.Option("--l1i", metavar="32K:8:64", help="Instruction cache: size:ways:line.")
]


FirstData = Annotated[
    str | None, typer.Option("--l1d", metavar="32K:8:64", help="Data cache: size:ways:line.")
]


LastLevel = Annotated[
    str | None, typer.Option("--llc", metavar="8M:16:64", help="Last-level cache: size:ways:line.")
]


def shapes(caches: bool, l1i: str | None, l1d: str | None, llc: str | None) -> "CacheShapes | None":
    """The caches that were asked for: a shape asks for all of them. Raises BadOption."""
    from ktrial.machines.qemu.plugin import CacheShapes

    given = {"l1i": l1i, "l1d": l1d, "llc": llc}
    read = {name: _shape(f"--{name}", text) for name, text in given.items() if text is not None}
    return CacheShapes(**read) if caches or read else None


def _shape(option: str, text: str) -> "CacheShape":
    from ktrial.machines.qemu.plugin import CacheShape
    from ktrial.model.notation import size_bytes

    match = re.fullmatch(r"([^:]+):(\d{1,4})(?::(\d{1,4}))?", text)
    problem = f"'{text}' is not SIZE:WAYS or SIZE:WAYS:LINE, like 32K:8:64"
    if not match:
        raise BadOption(option=option, problem=problem)
    try:
        size = size_bytes(match[1], bare=True)
    except ValueError as error:
        raise BadOption(option=option, problem=f"{problem}: {error}") from None
    ways, line = int(match[2]), int(match[3] or 64)
    if not _LINES[0] <= line <= _LINES[1] or line & (line - 1):
        problem = f"a line of {line} bytes: it has {_LINES[0]} to {_LINES[1]}, a power of two"
        raise BadOption(option=option, problem=problem)
    sets, rest = divmod(size, ways * line) if ways else (0, 0)
    if not sets or rest or sets & (sets - 1) or size > _LARGEST:
        problem = (
            f"{text}: size / (ways × line) must be a power of two, and the size at most 1G; "
            f"48K:12:64 has 64 sets"
        )
        raise BadOption(option=option, problem=problem)
    return CacheShape(size, ways, line)


# Files that `profile` and `explain` write beside what they print.


def formats() -> list[tuple[str, str]]:
    """What `--export` takes, with what reads it, for the shell."""
    from ktrial.report.exports import exports

    return [(f"{name}:", export.summary) for name, export in exports()[0].items()]


Folded = Annotated[Path | None, typer.Option(metavar="FILE", help="Write call stacks there, one a line.")]


FlameGraph = Annotated[
    Path | None, typer.Option("--flame-graph", metavar="FILE", help="Write a flame graph there (SVG).")
]


class WidthOf(StrEnum):
    """Which of two kernels a differential flame graph's frames are as wide as."""

    FROM = "from"
    TO = "to"


FlameWidth = Annotated[
    WidthOf,
    typer.Option("--width", help="A flame graph's frames are as wide as this kernel's instructions."),
]


Exports = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        metavar="FORMAT:FILE",
        help="Write it in another format: speedscope, perf-script, folded, flame-graph, vector.",
        autocompletion=formats,
    ),
]


def wanted(texts: Sequence[str], shorthands: Mapping[str, Path | None]) -> "list[tuple[ProfileExport, Path]]":
    """What `--export FORMAT:FILE` and the options for single formats ask for. Raises BadOption."""
    from ktrial.report.exports import exports

    known, warnings = exports()
    asked = [(known[name], path) for name, path in shorthands.items() if path]
    for text in texts:
        name, colon, file = text.partition(":")
        if name not in known:
            allowed = ", ".join(known)
            broken = "".join(f"; {warning.text}" for warning in warnings)
            problem = f"there is no format {name}{nearest(name, known)}; there are {allowed}{broken}"
            raise BadOption(option="--export", problem=problem)
        if not colon or not file:
            raise BadOption(option="--export", problem=f"{text} names no file: --export {name}:FILE")
        asked.append((known[name], Path(file)))
    return asked


def write_difference(
    before: "Profile",
    after: "Profile",
    explanation: "Explanation",
    *,
    folded: Path | None,
    flame_graph: Path | None,
    width: WidthOf = WidthOf.TO,
) -> None:
    """Write the files of a difference that were asked for. Raises FileNotWritten."""
    from ktrial.report import call_tree
    from ktrial.report.call_tree import aligned
    from ktrial.report.flame_graph import Width, of_difference

    if folded:
        old, new = call_tree.stacks_of_both(before, after, explanation)
        lines = call_tree.folded_pair(aligned(old, new), new, after.operations)
        write_text(folded, "".join(f"{line}\n" for line in lines))
    if flame_graph:
        side = Width.BEFORE if width is WidthOf.FROM else Width.AFTER
        write_text(flame_graph, of_difference(before, after, explanation, side))
