"""Study files: TOML in, a checked Study out, and every mistake with its line, its key and what is allowed."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ktrial.model.design import Design, Factor, FactorKind
from ktrial.model.study import Study
from ktrial.studyfile.diagnostics import Mistakes, StudySource
from ktrial.studyfile.errors import StudyEmpty, StudySyntaxError, StudyUnreadable
from ktrial.studyfile.factors import FactorReader, design_of, with_final_levels
from ktrial.studyfile.kernel_builds import BuildReader, check_builds
from ktrial.studyfile.knob_values import check_values
from ktrial.studyfile.machine import check_against_factors, check_users, machine_settings
from ktrial.studyfile.patches import with_patches
from ktrial.studyfile.references import KernelReader, resolved
from ktrial.studyfile.registry import Registry
from ktrial.studyfile.schema import StudyTable
from ktrial.studyfile.search import search_of
from ktrial.studyfile.stopping_rule import timing
from ktrial.studyfile.validation import read_tables
from ktrial.studyfile.workloads import workload_uses

__all__ = ["Registry", "StudySource", "load", "resolved", "study_from"]

_LARGEST_FILE = 1024 * 1024
_MOST_TRIALS = 100_000


def load(path: Path, registry: Registry, patches: Sequence[str] = ()) -> Study:
    """The study in the file at `path`. Relative files in it are looked for beside it.

    `patches`: FILE or FACTOR=FILE, for the levels `"?"`.
    Raises StudyUnreadable, StudySyntaxError, StudyEmpty, PatchNotGiven, PatchNotAwaited; StudyMistake or
    StudyMistakes otherwise.
    """
    text = _text(path)
    data = with_patches(_toml(text, path), patches, path)
    return study_from(data, StudySource(str(path), text), _name_of(path), path.absolute().parent, registry)


def study_from(
    data: Mapping[str, Any], source: StudySource, name: str, directory: Path, registry: Registry
) -> Study:
    """The study that `data` describes, in a study file's shape.

    `name` is used where the data has none; relative files are looked for in `directory`.
    Raises StudyEmpty, StudyMistake, StudyMistakes.
    """
    if not data:
        raise StudyEmpty(where=source.name)
    mistakes = Mistakes(source, data)
    tables = read_tables(dict(data), mistakes)
    study = _study(tables, name, directory, registry, mistakes) if tables else None
    mistakes.raise_any()
    if study is None:
        raise AssertionError("the study's tables were refused without a mistake")
    return study


def _study(tables: StudyTable, name: str, directory: Path, registry: Registry, mistakes: Mistakes) -> Study:
    kernels = KernelReader(registry.kernel, tables.kernels, directory)
    uses = workload_uses(tables.workloads, registry, directory, mistakes)
    reader = BuildReader(registry, directory, mistakes)
    factors = _factors(tables, FactorReader(registry, uses, kernels, reader, mistakes), mistakes)
    machine = machine_settings(tables.machine, registry, kernels, directory, mistakes)
    check_users(uses, machine.kind, mistakes)
    check_against_factors(tables.machine, factors, mistakes)
    design, listed = design_of(tables, factors, mistakes)
    in_time = None if tables.search else timing(tables.timed, machine.kind, uses, mistakes)
    _check_size(factors, design, len(listed), in_time.blocks if in_time else tables.perturbations, mistakes)
    source = next((factor for factor in factors if factor.kind is FactorKind.SOURCE), None)
    study = Study(
        name=tables.name or name,
        question=tables.question,
        machine=machine,
        builds=reader.builds(tables.kernels, source),
        factors=factors,
        workloads=uses,
        margin=tables.margin,
        perturbations=tables.perturbations,
        design=design,
        listed=listed,
        seed=tables.seed,
        timing=in_time,
        search=search_of(tables, machine, uses, kernels, mistakes) if tables.search else None,
    )
    if not mistakes:
        check_builds(study, mistakes)
    study = with_final_levels(study, directory)
    if not mistakes:
        study = resolved(study, kernels.reference)
        check_values(study, mistakes)
    return study


def _factors(tables: StudyTable, reader: FactorReader, mistakes: Mistakes) -> tuple[Factor, ...]:
    """The factors; a study that searches has none."""
    if tables.search is None:
        return reader.read(tables.factors)
    if tables.factors:
        problem = "a study compares the levels of factors, or it searches: it cannot do both"
        mistakes.add(("search",), problem)
    return ()


def _check_size(
    factors: tuple[Factor, ...], design: Design, listed: int, perturbations: int, mistakes: Mistakes
) -> None:
    counts = [len(factor.levels) for factor in factors]
    one_at_a_time = 1 + sum(count - 1 for count in counts)
    sizes = {Design.FULL: math.prod(counts), Design.ONE_AT_A_TIME: one_at_a_time, Design.LISTED: 1 + listed}
    treatments = sizes[design]
    trials = treatments * perturbations
    if trials > _MOST_TRIALS:
        mistakes.add(
            ("factors",),
            f"{treatments} treatments in {perturbations} blocks are {trials} trials; "
            f'a study has at most {_MOST_TRIALS} (design = "one-factor-at-a-time" needs fewer)',
        )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise StudyUnreadable(where=path, problem=error.strerror) from error
    except ValueError as error:  # a NUL in the name
        raise StudyUnreadable(where=repr(str(path)), problem=error) from error
    if len(content) > _LARGEST_FILE:
        raise StudyUnreadable(where=path, problem="it is larger than 1 MiB: is it a study file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StudyUnreadable(where=f"{path}:{line}", problem="it is not UTF-8 text") from error


_TWICE = re.compile(r"Cannot declare \((.*)\) twice")
_PARTS = re.compile(r"'([^']*)'")
"""How tomllib names a table: ('kernels', 'mine')."""


def _toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Python 3.14 has attributes for the position; until then it is in the message only.
        match = re.fullmatch(
            r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        problem, line, column = match.groups() if match else (str(error), None, None)
        problem = _TWICE.sub(
            lambda statement: f"the table [{'.'.join(_PARTS.findall(statement[1]))}] is here twice", problem
        )
        if not line:
            problem += " at the end of the file: is a bracket or a quote left open?"
            line, column = text.count("\n") + 1, 1
        raise StudySyntaxError(where=f"{path}:{line}:{column}", problem=_sentence(problem)) from error
    except RecursionError as error:
        raise StudySyntaxError(where=path, problem="it is nested too deeply") from error
    except ValueError as error:  # a decimal number of more digits than Python converts
        raise StudySyntaxError(where=path, problem=_sentence(str(error))) from error


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:]


def _name_of(path: Path) -> str:
    """A study without a name is called as its file is, with what a name cannot hold replaced."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:64] or "study"
