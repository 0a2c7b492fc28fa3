"""Kernels and workloads without an option before them: `ktrial compare 6.1 6.12 fork`.

A word is a kernel by its spelling (`6.12`, `debian:6.12`, `path:FILE`, `host`), or it is a workload's name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadUsage
from ktrial.cli.options.completion import kernel_names, study_names, workload_sets, workloads_of_study
from ktrial.cli.options.workloads import SETS_OF_WORKLOADS
from ktrial.cli.studies import registry, stored_names
from ktrial.model.notation import nearest

if TYPE_CHECKING:
    from ktrial.studyfile.references import Registry

_COMMAS = re.compile(r",(?![^(]*\))")
_RANGE = re.compile(r"[\d.]*\.\.[\d.]*")
_KERNELS = "kernels are 6.12, debian:6.12:rt, path:FILE (ktrial kernel list)"
_WORKLOADS = "ktrial workload list names workloads"


def kernels_and_workloads(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete a kernel of the cache, the last of `w1,w2,…`, or a form of the command."""
    forms = getattr(ctx.command, "forms", {}).items()
    kernels = [(name, "a kernel in the cache") for name in kernel_names(incomplete)]
    return [*kernels, *workload_sets(incomplete), *(form for form in forms if form[0].startswith(incomplete))]


Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KERNEL…] [WORKLOAD…]",
        help="Kernels (6.12, path:FILE), then workloads (fork,pipe); the same as the options.",
        autocompletion=kernels_and_workloads,
        show_default=False,
    ),
]


RangesAndWorkloads = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KERNEL… | A..B] [WORKLOAD…]",
        help="Kernels, or a range of versions of the cache (5.10..7.2); then workloads.",
        autocompletion=kernels_and_workloads,
        show_default=False,
    ),
]
KernelsAndStoredWorkload = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KERNEL… | A..B] [W | ID]",
        help="A workload; kernels or a range of versions beside it, else all; or a regression.",
        autocompletion=kernels_and_workloads,
        show_default=False,
    ),
]
WorkloadArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORKLOAD…]",
        help="Workloads (fork,pipe); the same as the option.",
        autocompletion=workload_sets,
        show_default=False,
    ),
]


def study_or_kernels(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete a stored study and then its workloads; or kernels, then any workload."""
    kernels = [(name, "a kernel in the cache") for name in kernel_names(incomplete)]
    if ctx.params.get("arguments"):
        return [*kernels, *((name, "a workload") for name in workloads_of_study(ctx, incomplete))]
    studies = [(name, "a stored study") for name in study_names(incomplete)]
    forms = getattr(ctx.command, "forms", {}).items()
    return [*studies, *kernels, *(form for form in forms if form[0].startswith(incomplete))]


StudyOrKernels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STUDY | KERNEL…] [WORKLOAD…]",
        help="A stored study (name, number, file; else the latest), or kernels to count now; then workloads.",
        autocompletion=study_or_kernels,
        show_default=False,
    ),
]


@dataclass(frozen=True)
class KernelsAndWorkloads:
    """What the arguments name, in their order."""

    kernels: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    study: str | None = None

    def with_options(
        self, kernels: Sequence[str] | str | None, workloads: Sequence[str] | str | None
    ) -> "KernelsAndWorkloads":
        """With what --kernel and --workload name, after them."""
        from ktrial.kernels.providers import full_name

        return replace(
            self,
            kernels=(*self.kernels, *map(full_name, _texts(kernels))),
            workloads=(*self.workloads, *_texts(workloads)),
        )

    def only_workloads(self, why: str) -> tuple[str, ...]:
        """The workloads. Raises BadUsage where a kernel is named, too; `why`: why there can be none."""
        if self.kernels:
            raise BadUsage(f"{', '.join(self.kernels)}: {why}.", hint=f"only workloads here: {_WORKLOADS}")
        return self.workloads

    def single_kernel(self) -> str:
        """The only kernel. Raises BadUsage."""
        if len(self.kernels) != 1:
            named = (
                (f"{', '.join(self.kernels)}: name one kernel at a time.")
                if self.kernels
                else "Which kernel?"
            )
            raise BadUsage(named, hint=f"the kernel comes first, then the workload: 6.12 fork; {_KERNELS}")
        return self.kernels[0]

    def single_workload(self) -> str | None:
        """The only workload, None where there is none. Raises BadUsage."""
        if len(self.workloads) > 1:
            hint = f"one of them: {' or '.join(self.workloads)}"
            raise BadUsage(f"{', '.join(self.workloads)}: name one workload at a time.", hint=hint)
        return next(iter(self.workloads), None)


def _texts(option: Sequence[str] | str | None) -> Sequence[str]:
    """What an option was given, whether it may be repeated or not."""
    return (option,) if isinstance(option, str) else option or ()


def named_by(words: Iterable[str] | None, *, ranges: bool = False) -> KernelsAndWorkloads:
    """Which of the words are kernels, which workloads. `ranges`: `5.10..7.2` is one of kernels.

    Raises BadUsage for a word that is neither, or both.
    """
    parts = [part for word in words or () for part in _parts(word)]
    if not parts:
        return KernelsAndWorkloads()
    from ktrial.kernels.providers import full_name

    names = registry()
    kernels: list[str] = []
    workloads: list[str] = []
    for part in parts:
        is_kernel, is_workload = _is_kernel(part, names, ranges=ranges), _is_workload(part, names)
        if is_kernel and is_workload:
            raise BadUsage(
                f"{part} is both a kernel and a workload.",
                hint=f"say which: --kernel {part} or --workload {part}",
            )
        if not (is_kernel or is_workload):
            raise _neither(part, names)
        if is_kernel:
            kernels.append(full_name(part))
        else:
            workloads.append(part)
    return KernelsAndWorkloads(tuple(kernels), tuple(workloads))


def kernels_and_stored_workload(words: Sequence[str] | None) -> tuple[tuple[str, ...], str]:
    """Which of the words are kernels, or ranges of them, and the workload: any that may be stored.

    Raises BadUsage where there is no workload, or several.
    """
    names = registry()
    kernels: list[str] = []
    workloads: list[str] = []
    for word in words or ():
        parts = _parts(word)
        is_range = ".." in word and "/" not in word and "(" not in word
        if is_range or all(_is_kernel(part, names, ranges=True) for part in parts):
            kernels += [word] if is_range else parts
        else:
            workloads.append(word)
    if not workloads:
        hint = (
            "ktrial history fork; with kernels: ktrial history 6.1 6.12 fork; ktrial list has what is stored"
        )
        raise BadUsage("Which workload?", hint=hint)
    workload = KernelsAndWorkloads(workloads=tuple(workloads)).single_workload() or ""
    return tuple(kernels), workload


def named_with_study(words: Sequence[str] | None, store: str | None) -> KernelsAndWorkloads:
    """As `named_by`, where the first word may be a study: one that is neither a kernel nor a workload.

    Raises BadUsage also for a first word that is both.
    """
    if not words:
        return KernelsAndWorkloads()
    first, *others = words
    names = registry()
    kinds = {
        "--kernel": _is_kernel(first, names, ranges=False),
        "--workload": all(_is_name(part, names) for part in _parts(first)),
    }
    options = [option for option, is_one in kinds.items() if is_one]
    if not options:
        return replace(named_by(others), study=first)
    if first in stored_names(store):
        kind = options[0].removeprefix("--")
        hint = f"say which: {options[0]} {first}, or the study by its number (ktrial list)"
        raise BadUsage(f"{first} is both a stored study and a {kind}.", hint=hint)
    return named_by(words)


def is_workload(word: str) -> bool:
    """Whether it names workloads: `fork,pipe`, a set of them, or a file."""
    names = registry()
    return all(_is_workload(part, names) for part in _parts(word))


def _parts(word: str) -> list[str]:
    """`fork,pipe` → its names; what holds a path stays whole."""
    parts = [word] if "/" in word else _COMMAS.split(word)
    return [part.strip() for part in parts if part.strip()]


def _is_kernel(word: str, names: "Registry", *, ranges: bool) -> bool:
    """Whether it is spelled as a kernel is; one with a mistake in it is told where it is used."""
    from ktrial.kernels.errors import BadKernelName

    if _RANGE.fullmatch(word):
        return ranges
    if ":" in word.partition("(")[0]:
        return True
    try:
        names.kernel(word)
    except BadKernelName:
        return False
    return True


def _is_workload(word: str, names: "Registry") -> bool:
    return _is_name(word, names) or word in SETS_OF_WORKLOADS or word.endswith(".toml")


def _is_name(word: str, names: "Registry") -> bool:
    """Whether it is a workload's, with parameters or without: `page-fault2(kind=threads)`, `tour-ext4`."""
    from ktrial.workloads.tours import NAMES

    return word in NAMES or (word.partition("(")[0] if word.endswith(")") else word) in names.workloads


def _neither(word: str, names: "Registry") -> BadUsage:
    if _RANGE.fullmatch(word):
        hint = "ktrial matrix takes a range: ktrial matrix 5.10..7.2 default"
        return BadUsage(f"{word} is a range of kernels: name single ones here.", hint=hint)
    if Path(word).is_file():
        hint = (
            f"a kernel's file is path:{word}; a command stands at the end, as in ktrial compare … -- {word}"
        )
        return BadUsage(f"{word} is a file: it may be a kernel or a command.", hint=hint)
    if "(" in word and not word.endswith(")"):
        return BadUsage(f"{word}: the parenthesis is not closed.", hint="hackbench(groups=2), in quotes")
    near = nearest(word, [*names.workloads, *SETS_OF_WORKLOADS])
    return BadUsage(f"{word} is neither a kernel nor a workload{near}.", hint=f"{_KERNELS}; {_WORKLOADS}")
