"""The share of mutants that were noticed, and the file in which the measured shares are kept."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

SURVIVED = "survived"
"""What becomes of a mutant that nobody has noticed; else the outcome is who has."""
CHECKERS = ("mypy", "ruff")
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
        interval = binomtest(self.noticed, len(self.outcomes)).proportion_ci(0.95, method="wilson")
        share = f"{self.share:.0%} ({interval.low:.0%} to {interval.high:.0%})"
        by = Counter(self.outcomes.values())
        checked = sum(by[checker] for checker in CHECKERS)
        counts = (self.of, self.seed, len(self.outcomes), self.noticed, self.noticed - checked, checked)
        return " | ".join((f"| {self.area}", *map(str, counts), f"{share} |"))


def table(scores: list[Score]) -> str:
    return HEAD + "\n".join(score.row for score in scores)


def record(file: Path, score: Score) -> None:
    """Put the row in the place of the one for the same area and seed."""
    text = file.read_text(encoding="utf-8") if file.exists() else HEAD
    rows = {_key(line): line for line in text.removeprefix(HEAD).splitlines() if line}
    rows[_key(score.row)] = score.row
    file.write_text(HEAD + "".join(f"{rows[key]}\n" for key in sorted(rows)), encoding="utf-8")


def _key(row: str) -> tuple[str, int]:
    _, area, _, seed, *_ = (cell.strip() for cell in row.split("|"))
    return area, int(seed)
