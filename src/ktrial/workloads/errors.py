"""Errors about workloads: names, parameters, files to carry, runs that failed, metrics not found."""

from ktrial.errors import KtrialError


class WorkloadError(KtrialError):
    """A workload cannot be run, or its numbers cannot be read."""


class BadWorkload(WorkloadError):
    """What was asked for cannot be meant: an unknown name, a parameter out of range, a bad command."""

    exit_code = 2


class NoMarkedRegion(WorkloadError):
    """Nothing was counted between a workload's marks, so that it cannot be profiled."""

    hint = "the built-in workloads mark what they measure: ktrial workload list"

    def __init__(self, workload: str, problem: str) -> None:
        super().__init__(f"Workload {workload} cannot be profiled: {problem}")


class WrongMarks(WorkloadError):
    """A program's own marks cannot be counted."""

    hint = (
        "one thread begins a region, marks the end of each operation in it, and ends it before the next one "
        "begins: ktrial help guest-protocol, Marks"
    )

    def __init__(self, workload: str, problem: str) -> None:
        super().__init__(f"Workload {workload} marks what cannot be counted: {problem}")


class BadOutput(WorkloadError):
    """What a program printed is not what was expected."""

    def __init__(self, workload: str, problem: str, *, hint: str = "") -> None:
        message = f"Workload {workload}: its output is not what was expected: {problem}."
        super().__init__(message, hint=hint)
