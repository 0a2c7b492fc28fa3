"""Checks which combinations of levels become treatments."""

from ktrial.model.design import Design, Factor, LevelValue
from ktrial.studyfile.diagnostics import Mistakes, shown
from ktrial.studyfile.schema import StudyTable

Listed = tuple[dict[str, LevelValue], ...]


def design_of(tables: StudyTable, factors: tuple[Factor, ...], mistakes: Mistakes) -> tuple[Design, Listed]:
    """The design, and the treatments that are listed instead of one."""
    if tables.treatments is None:
        return Design(tables.design or Design.FULL), ()
    if tables.design:
        mistakes.add(("design",), "the treatments are listed here: that is the design; take one of the two")
    if not tables.treatments:
        mistakes.add(("treatments",), "the list is empty: there is nothing to compare with the baseline")
    for place, row in enumerate(tables.treatments):
        _check_row(place, row, factors, mistakes)
    return Design.LISTED, tuple(tables.treatments)


def _check_row(
    place: int, row: dict[str, LevelValue], factors: tuple[Factor, ...], mistakes: Mistakes
) -> None:
    by_name = {factor.name: factor for factor in factors}
    for name, level in row.items():
        if name not in by_name:
            mistakes.unknown(("treatments", place, name), "factor", name, by_name)
        elif level not in by_name[name].levels:
            levels = ", ".join(shown(each) for each in by_name[name].levels)
            mistakes.add(
                ("treatments", place, name), f"{shown(level)} is no level of it; its levels are {levels}"
            )
    known = row.keys() <= by_name.keys()
    if known and all(row.get(factor.name, factor.baseline) == factor.baseline for factor in factors):
        mistakes.add(("treatments", place), "this is the baseline, which is run in any case")
