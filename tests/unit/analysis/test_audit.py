"""The audit finds what it is for, and leaves good data alone."""

import numpy as np
import pytest

from ktrial.analysis.audit import audit
from ktrial.model.imported import Family, Group, Imported, IndexRow, Rounded, Score, Summary
from ktrial.model.warnings import WarningKind


def family(*groups: Group, name: str = "f", metric: str = "m", order: tuple[str, ...] = ()) -> Family:
    return Family(name=name, metric=metric, unit="s", groups=groups, run_order=order)


def kinds(*families: Family, **parts: tuple[IndexRow, ...] | tuple[Score, ...]) -> list[WarningKind]:
    imported = Imported(source="x.csv", format="csv", families=families).model_copy(update=parts)
    return [finding.kind for finding in audit([imported])]


def runs(label: str, *values: float, default: bool = False) -> Group:
    return Group(label=label, values=values, is_default=default)


def printed(label: str, mean: float, error: float, percent: float, count: int | None = None) -> Group:
    def two(value: float) -> Rounded:
        return Rounded(value=value, half_unit=0.005)

    return Group(
        label=label,
        summary=Summary(mean=two(mean), standard_error=two(error), sd_percent=two(percent), runs=count),
    )


def test_good_data_has_no_findings() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        values = [tuple(float(v) for v in rng.normal(100, 1, 8)) for _ in range(6)]
        labels = ["slub", "slab", "slob"]
        first = family(*(runs(label, *value) for label, value in zip(labels, values[:3], strict=True)))
        second = family(
            *(runs(label, *value) for label, value in zip(labels, values[3:], strict=True)), metric="other"
        )
        assert kinds(first, second) == []


def test_two_shared_numbers_between_runs_of_two_groups_are_a_finding_and_one_is_chance() -> None:
    family_ = family(runs("a", 101.2, 102.3, 103.1), runs("b", 99.7, 102.3, 98.8), metric="pipe")
    two = family(runs("a", 11.21, 12.31, 13.11), runs("b", 19.71, 12.31, 18.81), metric="fork")
    assert WarningKind.COPIED_VALUES not in kinds(family_)
    assert WarningKind.COPIED_VALUES in kinds(family_, two)


def test_numbers_printed_so_coarsely_that_they_repeat_anyway_are_no_finding() -> None:
    coarse = [
        family(runs("a", 1.25, 1.25, 1.26), runs("b", 1.25, 1.26, 1.26), metric=name) for name in ("x", "y")
    ]
    assert WarningKind.COPIED_VALUES not in kinds(*coarse)


def test_a_whole_group_that_was_copied_is_a_finding() -> None:
    assert WarningKind.COPIED_VALUES in kinds(
        family(runs("a", 1.21, 1.32, 1.43), runs("b", 1.43, 1.21, 1.32))
    )


@pytest.mark.parametrize(
    ("labels", "is_finding"),
    [
        (("10", "20", "30", "40"), True),
        (("40ms", "30ms", "20ms", "10ms"), True),
        (("500us", "1ms", "2ms", "1s"), True),
        (("latency=6", "latency=12", "latency=18", "latency=24"), True),
        (("10", "30", "20", "40"), False),
        (("10", "20", "30"), False),
        (("cfq", "deadline", "noop", "none"), False),
        (("10", "20", "thirty", "40"), False),
    ],
)
def test_levels_in_order_are_a_finding(labels: tuple[str, ...], is_finding: bool) -> None:
    groups = [
        runs(label, *(100 + at + 0.1 * offset for offset in range(8))) for at, label in enumerate(labels)
    ]
    assert (WarningKind.ORDER_CONFOUNDED in kinds(family(*groups))) is is_finding


@pytest.mark.parametrize(
    ("means", "is_finding"),
    [
        ((433.6, 402.1, 384.6, 382.0, 381.4), True),
        ((381.4, 382.0, 384.6, 402.1, 433.6), True),
        ((433.6, 402.1, 381.4, 384.6, 382.0), False),
        ((433.6, 402.1, 384.6, 382.0), False),
    ],
)
def test_means_that_fall_from_row_to_row_are_a_finding(means: tuple[float, ...], is_finding: bool) -> None:
    groups = [
        runs(label, *(mean + 0.11 * offset for offset in range(8)))
        for label, mean in zip(("24ms", "48ms", "72ms", "12ms", "6ms"), means, strict=False)
    ]
    assert (WarningKind.ORDER_CONFOUNDED in kinds(family(*groups))) is is_finding


@pytest.mark.parametrize(
    ("order", "is_finding"),
    [
        (tuple("aaabbb"), True),
        (tuple("abab"), False),
        (tuple("ab"), False),
        ((), False),
        (tuple("aabba"), False),
    ],
)
def test_groups_that_ran_one_after_another_are_a_finding(order: tuple[str, ...], is_finding: bool) -> None:
    family_ = family(runs("a", 1.11, 2.21, 3.31), runs("b", 1.51, 2.61, 3.71), order=order)
    assert (WarningKind.ORDER_CONFOUNDED in kinds(family_)) is is_finding


def test_a_default_that_disagrees_with_itself_is_a_finding_and_one_that_scatters_is_not() -> None:
    def measured(*means: float) -> list[WarningKind]:
        families = [
            family(
                runs("60", *(mean + offset for offset in (-1.5, -0.2, 0.4, 1.3)), default=True),
                name=f"knob {at}",
            )
            for at, mean in enumerate(means)
        ]
        return kinds(*families)

    assert WarningKind.REPEATS_DISAGREE in measured(380.0, 430.0, 270.0)
    assert WarningKind.REPEATS_DISAGREE not in measured(380.0, 380.7, 379.6)


@pytest.mark.parametrize(
    ("group", "is_finding"),
    [
        (printed("a", 369.41, 6.17, 2.89), False),
        (printed("a", 369.41, 6.17, 2.89, 3), False),
        (printed("a", 369.41, 6.17, 2.89, 5), True),
        (printed("a", 369.41, 6.17, 1.20), True),
        (printed("a", 369.41, 6.17, 2.61), True),
    ],
)
def test_a_row_that_no_run_count_fits_is_a_finding(group: Group, is_finding: bool) -> None:
    assert (WarningKind.IMPOSSIBLE_SUMMARY in kinds(family(group))) is is_finding


def index_row(index: float) -> IndexRow:
    tenth = 0.05
    return IndexRow(
        group="g",
        test="pipe",
        baseline=Rounded(value=12440.0),
        result=Rounded(value=2537501.7, half_unit=tenth),
        index=Rounded(value=index, half_unit=tenth),
    )


@pytest.mark.parametrize(("index", "is_finding"), [(2039.8, False), (2039.9, True), (2164.7, True)])
def test_an_index_that_does_not_come_out_is_a_finding(index: float, is_finding: bool) -> None:
    assert (WarningKind.INDEX_MISMATCH in kinds(index_rows=(index_row(index),))) is is_finding


@pytest.mark.parametrize(("score", "is_finding"), [(200.0, False), (201.0, True)])
def test_a_score_that_is_not_the_geometric_mean_is_a_finding(score: float, is_finding: bool) -> None:
    indices = {"x": Rounded(value=100.0, half_unit=0.05), "y": Rounded(value=400.0, half_unit=0.05)}
    published = Score(group="g", score=Rounded(value=score, half_unit=0.05), indices=indices, tests=2)
    assert (WarningKind.INDEX_MISMATCH in kinds(scores=(published,))) is is_finding


def test_a_score_without_any_of_its_indices_is_a_finding() -> None:
    """As of a log that lost the line which begins its table."""
    cut = Score(group="g", score=Rounded(value=444.9, half_unit=0.05), indices={}, tests=0)
    assert kinds(scores=(cut,)) == [WarningKind.INDEX_MISMATCH]


def test_three_runs_a_group_and_groups_without_a_spread_are_findings() -> None:
    assert kinds(family(runs("a", 1.1, 1.2, 1.3), runs("b", 1.5, 1.7, 1.8))) == [WarningKind.TOO_FEW_RUNS]
    assert kinds(family(runs("a", 1.1), runs("b", 1.5))) == [WarningKind.TOO_FEW_RUNS]
