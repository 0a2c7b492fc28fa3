"""A study file as a whole: its tables are read in turn, and what they say is checked against each other."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ktrial.model.base import StudyFile
from ktrial.model.comparison import FEWEST_BLOCKS
from ktrial.model.design import Design, Factor, FactorKind
from ktrial.model.study import EXACT_MACHINES, Study, Timing
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes, StudySource, read_tables
from ktrial.studyfile.errors import PatchNotAwaited, PatchNotGiven, StudyError
from ktrial.studyfile.factors import FactorReader, check_values, design_of, with_final_levels
from ktrial.studyfile.kernel_builds import BuildReader, check_builds
from ktrial.studyfile.machine import SSH, check_against_factors, check_users, machine_settings
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.studyfile.references import KernelReader, Registry, resolved
from ktrial.studyfile.search import search_of
from ktrial.studyfile.tables import AS_MANY_AS_IT_TAKES, StudyTable
from ktrial.studyfile.toml_files import parsed, text_of
from ktrial.studyfile.workloads import workload_uses

_MOST_TRIALS = 100_000


_CHAOTIC = "exact-parallel"
"""The machine on which every trial depends on its seed, unless so many are asked for."""


_PERTURBATIONS = 3


def load(path: Path, registry: Registry, patches: Sequence[str] = ()) -> Study:
    """The study in the file at `path`. Relative files in it are looked for beside it.

    `patches`: FILE or FACTOR=FILE, for the levels `"?"`.
    Raises StudyUnreadable, StudySyntaxError, PatchNotGiven, PatchNotAwaited, StudyMistake.
    """
    text = text_of(path)
    data = with_patches(parsed(text, path), patches, path)
    return study_from(data, StudySource(str(path), text), _name_of(path), path.absolute().parent, registry)


def study_from(
    data: Mapping[str, Any], source: StudySource, name: str, directory: Path, registry: Registry
) -> Study:
    """The study that `data` describes, in a study file's shape.

    `name` is used where the data has none; relative files are looked for in `directory`.
    Raises StudyError, StudyMistake.
    """
    if not data:
        raise StudyError(
            f"{source.name}: the study is empty.",
            hint='the smallest study: workloads = ["syscall"] and, below it, [factors.kernel] with '
            'levels = ["debian:6.1", "debian:6.12"]',
        )
    mistakes = Mistakes(source, data)
    context = StudyFile(lambda reference: machine_model(reference, directory))
    tables = read_tables(dict(data), context, mistakes)
    study = _study(tables, name, directory, registry, mistakes) if tables else None
    mistakes.raise_any()
    if study is None:
        raise AssertionError("the study's tables were refused without a mistake")
    return study


def _study(tables: StudyTable, name: str, directory: Path, registry: Registry, mistakes: Mistakes) -> Study:
    kernels = KernelReader(registry.kernel, tables.kernels, directory, running=tables.machine.kind == SSH)
    uses = workload_uses(tables.workloads, registry, directory, mistakes)
    reader = BuildReader(registry, directory, mistakes)
    factors = _factors(tables, FactorReader(registry, uses, kernels, reader, mistakes), mistakes)
    machine = machine_settings(tables.machine, factors, registry, kernels, directory, mistakes)
    check_users(uses, machine.kind, mistakes)
    check_against_factors(tables.machine, factors, mistakes)
    design, listed = design_of(tables, factors, mistakes)
    in_time = None if tables.search else _timing(tables, machine.kind, uses, mistakes)
    perturbations = tables.perturbations or _PERTURBATIONS
    _check_size(factors, design, len(listed), in_time.blocks if in_time else perturbations, mistakes)
    source = next((factor for factor in factors if factor.kind is FactorKind.SOURCE), None)
    study = Study(
        name=tables.name or name,
        question=tables.question,
        machine=machine,
        builds=reader.builds(tables.kernels, source),
        factors=factors,
        workloads=uses,
        margin=tables.margin,
        perturbations=perturbations,
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


def _name_of(path: Path) -> str:
    """A study without a name is called as its file is, with what a name cannot hold replaced."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:64] or "study"


def _timing(tables: StudyTable, kind: str, uses: Sequence[WorkloadUse], mistakes: Mistakes) -> Timing | None:
    """How a study goes whose numbers scatter, in real time or by their seeds.

    None where they are exact, and so many perturbations are asked for.
    """
    is_auto = tables.perturbations == AS_MANY_AS_IT_TAKES
    by_seeds = is_auto or (kind == _CHAOTIC and tables.perturbations is None)
    if kind in EXACT_MACHINES and not by_seeds:
        if tables.timed:
            mistakes.add(
                ("timed",),
                f'the machine "{kind}" has no noise, and needs no blocks: take the table out, name a machine '
                'in real time, machine = "host", or let seeds be the blocks, perturbations = "auto"',
            )
        return None
    if kind not in EXACT_MACHINES and is_auto:
        problem = f'"auto" is for exact machines: on the machine {kind} [timed] blocks says how many'
        mistakes.add(("perturbations",), problem)
    timing = tables.timed or Timing()
    fewest = FEWEST_BLOCKS.get(timing.estimand, 0)
    if timing.blocks < fewest:
        about = f'a verdict with estimand = "{timing.estimand}" takes at least {fewest} blocks'
        mistakes.add(("timed", "blocks"), f"{about}, and there are {timing.blocks} at most")
    # A workload's metrics may be known only when it has run: its name is checked.
    labels = [use.label for use in uses]
    for place, name in enumerate(timing.primary):
        label = name if name in labels else name.partition(": ")[0]
        if label not in labels:
            mistakes.unknown(("timed", "primary", place), "workload", label, labels)
    return timing


# Patches that a study leaves to its user: the level `"?"` of a factor of kind `patch`; `--patch FILE`.

AWAITED = "?"
"""The level."""


def with_patches(data: Mapping[str, Any], patches: Sequence[str], where: Path) -> dict[str, Any]:
    """The study's data with each awaited patch in its place, as an absolute path.

    `patches`: files, or FACTOR=FILE; relative ones are below the working directory. Raises PatchNotGiven,
    PatchNotAwaited.
    """
    filled, awaiting = dict(data), _awaiting(data)
    for text in patches:
        name, file = _split(text, awaiting, where)
        filled = _filled(filled, name, shlex.quote(str(Path(file).expanduser().absolute())))
        awaiting.remove(name)
    if awaiting:
        option = "--patch FILE" if len(awaiting) == 1 and not patches else f"--patch {awaiting[0]}=FILE"
        raise PatchNotGiven(where, awaiting[0], option)
    return filled


def _awaiting(data: Mapping[str, Any]) -> list[str]:
    """Factors with a patch to be named. What else is wrong with the data is found out later."""
    factors = data.get("factors")
    tables = factors.items() if isinstance(factors, dict) else ()
    return [
        name
        for name, table in tables
        if isinstance(table, dict)
        and table.get("kind") == "patch"
        and isinstance(table.get("levels"), list)
        and AWAITED in table["levels"]
    ]


def _split(text: str, awaiting: list[str], where: Path) -> tuple[str, str]:
    """The factor, and the file."""
    name, equals, file = text.partition("=")
    if equals and file and name in awaiting:
        return name, file
    if len(awaiting) == 1:
        return awaiting[0], text
    if not awaiting:
        raise PatchNotAwaited(where, text, "no level of it is a patch to be named")
    names = ", ".join(awaiting)
    raise PatchNotAwaited(where, text, f"for which factor? {names}: --patch FACTOR=FILE")


def _filled(data: Mapping[str, Any], factor: str, level: str) -> dict[str, Any]:
    """With the factor's level in place of the one that is awaited, wherever it is named."""

    def named(written: object) -> object:
        return level if written == AWAITED else written

    table = dict(data["factors"][factor])
    table["levels"] = [named(written) for written in table["levels"]]
    if "baseline" in table:
        table["baseline"] = named(table["baseline"])
    filled = {**data, "factors": {**data["factors"], factor: table}}
    if isinstance(rows := data.get("treatments"), list):
        filled["treatments"] = [
            {**row, factor: named(row[factor])} if isinstance(row, dict) and factor in row else row
            for row in rows
        ]
    return filled
