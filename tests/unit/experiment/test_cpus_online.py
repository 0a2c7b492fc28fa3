"""A guest that has lost a CPU."""

import pytest

from ktrial.experiment.manipulation import NAME, SettingRefused, counted, cpus_online
from ktrial.target import StepResult


def read(text: str) -> tuple[StepResult, ...]:
    return (StepResult(step=0, do="read", content=text),)


@pytest.mark.parametrize(("listed", "count"), [("0", 1), ("0-3", 4), ("0-2,5,7-8", 6), ("", 0), ("none", 0)])
def test_lists_of_the_kernels_are_counted(listed: str, count: int) -> None:
    assert counted(listed) == count


def test_a_boot_that_wants_all_cpus_has_them_or_is_refused() -> None:
    check = cpus_online(4, ("quiet",))
    assert check.in_force((), read("0-3"), "") == {}
    with pytest.raises(SettingRefused, match="4 CPUs were asked for, and the kernel runs on 0-2"):
        check.in_force((), read("0-2"), "")
    with pytest.raises(SettingRefused, match="does not tell which"):
        check.in_force((), read(""), "")


@pytest.mark.parametrize("parameter", ["nosmp", "maxcpus=1", "nr_cpus=1"])
def test_a_boot_that_asks_for_fewer_says_which_it_had(parameter: str) -> None:
    assert cpus_online(4, (parameter,)).in_force((), read("0"), "") == {NAME: "0"}
