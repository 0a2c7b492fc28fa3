"""What trials run: built-in operations and the user's own commands."""

from ktrial.workloads.parameter_checks import check
from ktrial.workloads.protocol import CountsOperations, RunsPrograms, Workload
from ktrial.workloads.registry import catalogue, descriptions, find, found
from ktrial.workloads.sets import DEFAULT, DISK, QUICK, WHOLE_BENCHMARKS

__all__ = [
    "DEFAULT",
    "DISK",
    "QUICK",
    "WHOLE_BENCHMARKS",
    "CountsOperations",
    "RunsPrograms",
    "Workload",
    "catalogue",
    "check",
    "descriptions",
    "find",
    "found",
]
