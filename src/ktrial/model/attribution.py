"""Explanations: what the difference between two profiles is made of, function by function."""

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.machine_model import BasePrices, ModelCounts
from ktrial.model.profile import CycleModel

_COST_OF_A_BYTE = Fraction(CycleModel().string_byte)


class Match(StrEnum):
    """Why a function of one kernel stands beside one of the other."""

    SAME = "same"
    """The same name, apart from what the compiler appends (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`)."""
    RENAMED = "renamed"
    """Another name that is the same without leading `_`, `__x64_` or `_noprof`; only one each could be it."""
    PLACED = "in the same place"
    """Another name, but the same place in the tree of calls: callers, callees, how often it is entered."""
    MERGED = "merged"
    """Two functions of the first are one in the second: the compiler or the source put one into the other."""
    SPLIT = "split"
    """One function of the first is two in the second."""
    MOVED = "moved"
    """The same name, in a module in one kernel and in the image, or another module, in the other."""
    ONLY_FROM = "ran in the first only"
    """It may be in the second too: inlined, or not called."""
    ONLY_TO = "ran in the second only"


_RENAMED = frozenset({Match.RENAMED, Match.PLACED})
"""The function has another name in the second."""
_JOINED = frozenset({Match.MERGED, Match.SPLIT})
"""Two functions stand beside one."""


def summed(counts: Iterable[ModelCounts | None]) -> ModelCounts | None:
    """Of several pieces; None where none has any."""
    rows = [each.model_dump() for each in counts if each]
    return ModelCounts(**{name: sum(row[name] for row in rows) for name in rows[0]}) if rows else None


class ProfileSide(Model):
    """One of the two profiles, as a whole."""

    label: str
    release: str = ""
    operations: int
    instructions: int
    """In the region, user programs included."""
    string_bytes: int = 0
    """Bytes that string instructions worked on, each of which counts as one instruction."""
    median: float
    """Instructions an operation: the median, where all else is the mean."""

    @property
    def mean(self) -> float:
        """Instructions an operation."""
        return self.instructions / self.operations


class Count(Model):
    """What a function did in one of the two."""

    names: tuple[str, ...] = ()
    """Its symbols there, the one with the most instructions first; empty where it did not run. Merged and
    split functions have those of all: the one that is in both kernels first."""
    instructions: int = 0
    """In the whole region."""
    entered: int = 0
    string_bytes: int = 0
    """Bytes that its string instructions worked on."""
    modelled: ModelCounts | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where cycles were modelled."""


class FunctionDifference(Model):
    """One function in both."""

    function: str
    module: str = ""
    file: str = ""
    """Its source, `mm/slub.c`, or its directory; empty where it is not known."""
    subsystem: str
    match: Match
    evidence: str = ""
    """Why the two sides are taken for one function, or what became of one that ran on one side only."""
    before: Count
    after: Count

    @property
    def name(self) -> str:
        """`ext4_map_blocks [ext4]`; `old → new` where it was renamed, `a + b → a` where two became one."""
        shown = self.function
        if self.match in _JOINED:
            old, new = (" + ".join(each.names[:2]) for each in (self.before, self.after))
            shown = f"{old} → {new}"
        elif self.match in _RENAMED:
            shown = f"{self.before.names[0]} → {self.after.names[0]}"
        return f"{shown} [{self.module}]" if self.module else shown


class Explanation(Model):
    """Two profiles of one workload, and every function's part in their difference, the heaviest first."""

    workload: str
    before: ProfileSide
    after: ProfileSide
    rows: tuple[FunctionDifference, ...]
    prices: BasePrices | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where cycles of both were modelled, on the same machine."""

    @cached_property
    def total(self) -> Fraction:
        """The whole difference, in instructions an operation."""
        return Fraction(self.after.instructions, self.after.operations) - Fraction(
            self.before.instructions, self.before.operations
        )

    def difference(self, row: FunctionDifference) -> Fraction:
        """A row's part of it."""
        return Fraction(row.after.instructions, self.after.operations) - Fraction(
            row.before.instructions, self.before.operations
        )

    def byte_difference(self, row: FunctionDifference) -> Fraction:
        """By how much the bytes grew, an operation, that a row's string instructions worked on."""
        return Fraction(row.after.string_bytes, self.after.operations) - Fraction(
            row.before.string_bytes, self.before.operations
        )

    def weight(self, row: FunctionDifference) -> Fraction:
        """What rows are ranked by: the difference in instructions, and in string bytes at 32 an instruction.

        The cost of a byte is that of `CycleModel`: otherwise a page that is cleared by one instruction would
        stand below all that a few instructions make. Never negative.
        """
        return abs(self.difference(row)) + abs(self.byte_difference(row)) * _COST_OF_A_BYTE

    @cached_property
    def byte_total(self) -> Fraction:
        """By how much the bytes grew, an operation, that string instructions worked on."""
        return Fraction(self.after.string_bytes, self.after.operations) - Fraction(
            self.before.string_bytes, self.before.operations
        )

    @cached_property
    def byte_rows(self) -> tuple[FunctionDifference, ...]:
        """The rows whose string instructions worked on more or fewer bytes, the largest difference first."""
        differing = [row for row in self.rows if self.byte_difference(row)]
        return tuple(sorted(differing, key=lambda row: (-abs(self.byte_difference(row)), row.name)))

    def share(self, part: Fraction) -> float | None:
        """A part's share of the whole difference; None where there is no difference."""
        return float(part / self.total) if self.total else None

    @cached_property
    def unexplained(self) -> Fraction:
        """What the rows do not add up to."""
        return self.total - sum((self.difference(row) for row in self.rows), Fraction(0))

    @cached_property
    def subsystems(self) -> dict[str, Fraction]:
        """Subsystem → its rows' part of the difference, the largest first."""
        sums: dict[str, Fraction] = {}
        for row in self.rows:
            sums[row.subsystem] = sums.get(row.subsystem, Fraction(0)) + self.difference(row)
        return dict(sorted(sums.items(), key=lambda item: (-abs(item[1]), item[0])))
