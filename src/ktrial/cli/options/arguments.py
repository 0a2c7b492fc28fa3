"""Kernels and workloads without an option before them: `ktrial compare 6.1 6.12 fork`.

A word is a kernel by its spelling (`6.12`, `debian:6.12`, `path:FILE`, `host`), or it is a workload's name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadUsage
from ktrial.cli.options.completion import kernel_names, workload_sets
from ktrial.cli.options.workloads import SETS_OF_WORKLOADS
from ktrial.cli.studies import registry
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


@dataclass(frozen=True)
class KernelsAndWorkloads:
    """What the arguments name, in their order."""

    kernels: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()

    def with_options(
        self, kernels: Sequence[str] | None, workloads: Sequence[str] | None
    ) -> "KernelsAndWorkloads":
        """With what --kernel and --workload name, after them."""
        return KernelsAndWorkloads((*self.kernels, *(kernels or ())), (*self.workloads, *(workloads or ())))


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
                f"{part} is a kernel and a workload.", hint=f"say which: --kernel {part} or --workload {part}"
            )
        if not (is_kernel or is_workload):
            raise _neither(part, names)
        if is_kernel:
            kernels.append(full_name(part))
        else:
            workloads.append(part)
    return KernelsAndWorkloads(tuple(kernels), tuple(workloads))


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
    return word in names.workloads or word in SETS_OF_WORKLOADS or word.endswith(".toml")


def _neither(word: str, names: "Registry") -> BadUsage:
    if _RANGE.fullmatch(word):
        hint = "ktrial matrix takes a range: ktrial matrix 5.10..7.2 default"
        return BadUsage(f"{word} is a range of kernels: name single ones here.", hint=hint)
    if Path(word).is_file():
        hint = f"a kernel's file is path:{word}; a command of your own stands at the end: -- {word}"
        return BadUsage(f"{word} is a file, which may be a kernel or a command.", hint=hint)
    near = nearest(word, [*names.workloads, *SETS_OF_WORKLOADS])
    return BadUsage(f"{word} is neither a kernel nor a workload{near}.", hint=f"{_KERNELS}; {_WORKLOADS}")
