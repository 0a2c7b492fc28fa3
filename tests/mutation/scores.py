"""The share of mutants that were noticed, and the file in which the measured shares are kept."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

SURVIVED = "survived"
"""What becomes of a mutant that nobody has noticed; else the outcome is who has."""
CHECKERS = ("mypy", "ruff")
_TOGETHER = """
All seeds of an area together:

| area | drawn | noticed | share (95 %) |
| --- | --- | --- | --- |
"""
HEAD = """| area | mutants | seed | drawn | noticed | by tests | by mypy or ruff | share (95 %) |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Score:
    """Of an area's mutants those that were drawn, and who noticed each."""

    area: str
    seed: int
    of: int
    outcomes: dict[str, str]

    @property
    def survivors(self) -> set[str]:
        return {name for name, outcome in self.outcomes.items() if outcome == SURVIVED}

    @property
    def noticed(self) -> int:
        return len(self.outcomes) - len(self.survivors)

    @property
    def share(self) -> float:
        return self.noticed / len(self.outcomes)

    @property
    def row(self) -> str:
        by = Counter(self.outcomes.values())
        checked = sum(by[checker] for checker in CHECKERS)
        counts = (self.of, self.seed, len(self.outcomes), self.noticed, self.noticed - checked, checked)
        return " | ".join(
            (f"| {self.area}", *map(str, counts), f"{_share(self.noticed, len(self.outcomes))} |")
        )


def table(scores: list[Score]) -> str:
    return HEAD + "\n".join(score.row for score in scores)


def record(file: Path, score: Score) -> None:
    """Put the row in the place of the one for the same area and seed, and count all seeds together anew."""
    text = file.read_text(encoding="utf-8") if file.exists() else HEAD
    rows = {_key(line): line for line in text.partition(_TOGETHER)[0].removeprefix(HEAD).splitlines() if line}
    rows[_key(score.row)] = score.row
    kept = [rows[key] for key in sorted(rows)]
    file.write_text(HEAD + "".join(f"{row}\n" for row in kept) + _TOGETHER + together(kept), encoding="utf-8")


def together(rows: Iterable[str]) -> str:
    """A row for each area: what all seeds drew and what of it was noticed."""
    drawn, noticed = Counter[str](), Counter[str]()
    for row in rows:
        _, area, _, _, count, seen, *_ = (cell.strip() for cell in row.split("|"))
        drawn[area] += int(count)
        noticed[area] += int(seen)
    return "".join(
        f"| {area} | {drawn[area]} | {noticed[area]} | {_share(noticed[area], drawn[area])} |\n"
        for area in drawn
    )


def _share(noticed: int, drawn: int) -> str:
    """With Wilson's interval."""
    interval = binomtest(noticed, drawn).proportion_ci(0.95, method="wilson")
    return f"{noticed / drawn:.0%} ({interval.low:.0%} to {interval.high:.0%})"


def _key(row: str) -> tuple[str, int]:
    _, area, _, seed, *_ = (cell.strip() for cell in row.split("|"))
    return area, int(seed)
