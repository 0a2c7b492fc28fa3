"""Candidates of a search, measured in exact mode: from a subset or a place to a kernel with settings."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ktrial.bisect.decision import Numbers
from ktrial.bisect.errors import EndUnresolved
from ktrial.bisect.measurement import Laboratory, Settings, numbers_of, problem_of
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Kernel
from ktrial.model.study_record import StudyRecord

Candidate = TypeVar("Candidate", bound=Hashable)
Chosen = TypeVar("Chosen", bound=Hashable, contravariant=True)


@dataclass(frozen=True)
class Setup:
    """What is booted for a candidate, and what is set there."""

    kernel: Kernel
    settings: Settings = field(default_factory=dict)


class Ground(Protocol[Chosen]):
    """What is searched: options, knobs, patches, releases."""

    def setup(self, candidate: Chosen) -> Setup:
        """The candidate's kernel, built or fetched where it is not there, and its settings.

        Raises KernelError where the candidate cannot be had.
        """

    def label(self, candidate: Chosen) -> str:
        """What the candidate is called in a line of progress."""


Tell = Callable[[str], None]


@dataclass
class TrialOracle(Generic[Candidate]):
    """Measures candidates in trials; remembers which could not be measured, and why."""

    ground: Ground[Candidate]
    laboratory: Laboratory
    tell: Tell = lambda _text: None
    problems: dict[Candidate, str] = field(default_factory=dict)
    records: dict[Candidate, StudyRecord] = field(default_factory=dict)
    setups: dict[Candidate, Setup] = field(default_factory=dict)

    def measure(self, candidate: Candidate) -> Numbers | None:
        """See Oracle. Raises what says nothing about the candidate: HOST_PROBLEMS, Interrupted…"""
        count = len(self.records) + len(self.problems) + 1
        self.tell(f"candidate {count}: {self.ground.label(candidate)}")
        try:
            setup = self.ground.setup(candidate)
        except KernelError as error:
            if isinstance(error, HOST_PROBLEMS):
                raise
            self._unresolved(candidate, error.message.rstrip("."))
            return None
        record = self.laboratory.measure(setup.kernel, setup.settings)
        if problem := problem_of(record):
            self._unresolved(candidate, problem)
            return None
        self.setups[candidate], self.records[candidate] = setup, record
        return numbers_of(record)

    def end(self, candidate: Candidate) -> StudyRecord:
        """A or B, measured. Raises EndUnresolved."""
        if candidate not in self.records:
            raise EndUnresolved(name=self.ground.label(candidate), problem=self.problems.get(candidate, ""))
        return self.records[candidate]

    def _unresolved(self, candidate: Candidate, problem: str) -> None:
        self.problems[candidate] = problem
        self.tell(f"  unresolved: {problem}")
