"""What trials run: built-in operations and the user's own commands."""

from ktrial.workloads.builtin import DEFAULT, DISK, QUICK, WHOLE_BENCHMARKS
from ktrial.workloads.protocol import CountsOperations, RunsPrograms, WarnsOfRuns, Workload
from ktrial.workloads.registry import catalogue, check, descriptions, find, installed

__all__ = [
    "DEFAULT",
    "DISK",
    "QUICK",
    "WHOLE_BENCHMARKS",
    "CountsOperations",
    "RunsPrograms",
    "WarnsOfRuns",
    "Workload",
    "catalogue",
    "check",
    "descriptions",
    "find",
    "installed",
]
