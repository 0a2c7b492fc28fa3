"""A study that was run again, beside what it measured the first time."""

from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison


class Agreement(StrEnum):
    """How a number of exact mode compares with the one that was measured first."""

    IDENTICAL = "identical"
    WITHIN = "within bounds"
    """Another QEMU counted it, and it lies within the bounds that are stated for that."""
    UNBOUNDED = "without a bound"
    """Another QEMU ran the guest, the number is another, and no bound is stated for this metric."""
    DIFFERENT = "different"
    MISSING = "missing"
    """There is no number now."""


class Word(StrEnum):
    """What a replication says about a verdict."""

    CONSISTENT = "consistent"
    """The same verdict, and the intervals meet."""
    CONTRADICTED = "contradicted"
    """Better became worse, or the intervals do not meet."""
    UNDECIDED = "undecided"
    """Neither: one of the two is inconclusive, or the verdicts differ where the intervals meet."""
    UNBOUNDED = "without a bound"
    """Another QEMU ran the guest, the verdict is another, and no bound is stated for its metric."""


class Outcome(StrEnum):
    """What a replication comes to."""

    IDENTICAL = "identical"
    """Every number, to the last digit."""
    WITHIN = "within bounds"
    """Another QEMU counted, and every number and verdict for which a bound is stated lies within it."""
    CONSISTENT = "consistent"
    """Every verdict, where digits cannot be expected to agree."""
    UNDECIDED = "undecided"
    """Nothing is contradicted, and not all could be compared or decided."""
    CONTRADICTED = "contradicted"
    """A number differs that must not, or a verdict is contradicted."""


class NumberPair(Model):
    """One number of one trial, then and now."""

    workload: str
    metric: str
    unit: str
    treatment: str
    perturbation: int
    before: float
    now: float | None
    agreement: Agreement


class CounterPair(Model):
    """One event counter of one trial that is another than it was."""

    workload: str
    counter: str
    treatment: str
    perturbation: int
    before: float
    now: float | None


class VerdictPair(Model):
    """One comparison, then and now."""

    before: Comparison
    now: Comparison | None
    """None where it was not made now."""
    word: Word
    reason: str
    """Why it is that word, in one sentence without its end."""


class Circumstance(Model):
    """Something that can change a result, and is another than it was."""

    what: str
    """`kernel`, `QEMU`, `guest program agent`."""
    before: str
    now: str
    treatments: tuple[str, ...] = ()
    """For which treatments; empty: for all."""


class KernelHad(Model):
    """How a kernel was had for a replication."""

    asked: str
    digest: str
    """Of the one that was measured first."""
    how: str
    """`the cache`, `the bundle`, `debian:6.1.0-50-cloud-amd64`; empty: it could not be had."""
    release: str = ""
    """Of the one that was had."""
    same: bool = False
    """Whether it is the same content; else it stands in."""
    problem: str = ""
    """Why it could not be had."""


class Replication(Model):
    """A study run again, compared with the first time."""

    study: str
    exact: bool
    """Whether its numbers are to agree to the last digit."""
    outcome: Outcome
    said: str
    """The outcome in a sentence."""
    numbers: tuple[NumberPair, ...] = ()
    """Of exact mode: those that are not identical come first."""
    verdicts: tuple[VerdictPair, ...] = ()
    counters: tuple[int, int] = (0, 0)
    """Of exact mode: how many event counters are identical, and how many there are."""
    differing_counters: tuple[CounterPair, ...] = ()
    circumstances: tuple[Circumstance, ...] = ()
    likely: str = ""
    """The likely reason for what differs, in a sentence; empty where nothing does."""
    kernels: tuple[KernelHad, ...] = ()
    trials: tuple[int, int] = (0, 0)
    """How many trials of the first time were run again, and how many there were."""
    only: tuple[str, ...] = ()
    """The workloads that were asked for; empty: all."""
    signer: str = Field(default="")
    """Who signed the bundle, where that was demanded."""

    def count(self, agreement: Agreement) -> int:
        """How many numbers agree so."""
        return sum(number.agreement is agreement for number in self.numbers)

    def said_of(self, word: Word) -> int:
        """How many verdicts the word is said of."""
        return sum(verdict.word is word for verdict in self.verdicts)
