"""A setting is a cause where what it governs moved as it says, and nowhere else."""

import pytest

from ktrial.analysis.attribution.conditions_diff import affected_metrics
from ktrial.experiment.guest_storage import settings_check
from ktrial.model.study import Disk, DiskKind
from ktrial.target import Failure, StepResult

QUEUE = "/sys/block/nullb1/queue"
READ_AHEAD = f"{QUEUE}/read_ahead_kb"
FEWER_AND_LARGER = {"average read size": (128.0, 2340.0), "read requests": (128.0, 7.0), "rate": (1.0, 2.0)}


def names(path: str, before: str, after: str, measured: dict[str, tuple[float, float]]) -> list[str]:
    return [
        affected_metric.metric
        for affected_metric in affected_metrics(path, before, after, measured, margin=0.01)
    ]


def test_more_read_ahead_explains_fewer_and_larger_requests() -> None:
    assert names(READ_AHEAD, "128", "8192", FEWER_AND_LARGER) == ["average read size", "read requests"]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (READ_AHEAD, "8192", "128"),  # the other way round
        (f"{QUEUE}/nr_requests", "128", "8192"),  # another setting
        (f"{QUEUE}/max_sectors_kb", "1280", "4096"),  # a limit that no request comes near
    ],
)
def test_what_does_not_follow_is_no_cause(path: str, before: str, after: str) -> None:
    assert names(path, before, after, FEWER_AND_LARGER) == []


def test_within_the_margin_nothing_is_caused() -> None:
    assert names(READ_AHEAD, "128", "132", {"average read size": (128.0, 128.5)}) == []


def test_a_limit_that_requests_come_up_to_is_a_cause() -> None:
    measured = {"average read size": (120.0, 500.0), "read requests": (100.0, 25.0)}
    assert names(f"{QUEUE}/max_sectors_kb", "128", "512", measured) == ["average read size", "read requests"]


def test_a_setting_that_is_no_number_may_move_what_it_governs_either_way() -> None:
    measured = {"refaults": (10.0, 20.0), "evictions": (20.0, 10.0), "activations": (5.0, 5.0)}
    assert names("/sys/kernel/mm/lru_gen/enabled", "0x0000", "0x0007", measured) == ["refaults", "evictions"]


def test_settings_of_the_disk_are_read_after_the_workload_and_those_it_lacks_left_out() -> None:
    looked_at = settings_check(Disk(kind=DiskKind.PMEM))
    assert looked_at.before == ()
    results = [StepResult(step=0, do="read", content="128\n")]
    results += [
        StepResult(step=number, do="read", failure=Failure(name="ENOENT", text="no such file"))
        for number in range(1, len(looked_at.after))
    ]
    reported = looked_at.in_force((), tuple(results), "")
    assert reported == {"/sys/block/pmem0/queue/read_ahead_kb": "128"}
