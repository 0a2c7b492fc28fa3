"""Errors about workloads: unknown names, wrong parameters, output without the metric."""

from ktrial.errors.base import KtrialError


class WorkloadError(KtrialError):
    """Workload {workload}: {problem}"""
