"""What every workload offers: its description, what the guest needs, what it does, what came of it."""

from typing import Protocol, runtime_checkable

from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Mode, Sample, WorkloadDescription, WorkloadUse
from ktrial.target import Step, StepResult


@runtime_checkable
class Workload(Protocol):
    """A workload. To add one, put an object `WORKLOAD` into a module of this package.

    Other packages name theirs by an entry point of the group `ktrial.workloads`.
    """

    @property
    def description(self) -> WorkloadDescription:
        """Its name, metrics and parameters."""
        ...

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """Host files that the guest needs. Raises WorkloadError where one is missing."""
        ...

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """What the target is to do. `use` has been checked (`ktrial.workloads.check`)."""
        ...

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """The samples in the results of these steps.

        Raises WorkloadError where a step failed, or its output is missing or short.
        """
        ...


@runtime_checkable
class CountsOperations(Protocol):
    """A workload that knows how many operations its programs did: event counters are divided by it."""

    def operations(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> int:
        """All of them, those that are done first and do not count among them; from results with samples."""
        ...


@runtime_checkable
class RunsPrograms(Protocol):
    """A workload that runs programs of others."""

    def programs(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> dict[str, str]:
        """Program → its version, and the arguments that it was run with; from results with samples."""
        ...


@runtime_checkable
class WarnsOfRuns(Protocol):
    """A workload that may find something odd about runs that are good all the same."""

    def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
        """What it found; from results with samples."""
        ...
