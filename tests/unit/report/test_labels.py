"""What metrics are called: with their unit, and no word twice."""

import pytest

from ktrial.format.labels import metric_name


@pytest.mark.parametrize(
    ("metric", "unit", "name"),
    [
        ("rate", "requests/s", "rate (requests/s)"),
        ("instructions", "instructions/operation", "instructions/operation"),
        ("bytes", "bytes", "bytes"),
        ("wall time", "ns", "wall time"),
        ("latency", "usecs/op", "latency/op"),
        ("wall time", "instructions", "instructions"),
    ],
)
def test_a_metric_is_called_what_its_numbers_are(metric: str, unit: str, name: str) -> None:
    assert metric_name(metric, unit) == name
