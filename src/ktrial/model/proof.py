"""Causes that are proved: each thing that differs is taken back alone, and what that changes is counted."""

from enum import StrEnum
from statistics import median

from pydantic import Field

from ktrial.model.base import Model


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
        each = [effect / whole for effect, whole in pairs if whole]
        return (min(each), max(each)) if each else None
