"""Tests that take minutes, or repeat on more kernels and seeds what others show, run where asked for."""

import pytest

ASKED_FOR = {"nightly": ("--nightly",), "slow": ("--slow", "--nightly")}
"""Marker → the options of which one has to be given."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")
    parser.addoption(
        "--nightly", action="store_true", help="run every test: all kernels and seeds, slow ones"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {
        marker
        for marker, options in ASKED_FOR.items()
        if not any(config.getoption(option) for option in options)
    }
    dropped = [item for item in items if any(item.get_closest_marker(marker) for marker in left_out)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]
