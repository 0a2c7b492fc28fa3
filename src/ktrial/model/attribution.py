"""Explanations: what the difference between two profiles is made of, function by function."""

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from statistics import median

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison
from ktrial.model.machine import BasePrices, ModelCounts
from ktrial.model.profile import CycleModel, Profile

_COST_OF_A_BYTE = Fraction(CycleModel().string_byte)
"""In instructions."""


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
    rows = [piece.model_dump() for piece in counts if piece]
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
    """Instructions per operation: the median, where all else is the mean."""

    @property
    def mean(self) -> float:
        """Instructions per operation."""
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
    is_locking: bool = Field(default=False, exclude_if=lambda value: not value)
    """Its code locks memory, on one side or both: counted on one CPU, where nobody waits."""

    @property
    def name(self) -> str:
        """`ext4_map_blocks [ext4]`; `old → new` where it was renamed, `a + b → a` where two became one."""
        shown = self.function
        if self.match in _JOINED:
            old, new = (" + ".join(count.names[:2]) for count in (self.before, self.after))
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
        """The whole difference, in instructions per operation."""
        return self._more(self.before.instructions, self.after.instructions)

    def difference(self, row: FunctionDifference) -> Fraction:
        """A row's part of it."""
        return self._more(row.before.instructions, row.after.instructions)

    def difference_of(self, rows: Iterable[FunctionDifference]) -> Fraction:
        """The part of several rows: whole numbers are summed, which is much faster than fractions are."""
        counts = [(row.before.instructions, row.after.instructions) for row in rows]
        return self._more(sum(before for before, _ in counts), sum(after for _, after in counts))

    def gross(self, rows: Iterable[FunctionDifference]) -> Fraction:
        """The parts of several rows, each without its sign."""
        counts = (self._whole(row.before.instructions, row.after.instructions) for row in rows)
        return Fraction(sum(map(abs, counts)), self._unit)

    def byte_difference_of(self, rows: Iterable[FunctionDifference]) -> Fraction:
        """As `difference_of`, of the bytes that string instructions worked on."""
        counts = [(row.before.string_bytes, row.after.string_bytes) for row in rows]
        return self._more(sum(before for before, _ in counts), sum(after for _, after in counts))

    def byte_difference(self, row: FunctionDifference) -> Fraction:
        """By how much the bytes grew, per operation, that a row's string instructions worked on."""
        return self._more(row.before.string_bytes, row.after.string_bytes)

    def weight(self, row: FunctionDifference) -> Fraction:
        """What rows are ranked by: the difference in instructions, and in string bytes at 32 an instruction.

        The cost of a byte is that of `CycleModel`: otherwise a page that is cleared by one instruction would
        stand below all that a few instructions make. Never negative.
        """
        return Fraction(self.rank(row), self._unit * _COST_OF_A_BYTE.denominator)

    def rank(self, row: FunctionDifference) -> int:
        """The weight as a whole number, of one unit for all rows."""
        instructions = self._whole(row.before.instructions, row.after.instructions)
        in_bytes = self._whole(row.before.string_bytes, row.after.string_bytes)
        return abs(instructions) * _COST_OF_A_BYTE.denominator + abs(in_bytes) * _COST_OF_A_BYTE.numerator

    @cached_property
    def byte_total(self) -> Fraction:
        """By how much the bytes grew, per operation, that string instructions worked on."""
        return self._more(self.before.string_bytes, self.after.string_bytes)

    @cached_property
    def byte_rows(self) -> tuple[FunctionDifference, ...]:
        """The rows whose string instructions worked on more or fewer bytes, the largest difference first."""
        differing = [row for row in self.rows if self.byte_difference(row)]
        return tuple(sorted(differing, key=lambda row: (-abs(self.byte_difference(row)), row.name)))

    def _more(self, before: int, after: int) -> Fraction:
        """The growth of a count, per operation: one fraction of whole numbers, as there are thousands."""
        return Fraction(self._whole(before, after), self._unit)

    def _whole(self, before: int, after: int) -> int:
        """The growth of a count in `_unit` operations."""
        earlier, later = self.before.operations, self.after.operations
        return after - before if earlier == later else after * earlier - before * later

    @cached_property
    def _unit(self) -> int:
        earlier, later = self.before.operations, self.after.operations
        return later if earlier == later else earlier * later

    def share(self, part: Fraction) -> float | None:
        """A part's share of the whole difference; None where there is no difference."""
        return float(part / self.total) if self.total else None

    @cached_property
    def locking_share(self) -> float:
        """What functions that lock memory have of all rows' differences, each without its sign: 0 to 1."""
        whole = self.gross(self.rows)
        locking = self.gross(row for row in self.rows if row.is_locking)
        return float(locking / whole) if whole else 0.0

    @cached_property
    def unexplained(self) -> Fraction:
        """What the rows do not add up to."""
        return self.total - self.difference_of(self.rows)

    @cached_property
    def subsystems(self) -> dict[str, Fraction]:
        """Subsystem → its rows' part of the difference, the largest first."""
        rows: dict[str, list[FunctionDifference]] = {}
        for row in self.rows:
            rows.setdefault(row.subsystem, []).append(row)
        sums = {subsystem: self.difference_of(its_rows) for subsystem, its_rows in rows.items()}
        return dict(sorted(sums.items(), key=lambda item: (-abs(item[1]), item[0])))


def rests_on_locks(locking_share: float) -> bool:
    """Whether so much of a difference is in functions that lock memory that one CPU says little of several.

    A third: chosen.
    """
    return locking_share >= 1 / 3


# What differs around two profiles: treatments, configuration, settings with their values, counters.


class KernelValues(Model):
    """What one boot of a kernel has in its files of settings (sysctl, sysfs, debugfs)."""

    kernel: str
    parameters: tuple[str, ...] = ()
    """Boot parameters beside the machine's own."""
    values: dict[str, str] = Field(default_factory=dict)
    """File → text, without its last newline; what is no setting is left out."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """File or directory → why it has no value here: the errno's name, `changing`, `long`, `unreadable`."""


class Governed(Model):
    """One metric that a setting decides, and that moved as the setting says."""

    metric: str
    before: float
    after: float


class ValueDifference(Model):
    """One setting whose default differs between two kernels, or that one of them does not have."""

    path: str
    before: str | None
    """None: the kernel has no such file."""
    after: str | None
    subsystem: str = ""
    """Told by the path; empty where that is not known."""
    governs: tuple[Governed, ...] = ()
    """What was measured, hangs on it, and moved as it says: then it is plausibly a cause."""


class LevelDifference(Model):
    """A factor that has another level in each of two treatments."""

    factor: str
    before: str
    after: str


class OptionDifference(Model):
    """One `.config` option that is not the same in two kernels."""

    option: str
    """With its `CONFIG_`."""
    before: str | None
    """`y`, `m`, a number, a string; None where it is not set."""
    after: str | None
    owners: tuple[str, ...] = ()
    """Subsystems of the explanation whose functions it, or what follows from it, plausibly changes; the
    heaviest first."""
    followers: tuple[str, ...] = ()
    """Options that are not the same only because of this one, where Kconfig could be asked."""


class CounterDifference(Model):
    """One event counter, per operation, in each of the two.

    Counted from the workload's start to its end: with its first pass, which is not measured.
    """

    counter: str
    before: float
    after: float


FEWER_FUNCTIONS = (
    "functions: the kernel of {} is not in the cache, so less is known of which function is which, and rows "
    "may be others, in another order, than with it"
)
"""Which source files a kernel's functions are in is told by its image alone."""


class Differences(Model):
    """All that differs and may be the cause. What could not be compared is said, with the reason."""

    levels: tuple[LevelDifference, ...] = ()
    boot_before: tuple[str, ...] = ()
    """Boot parameters that only the first has."""
    boot_after: tuple[str, ...] = ()
    options: tuple[OptionDifference, ...] = ()
    """Those with owners first, by what the owners weigh; then the others, by name."""
    values: tuple[ValueDifference, ...] = ()
    """Settings as the kernels boot: with other values first, then those that one of the two does not have; of
    each, those of the explanation's heavy subsystems first."""
    counters: tuple[CounterDifference, ...] = ()
    """The largest relative difference first."""
    unknown: tuple[str, ...] = ()
    """What could not be compared, and why: one sentence each."""

    @property
    def fewer_functions(self) -> str:
        """That functions were matched without a kernel's image; empty where both were there."""
        beginning = FEWER_FUNCTIONS.partition("{}")[0]
        return next((reason for reason in self.unknown if reason.startswith(beginning)), "")


class Attribution(Model):
    """An explanation with all that differs around it."""

    before: Profile
    after: Profile
    """What it was made from: with the tree of calls, where calls were followed."""
    explanation: Explanation
    differences: Differences
    counted_anew: tuple[str, ...] = ()
    """Treatments whose stored trials had no profile, so that they were counted for this explanation."""
    of_study: Comparison | None = None
    """What the study says of the two, over all its perturbations: functions are counted under one of them."""


# Causes that are proved: each thing that differs is taken back alone, and what that changes is counted.


class CauseKind(StrEnum):
    """What a possible cause is, and so how it is taken back."""

    LEVEL = "level"
    """One of the study's factors, where two treatments differ in several."""
    SETTING = "setting"
    """A file below /proc/sys or /sys."""
    FEATURE = "scheduler feature"
    """A word of /sys/kernel/debug/sched/features."""
    BOOT = "boot parameter"
    MODULE = "module"
    OPTION = "option"
    """Of the configuration of kernels that ktrial builds."""


class ProofSide(StrEnum):
    """One of the two treatments that are compared."""

    FROM = "from"
    TO = "to"


class Candidate(Model):
    """One thing that differs between two treatments, and may be a cause of what is to be explained."""

    name: str
    """`HRTICK`, `vm.dirty_ratio`, `init_on_alloc`."""
    kind: CauseKind
    target: str
    """The file, the boot parameter, the factor, the module or the option."""
    before: str
    """What the first has, for people."""
    after: str
    on_to: str | None = None
    """What the second is given, so that it is as the first; None where that is not known."""
    on_from: str | None = None
    """What the first is given, so that it is as the second."""
    subsystem: str = ""

    def value_on(self, side: ProofSide) -> str | None:
        """What that side is given."""
        return self.on_to if side is ProofSide.TO else self.on_from

    @property
    def sides(self) -> tuple[ProofSide, ...]:
        """Where it can be taken back: in the second, and where that is not possible in the first."""
        return tuple(side for side in (ProofSide.TO, ProofSide.FROM) if self.value_on(side) is not None)


class Untried(Model):
    """What differs and was not tried."""

    name: str
    reason: str
    """In one sentence without its end."""


class Status(StrEnum):
    """What came of taking one thing back."""

    MEASURED = "measured"
    """It has a share of the difference."""
    NOTHING = "reaches nothing"
    """Not one instruction more or less."""
    UNCERTAIN = "no more than a control"
    """The count moved, no further than by a write that changes nothing, or not always in one direction."""
    REFUSED = "refused"
    """The kernel did not take the value."""
    FAILED = "failed"
    """A trial did not complete."""
    GROUPED = "nothing in a group"
    """It was taken back with others only: together they move the count no further than a control."""


class Tried(Model):
    """One candidate, after its trials."""

    candidate: Candidate
    side: ProofSide
    status: Status
    effects: tuple[float, ...] = ()
    """Its part of the difference under each perturbation, in the unit of the proof. Empty without trials."""
    reason: str = ""
    """Why there is no number; with a number, what else has to be known."""

    @property
    def effect(self) -> float:
        """The median over the perturbations; 0 where nothing was measured."""
        return median(self.effects) if self.effects else 0.0


class GroupKind(StrEnum):
    """What was found of several things that were taken back at once."""

    NOTHING = "nothing"
    """They move the count no further than a control, or than a share that is too small to look for."""
    OPEN = "not divided"
    """They move it, and were not divided up: no time was left, or it was interrupted."""
    ONLY_TOGETHER = "only together"
    """What they have together, beyond what each of them has alone."""


class CandidateGroup(Model):
    """Several things that were taken back at once, under the first perturbation."""

    kind: GroupKind
    names: tuple[str, ...]
    side: ProofSide
    effect: float
    """Their part of the difference; of the second of two halves, what it adds to the first."""
    control: float = 0.0
    """How far the same files move it, written with the values that they have: without a sign."""


class Together(Model):
    """All that helped, taken back at once."""

    names: tuple[str, ...]
    effects: tuple[float, ...] = ()
    reason: str = ""
    """Why it was not measured."""

    @property
    def effect(self) -> float | None:
        """The median over the perturbations; None where it was not measured."""
        return median(self.effects) if self.effects else None


class Cost(Model):
    """What a proof takes."""

    trials: int
    stored: int = 0
    """How many of them were in the store before."""
    boots: int = 0
    """Systems that have to be booted for it, as they have boot parameters or modules of their own."""
    builds: int = 0
    seconds: float = 0.0
    """CPU seconds: estimated, or used."""


class Proof(Model):
    """Which of the things that differ make a difference, and how much of it each."""

    workload: str
    before: str
    after: str
    unit: str = "instructions/operation"
    values_before: tuple[float, ...]
    """The mean over the operations, under each perturbation."""
    values_after: tuple[float, ...]
    control: float = 0.0
    """How far a write, or a boot parameter, that changes nothing moved the count at most."""
    tested: tuple[Tried, ...] = ()
    """By the size of their effects."""
    groups: tuple[CandidateGroup, ...] = ()
    """What was found of several at once. Empty where each was tried alone."""
    together: Together | None = None
    """None where nothing helped."""
    left_out: tuple[Untried, ...] = ()
    estimated: Cost = Cost(trials=0)
    used: Cost = Cost(trials=0)
    studies: tuple[str, ...] = Field(default=())
    """The studies in the store that hold the trials."""

    @property
    def difference_key(self) -> tuple[str, str, str]:
        """What it is a proof about: workload and the two treatments."""
        return self.workload, self.before, self.after

    @property
    def differences(self) -> tuple[float, ...]:
        """The whole difference under each perturbation."""
        return tuple(new - old for old, new in zip(self.values_before, self.values_after, strict=True))

    @property
    def difference(self) -> float:
        """The whole difference: the median over the perturbations."""
        return median(self.differences)

    @property
    def unexplained(self) -> float:
        """What remains when all that helped is taken back."""
        explained = self.together.effect if self.together else 0.0
        return self.difference - (explained or 0.0)

    def share(self, effect: float) -> float | None:
        """An effect's share of the whole difference; None where there is none."""
        return effect / self.difference if self.difference else None

    def shares(self, effects: tuple[float, ...]) -> tuple[float, float] | None:
        """The smallest and the largest share over the perturbations."""
        pairs = zip(effects, self.differences, strict=True)
        shares = [effect / difference for effect, difference in pairs if difference]
        return (min(shares), max(shares)) if shares else None
