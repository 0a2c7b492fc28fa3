"""Which kernels tests boot for each change, and which ones nightly."""

import pytest
from _pytest.mark import ParameterSet

EACH_CHANGE = ("debian:6.1", "debian:6.12")
ALL = ("debian:5.10", *EACH_CHANGE, "debian:6.18", "debian:7.2")


def versions(*names: str) -> list[ParameterSet]:
    """The kernels as parameters of a test; marked `nightly` are those that are not booted for each change."""
    return [pytest.param(name, marks=() if name in EACH_CHANGE else pytest.mark.nightly) for name in names]


def newest_for_each_change(*names: str) -> list[ParameterSet]:
    """As `versions`, of what costs much: for each change the newer kernel alone."""
    return [
        pytest.param(name, marks=() if name == EACH_CHANGE[-1] else pytest.mark.nightly) for name in names
    ]
