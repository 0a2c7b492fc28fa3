"""Warnings about data: typed values that carry advice, and reach the terminal, the store and the report."""

from enum import StrEnum

from ktrial.model.base import Model


class WarningKind(StrEnum):
    """What a warning is about."""

    FAILED_TRIALS = "failed-trials"
    PLAIN_BOOT = "plain-boot"
    DIFFERENT_MACHINES = "different-machines"
    DIFFERENT_KERNELS = "different-kernels"
    """One treatment's trials ran on kernels that differ, under one name."""
    WIDE_SPREAD = "wide-spread"
    NO_SPREAD = "no-spread"
    """One perturbation only: nothing tells an effect from an accident of layout."""
    MISSING_WORKLOAD = "missing-workload"
    COUNTERS_MISSING = "counters-missing"
    PLUGIN_BROKEN = "plugin-broken"
    """An outside machine, workload or importer that cannot be loaded."""


class DataWarning(Model):
    """One warning: what is odd about the data, and what to do about it."""

    kind: WarningKind
    text: str
    advice: str = ""
