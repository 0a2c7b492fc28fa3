"""Levels as a study keeps them: the same wherever the file lies that they were read from."""

from pathlib import Path

from ktrial.model.design import BUILD_KINDS, Factor, FactorKind, LevelValue
from ktrial.model.study import Study
from ktrial.studyfile.kernel_builds import short_levels
from ktrial.studyfile.kernel_names import absolute_kernel
from ktrial.studyfile.schedulers import absolute_scheduler


def with_final_levels(study: Study, directory: Path) -> Study:
    """The study with paths made absolute, and patches called by their files' names."""
    names = {factor.name: _names(factor, directory) for factor in study.factors}

    def final(name: str, level: LevelValue) -> LevelValue:
        return names[name].get(level, level) if name in names else level

    listed = tuple({name: final(name, level) for name, level in row.items()} for row in study.listed)
    factors = tuple(_renamed(factor, names[factor.name]) for factor in study.factors)
    return study.model_copy(update={"factors": factors, "listed": listed})


def _names(factor: Factor, directory: Path) -> dict[LevelValue, LevelValue]:
    """Level as written → as it is kept, where the two differ."""
    if factor.kind is FactorKind.KERNEL:
        return {level: absolute_kernel(str(level), directory) for level in factor.levels}
    if factor.kind is FactorKind.SCHEDULER:
        return {level: absolute_scheduler(str(level), directory) for level in factor.levels}
    return short_levels(factor) if factor.kind in BUILD_KINDS else {}


def _renamed(factor: Factor, names: dict[LevelValue, LevelValue]) -> Factor:
    if not names:
        return factor
    changes = {str(names.get(level, level)): change for level, change in factor.changes.items()}
    return factor.model_copy(
        update={
            "levels": tuple(names.get(level, level) for level in factor.levels),
            "baseline": names.get(factor.baseline, factor.baseline),
            "changes": changes,
        }
    )
