"""The audit of foreign runs: far ones, two heaps, warm-ups, drifts, spreads; claims over many families."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.program_texts import table
from tests.support.runs_of_tests import by_night

from ktrial.analysis.imported_results import AnalysisOptions, analyse
from ktrial.importers import Choices, read_all
from ktrial.model.comparison import Verdict
from ktrial.model.imported import Analysis, Family, Group, Imported
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction

NORMAL = np.random.default_rng(7).normal(100, 1, 30).round(3).tolist()
SHAPES = {
    "far": ([0.2 + at % 7 / 1000 for at in range(29)] + [36.0], WarningKind.FAR_BLOCKS, "run 30 with 36 s"),
    "first far": ([36.0] + [0.2 + at % 7 / 1000 for at in range(29)], WarningKind.DRIFT, "the first 1 run"),
    "alternating": (
        [0.2, 0.25] * 8,
        WarningKind.BIMODAL,
        "two modes: about 0.2 (8 runs) and 0.25 s (8 runs)",
    ),
    "two heaps": (
        [value / 100 for value in NORMAL[:10]] + [value / 80 for value in NORMAL[10:20]],
        WarningKind.BIMODAL,
        "the runs have two modes",
    ),
    "falling": (
        [100 - at + NORMAL[at] / 100 for at in range(20)],
        WarningKind.DRIFT,
        "the runs fall in the order",
    ),
    "warm-up": (
        [110 - 1.2 * at for at in range(8)] + [100 + at * 7 % 16 / 10 for at in range(16)],
        WarningKind.DRIFT,
        "the first 8 runs only",
    ),
    "wide": (
        [100 + 3 * (value - 100) * 10 for value in NORMAL[:12]],
        WarningKind.WIDE_SPREAD,
        "1 of 1 groups scatter by more than 10",
    ),
}


def analysed(values: list[float], blocked: bool = False) -> Analysis:
    group = Group(label="a", values=tuple(values), runs=tuple(map(str, range(len(values)))))
    family = Family(
        name="x", metric="x", unit="s", direction=Direction.LOWER, groups=(group,), blocked=blocked
    )
    return analyse([Imported(source="f.csv", format="csv", families=(family,))], AnalysisOptions())


@pytest.mark.parametrize("shape", SHAPES)
def test_an_odd_shape_is_told(shape: str) -> None:
    values, kind, text = SHAPES[shape]
    told = [finding.text for finding in analysed(values).findings if finding.kind is kind]
    assert any(text in one for one in told), told


@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        [0.2, 0.21] * 8,  # the resolution of the print
        [1.0] * 12,
        [5.0, 5.1, 5.2],
        [0.2, 0.2, 0.2, 0.2, 0.2, 0.201, 0.2, 0.2],
    ],
)
def test_runs_without_an_oddity_are_left_in_peace(values: list[float]) -> None:
    odd = {WarningKind.FAR_BLOCKS, WarningKind.BIMODAL, WarningKind.DRIFT, WarningKind.WIDE_SPREAD}
    assert not [finding for finding in analysed(values).findings if finding.kind in odd]


def test_normal_runs_are_seldom_called_odd() -> None:
    rng = np.random.default_rng(11)
    groups = [rng.normal(100, 2, size).tolist() for size in (6, 8, 10, 20) for _ in range(by_night(250, 75))]
    odd = {WarningKind.FAR_BLOCKS, WarningKind.BIMODAL, WarningKind.DRIFT}
    told = sum(any(finding.kind in odd for finding in analysed(values).findings) for values in groups)
    assert told / len(groups) < 0.02


def families(tmp_path: Path, count: int, effect: float) -> Analysis:
    rng = np.random.default_rng(3)
    rows = [
        f"t{test},{kernel},{rng.normal(100 + (effect if kernel == 'b' and not test else 0), 1):.4f}"
        for test in range(count)
        for kernel in "ab"
        for _ in range(6)
    ]
    path = table(tmp_path, "test,kernel,seconds", *rows)
    return analyse(read_all([("", path)], Choices()), AnalysisOptions(margin=0.001))


def claims(analysis: Analysis) -> list[str]:
    return [
        family.name
        for family in analysis.families
        for comparison in family.comparisons
        if comparison.verdict in (Verdict.BETTER, Verdict.WORSE)
    ]


def test_claims_hold_together_over_all_families(tmp_path: Path) -> None:
    (alone,) = families(tmp_path, 1, 1.9).families
    assert alone.comparisons[0].verdict is Verdict.WORSE
    many = families(tmp_path, 60, 1.9)
    assert claims(many) == []
    reasons = [each.reason for family in many.families for each in family.comparisons]
    assert any(
        reason.startswith("one of 60 comparisons: adjusted for that (Holm), p is") for reason in reasons
    )
    assert "after Holm's procedure over all families" in many.answer


def test_a_large_effect_among_many_families_stays_claimed(tmp_path: Path) -> None:
    assert claims(families(tmp_path, 60, 15)) == ["t0"]
