"""What is kept of published changes, and what the verdict on it is worth beside the report."""

import pytest
from docs.measured.blocks.published_changes import scored
from docs.measured.published_result import reduced


def comparison(unit: str, metric: str, value: float) -> dict[str, object]:
    numbers = {"baseline_value": 100.0, "value": value, "ratio": value / 100, "low": 0.98, "high": 0.99}
    return {"workload": "dup1(kind=threads)", "metric": metric, "unit": unit, "verdict": "better", **numbers}


def test_both_counts_and_the_functions_that_differ_most_are_kept() -> None:
    functions = [
        {"function": name, "difference": size} for name, size in (("a", 1.0), ("b", -7.0), ("c", 3.0))
    ]
    told = reduced(
        {
            "comparisons": [
                comparison("ops/s", "throughput", 102),
                comparison("instructions", "dup, close", 98),
                comparison("cycles", "modelled-cycles", 99),
            ],
            "why": [{"functions": [*functions, {"function": "d", "difference": 0.5}]}],
            "kernels": [{"before": {"version": "7.2.13"}}],
            "warnings": [{"kind": "wide-spread"}],
        }
    )
    assert told["ran"]
    assert (told["instructions"]["ratio"], told["cycles"]["ratio"]) == (0.98, 0.99)
    assert list(told["functions"]) == ["b", "c", "a"]
    assert (told["kernel"], told["workload"]) == ("7.2.13", "dup1(kind=threads)")


def test_a_change_of_which_nothing_ran_is_told_as_that() -> None:
    rows = [comparison("instructions", "call", 98), comparison("cycles", "modelled-cycles", 99)]
    warnings = [{"kind": "change-not-run"}]
    assert not reduced({"comparisons": rows, "why": [], "kernels": [], "warnings": warnings})["ran"]


@pytest.mark.parametrize(
    ("theirs", "low", "ratio", "high", "score"),
    [
        (1.067, 0.93, 0.94, 0.95, "right"),  # it costs less: the rate is higher
        (0.9, 0.93, 0.94, 0.95, "wrong"),
        (0.9, 1.04, 1.05, 1.06, "right"),
        (1.1, 0.99, 1.01, 1.02, "undecided"),  # the interval reaches across the margin
        (1.1, 1.0001, 1.0002, 1.0003, "equivalent"),  # told apart from nothing, and too little to matter
        (1.1, 0.985, 0.988, 0.995, "undecided"),
    ],
)
def test_a_change_is_scored_by_the_verdict_on_its_rate(
    theirs: float, low: float, ratio: float, high: float, score: str
) -> None:
    assert scored(theirs, {"low": low, "ratio": ratio, "high": high}) == score
