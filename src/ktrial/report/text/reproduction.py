"""The commands that repeat a study."""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ktrial.format.sanitize import one_line
from ktrial.model.design import FactorKind
from ktrial.model.study import StudyRecord
from ktrial.report.text.provenance import built_kernels, kernels


class Recipe(NamedTuple):
    """How to repeat a study."""

    file: str
    """The name under which the study file is to be saved."""
    commands: tuple[str, ...]
    local: tuple[str, ...]
    """Kernels, and what they were built from, that were files of the machine at hand: no command brings
    them."""


def recipe(record: StudyRecord) -> Recipe:
    """The commands, in order, for a shell."""
    file = f"{record.study.name}.toml"
    names = _kernel_names(record)
    local = (*(name for name in names if name.startswith("path:") or name == "host"), *_files(record))
    versions = dict.fromkeys(trial.provenance.ktrial for trial in record.trials if trial.provenance.ktrial)
    return Recipe(
        file,
        (
            *(f"ktrial --version  # ktrial {one_line(version)}" for version in versions),
            *(f"ktrial kernel add {_quoted(name)}" for name in names),
            f"ktrial run {_quoted(file)}",
            f"ktrial report {_quoted(record.study.name)} --html {_quoted(record.study.name + '.html')}",
        ),
        local,
    )


def _kernel_names(record: StudyRecord) -> tuple[str, ...]:
    """As the study names them, without those that it builds; kernels that only the trials know come last."""
    levels = [
        str(level)
        for factor in record.study.factors
        if factor.kind is FactorKind.KERNEL
        for level in factor.levels
    ]
    fixed = [record.study.machine.kernel] if record.study.machine.kernel else []
    named = dict.fromkeys((*levels, *fixed)) or dict.fromkeys(one.name for one in kernels(record))
    return tuple(name for name in named if name not in record.study.builds)


def _files(record: StudyRecord) -> Iterator[str]:
    """What kernels were built from that no package holds."""
    builds = [one.build for one in built_kernels(record)]
    sources = (build.source for build in builds if not build.source.startswith("debian:"))
    configs = (build.config for build in builds if build.config_digest)
    patches = (patch.path for build in builds for patch in build.patches)
    yield from dict.fromkeys((*sources, *configs, *patches))


def _quoted(text: str) -> str:
    return shlex.quote(one_line(text))
