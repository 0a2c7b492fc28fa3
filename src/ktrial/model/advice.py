"""Warnings about data: typed values that carry advice, and reach the terminal, the store and the report."""

from enum import StrEnum

from ktrial.model.base import Model


class WarningKind(StrEnum):
    """What a warning is about."""

    FAILED_TRIALS = "failed-trials"
    PLAIN_BOOT = "plain-boot"
    DIFFERENT_MACHINES = "different-machines"
    WIDE_SPREAD = "wide-spread"
    MISSING_WORKLOAD = "missing-workload"
    COUNTERS_MISSING = "counters-missing"


class DataWarning(Model):
    """One warning: what is odd about the data, and what to do about it."""

    kind: WarningKind
    text: str
    advice: str = ""
