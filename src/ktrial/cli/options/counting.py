"""How instructions are counted by function, and the files of it: options of `profile` and `explain`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ktrial.cli.command_line import BadOption, Option
from ktrial.cli.console import write_text
from ktrial.cli.options.common import BootParameters, GuestMemory, memory_of
from ktrial.cli.options.completion import export_formats
from ktrial.cli.options.workloads import memory_for
from ktrial.cli.running.preflight import check_first
from ktrial.model.notation import nearest, size_bytes

if TYPE_CHECKING:
    from ktrial.machines.qemu.plugin import CacheShape, CacheShapes
    from ktrial.model.attribution import Explanation
    from ktrial.model.profile import Profile
    from ktrial.model.study import MachineSettings
    from ktrial.report.exports import ProfileExport

_EXACT, _PARALLEL = "exact", "exact-parallel"
_LARGEST_CACHE = 1 << 30
_LEAST_LINE, _LONGEST_LINE = 8, 4096


@dataclass(frozen=True)
class CountingOptions:
    """The guest in which instructions are counted by function."""

    memory: GuestMemory = None
    boot: BootParameters = None
    machine: Literal["exact", "exact-parallel"] | None = Option(
        None,
        metavar="exact|exact-parallel",
        help="One CPU; or several in simulated time, with waiting and idle CPUs. Else exact.",
    )
    cpus: int | None = Option(None, min=1, metavar="N", help="CPUs of the machine exact-parallel; else 1.")
    model: str | None = Option(
        None, metavar="MODEL", help="Model cycles, too: desktop, server, zen4, small, FILE; machine exact."
    )
    by: (
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
        | None
    ) = Option(
        None, metavar="KIND", help="With modelled cycles: rank by cycles, walks, mispredictions, …-misses."
    )
    words: tuple[str, ...] = ()
    """A command of the user's, behind `--`, which is counted."""

    def check_system(self, kernels: Sequence[str]) -> None:
        """Look for what tracing the command and counting it need here. Raises SystemNotReady."""
        if self.words:
            kind = self.machine or (_PARALLEL if (self.cpus or 1) > 1 else _EXACT)
            check_first(kind=kind, kernels=kernels, words=self.words)

    def settings(self, kernel: str = "") -> "MachineSettings":
        """The machine. Raises BadOption, StudyError for mistakes in a model's file."""
        from ktrial.model.study import MachineSettings

        memory = memory_of(memory_for(self.words, self.memory) or "512M")
        settings = MachineSettings(kernel=kernel, memory_mib=memory, boot=tuple(self.boot or ()))
        machine = self.machine or (_EXACT if self.cpus is None else _PARALLEL)
        if self.cpus is not None and machine == _EXACT:
            problem = f"the machine {_EXACT} counts on one CPU; for several, use --machine {_PARALLEL}"
            raise BadOption("--cpus", problem)
        return on_model(settings.model_copy(update={"kind": machine, "cpus": self.cpus or 1}), self.model)


def on_model(settings: "MachineSettings", model: str | None) -> "MachineSettings":
    """The settings with the machine that cycles are modelled on. Raises BadOption, StudyError."""
    from ktrial.model.machine import NO_MODEL
    from ktrial.studyfile.machine_model_files import machine_model

    if model is None or model == NO_MODEL:
        return settings
    if settings.kind != _EXACT or settings.cpus > 1:
        raise BadOption("--model", f"cycles are modelled on the machine {_EXACT}, on one CPU")
    return settings.model_copy(update={"model": machine_model(model, Path.cwd())})


@dataclass(frozen=True)
class CacheOptions:
    """The caches that are modelled, each with its shape as SIZE:WAYS[:LINE]."""

    caches: bool = Option(
        False, "--caches", help="Also model caches: misses by function. Several times slower."
    )
    l1i: str | None = Option(None, metavar="32K:8:64", help="Instruction cache: size:ways:line.")
    l1d: str | None = Option(None, metavar="32K:8:64", help="Data cache: size:ways:line.")
    llc: str | None = Option(None, metavar="8M:16:64", help="Last-level cache: size:ways:line.")

    def shapes(self) -> "CacheShapes | None":
        """The caches, if they are modelled: a shape asks for all of them. Raises BadOption."""
        from ktrial.machines.qemu.plugin import CacheShapes

        texts = {"l1i": self.l1i, "l1d": self.l1d, "llc": self.llc}
        shapes = {name: _shape(f"--{name}", text) for name, text in texts.items() if text is not None}
        return CacheShapes(**shapes) if self.caches or shapes else None


def _shape(option: str, text: str) -> "CacheShape":
    from ktrial.machines.qemu.plugin import CacheShape

    match = re.fullmatch(r"([^:]+):(\d{1,4})(?::(\d{1,4}))?", text)
    problem = f"'{text}' is not SIZE:WAYS or SIZE:WAYS:LINE, like 32K:8:64"
    if not match:
        raise BadOption(option, problem)
    try:
        size = size_bytes(match[1], bare=True)
    except ValueError as error:
        raise BadOption(option, f"{problem}: {error}") from None
    ways, line = int(match[2]), int(match[3] or 64)
    if not _LEAST_LINE <= line <= _LONGEST_LINE or line & (line - 1):
        problem = f"a line of {line} bytes: allowed are {_LEAST_LINE} to {_LONGEST_LINE}, a power of two"
        raise BadOption(option, problem)
    sets, remainder = divmod(size, ways * line) if ways else (0, 0)
    if not sets or remainder or sets & (sets - 1) or size > _LARGEST_CACHE:
        problem = (
            f"{text}: size / (ways × line) must be a power of two, and the size at most 1G; "
            f"48K:12:64 has 64 sets"
        )
        raise BadOption(option, problem)
    return CacheShape(size, ways, line)


Folded = Annotated[
    Path | None, typer.Option("--folded", metavar="FILE", help="Write call stacks to this file, one a line.")
]
FlameGraph = Annotated[
    Path | None, typer.Option("--flame-graph", metavar="FILE", help="Write a flame graph to this file (SVG).")
]
Exports = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        metavar="FORMAT:FILE",
        help="Write another format: speedscope, perf-script, folded, flame-graph, vector.",
        autocompletion=export_formats,
    ),
]


class WidthOf(StrEnum):
    """Which of two kernels a differential flame graph's frames are as wide as."""

    FROM = "from"
    TO = "to"


def export_files(
    texts: Sequence[str], shorthands: Mapping[str, Path | None]
) -> "list[tuple[ProfileExport, Path]]":
    """The files of `--export FORMAT:FILE` and of the options for single formats. Raises BadOption."""
    from ktrial.report.exports import exports

    formats, warnings = exports()
    files = [(formats[name], path) for name, path in shorthands.items() if path]
    for text in texts:
        name, colon, file = text.partition(":")
        if name not in formats:
            broken = "".join(f"; {warning.text}" for warning in warnings)
            problem = (
                f"there is no format {name}{nearest(name, formats)}; there are {', '.join(formats)}{broken}"
            )
            raise BadOption("--export", problem)
        if not colon or not file:
            raise BadOption("--export", f"{text} names no file: --export {name}:FILE")
        files.append((formats[name], Path(file)))
    return files


@dataclass(frozen=True)
class DifferenceFiles:
    """The files of a difference between two kernels."""

    folded: Folded = None
    flame_graph: FlameGraph = None
    width: WidthOf = Option(
        WidthOf.TO, help="A flame graph's frames are as wide as this kernel's instructions."
    )

    def write(self, before: "Profile", after: "Profile", explanation: "Explanation") -> None:
        """Write the files that are named. Raises KtrialError."""
        from ktrial.report import call_tree
        from ktrial.report.flame_graph import Width, of_difference

        if self.folded:
            old, new = call_tree.stacks_of_both(before, after, explanation)
            lines = call_tree.folded_pair(call_tree.aligned(old, new), new, after.operations)
            write_text(self.folded, "".join(f"{line}\n" for line in lines))
        if self.flame_graph:
            side = Width.BEFORE if self.width is WidthOf.FROM else Width.AFTER
            write_text(self.flame_graph, of_difference(before, after, explanation, side))
