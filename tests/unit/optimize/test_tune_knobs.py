"""What a search is told to search: names, ranges, values; what it makes of them, and what it leaves out."""

import numpy as np
import pytest
from tests.support.fake_builds import NO_OPTION, FakeBuilder
from tests.support.scripted import scripted_resources
from tests.support.tuning import FILES, TunableMachine, a_search

from ktrial.experiment.observer import Observer
from ktrial.kernels.errors import OptionNotTaken
from ktrial.knobs.errors import BadKnob, KnobAbsent, UnknownKnob
from ktrial.model.base import digest
from ktrial.model.kernel import Build
from ktrial.model.study import Study
from ktrial.model.tuning import Cost, OnlyOneOf, Order, Range
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.search_space import range_of, search_of, with_space
from ktrial.studyfile.errors import BadKnobSpace, SpaceEmpty, TuningError
from ktrial.studyfile.search import searched_knobs

BACKGROUND = "/proc/sys/vm/dirty_background_ratio"


def made(*knobs: str, read_only: frozenset[str] = frozenset()) -> Study:
    machine = TunableMachine(lambda boot, written: 1000.0, read_only=read_only)
    return with_space(a_search(*knobs), machine, scripted_resources(), Observer())


def reasons(study: Study) -> dict[str, str]:
    return {one.name: one.reason for one in search_of(study)[0].left_out}


def test_commas_separate_names_and_behind_an_equals_sign_values() -> None:
    knobs = searched_knobs(
        ["vm.dirty_ratio=5..60,vm.swappiness=10,60,100", "transparent_hugepage=always,never"]
    )
    assert [(one.name, one.low, one.high, one.values) for one in knobs] == [
        ("vm.dirty_ratio", 5, 60, ()),
        ("vm.swappiness", None, None, ("10", "60", "100")),
        ("transparent_hugepage/enabled", None, None, ("always", "never")),
    ]


def test_what_is_named_by_itself_goes_before_its_subsystem() -> None:
    by_name = {one.name: one for one in searched_knobs(["vm", "vm.swappiness=1..9"])}
    assert (by_name["vm.swappiness"].low, by_name["vm.swappiness"].by_itself) == (1, True)
    assert not by_name["vm.vfs_cache_pressure"].by_itself


def test_a_pattern_names_all_that_match() -> None:
    names = {one.name for one in searched_knobs(["vm.dirty_*"])}
    assert {"vm.dirty_ratio", "vm.dirty_bytes"} <= names
    assert all(name.startswith("vm.dirty_") for name in names)


@pytest.mark.parametrize(
    ("wrong", "more", "problem"),
    [
        ("vm.swappiness=", "", "no values behind"),
        ("vm.swappiness=9..1", "", "from a lower to a higher"),
        ("vm.swappiness=1..1", "", "from a lower to a higher"),
        ("vm.swappiness=1.5..9", "", "two whole numbers"),
        ("vm.swappiness=1,,3", "", "is empty"),
        ("nothing.like_this_*", "", "ktrial knows no knob"),
        ("boot:", "", "a name is missing"),
        ("kconfig:HZ", "", "knows no values"),
        ("vm.swappiness", "=1..9,vm.swappiness=2..9", "here twice"),
    ],
)
def test_what_cannot_be_meant_is_told(wrong: str, more: str, problem: str) -> None:
    with pytest.raises(BadKnobSpace) as error:
        searched_knobs([f"vm.dirty_ratio,{wrong}{more}"])
    assert error.value.message.startswith(f"'{wrong}' cannot be searched: ")
    assert problem in error.value.message


def test_an_unknown_knob_is_told_with_those_like_it() -> None:
    with pytest.raises(UnknownKnob, match=r"did you mean vm\.swappiness"):
        searched_knobs(["swapiness"])
    with pytest.raises(UnknownKnob, match=r"did you mean vm\.swappiness"):
        made("vm.swapiness=1..2")


def test_ranges_come_from_the_catalogue_and_from_the_value_in_force() -> None:
    _, space = search_of(made("vm.swappiness", "vm.watermark_scale_factor", "vm.vfs_cache_pressure"))
    assert {one.name: one.range for one in space.dimensions} == {
        "vm.swappiness": Range(low=0, high=200),
        "vm.watermark_scale_factor": Range(low=1, high=3000, log=True),
        "vm.vfs_cache_pressure": Range(low=6, high=1600, log=True),
    }
    assert [one.default for one in space.dimensions] == ["60", "10", "100"]


def test_choices_and_switches() -> None:
    _, space = search_of(made("vm.numa_stat", "transparent_hugepage"))
    assert [one.choices for one in space.dimensions] == [("1", "0"), ("madvise", "always", "never")]
    assert space.dimensions[1].default == "madvise"


def test_a_given_value_is_checked_before_anything_runs() -> None:
    with pytest.raises(BadKnob, match="too large"):
        made("vm.swappiness=0..300")
    with pytest.raises(BadKnob, match="not one of the choices"):
        made("transparent_hugepage=sometimes,never")
    _, space = search_of(made("vm.swappiness=1,10"))
    assert space.dimensions[0].choices == ("60", "1", "10"), "the value in force is always one of them"


def test_unsafe_knobs_are_left_out_unless_they_are_named_one_by_one() -> None:
    study = made("vm", "kernel.randomize_va_space=0,2")
    names = search_of(study)[1].names
    assert "vm.dirty_ratio" not in names
    assert "kernel.randomize_va_space" in names
    assert "lose data" in reasons(study)["vm.dirty_ratio"]
    assert "vm.dirty_ratio" in search_of(made("vm", "vm.dirty_ratio"))[1].names
    left_out = reasons(made("kernel", "vm.swappiness"))
    assert "open the system to attacks" in left_out["kernel.randomize_va_space"]


def test_what_is_not_here_or_has_no_range_is_left_out_with_the_reason() -> None:
    why_not = reasons(made("vm"))
    assert why_not["vm.zone_reclaim_mode"].startswith("no largest value is known, and it is 0 now")
    assert why_not["vm.percpu_pagelist_fraction"].startswith("is gone: the last kernel with it was 5.13")
    with pytest.raises(KnobAbsent):
        made("vm.percpu_pagelist_fraction=1..9")


def test_in_guests_that_do_not_swap_what_is_about_swap_is_left_out_unless_it_is_named() -> None:
    machine = TunableMachine(lambda boot, written: 1000.0)
    study = a_search("vm", kind="kvm")
    with_all = with_space(study, machine, scripted_resources(), Observer())
    assert reasons(with_all)["vm.swappiness"] == "it cannot act: the guests have no swap"
    assert "vm.swappiness" in search_of(made("vm", "vm.swappiness"))[1].names


def test_what_the_kernel_does_not_take_is_left_out() -> None:
    study = made("vm.swappiness", "vm.numa_stat", read_only=frozenset({"/proc/sys/vm/numa_stat"}))
    assert search_of(study)[1].names == ("vm.swappiness",)
    assert "does not take it" in reasons(study)["vm.numa_stat"]


def test_coupled_knobs_and_orders_are_constraints() -> None:
    study = made("vm.dirty_ratio", "vm.dirty_bytes=0,1048576", "vm.dirty_background_ratio")
    _, space = search_of(study)
    assert OnlyOneOf(names=("vm.dirty_ratio", "vm.dirty_bytes")) in space.constraints
    order = Order(left="vm.dirty_background_ratio", relation="<", right="vm.dirty_ratio")
    assert order in space.constraints


def test_a_limit_that_is_set_in_another_unit_goes_back_through_that_one() -> None:
    files = {**FILES, "/proc/sys/vm/dirty_ratio": "35\n"}
    machine = TunableMachine(lambda boot, written: 1.0, files=files)
    # A kernel refuses the 0 that it shows there itself.
    machine.refuses = lambda step: step.path.endswith("/dirty_bytes") and step.value == "0"
    study = a_search("vm.dirty_bytes=1048576,8388608", "vm.dirty_background_ratio=5,10")
    _, space = search_of(with_space(study, machine, scripted_resources(), Observer()))
    assert {one.name: one.back for one in space.dimensions} == {
        "vm.dirty_bytes": ("vm.dirty_ratio", "35"),
        "vm.dirty_background_ratio": None,
    }


def test_nothing_to_search_is_an_error_that_says_why() -> None:
    with pytest.raises(SpaceEmpty) as raised:
        made("vm.zone_reclaim_mode")
    assert "no largest value" in raised.value.advice
    with pytest.raises(SpaceEmpty) as raised:
        made("vm.dirty_*", "vm.zone_reclaim_mode")
    assert raised.value.advice.startswith("vm.dirty_ratio and 5 more: some of its values lose data")


def test_a_knob_that_is_on_is_also_tried_switched_off() -> None:
    """1 is no amount that could be had sixteen times over: 0 was never tried."""
    files = dict.fromkeys(("sack", "autocorking", "slow_start_after_idle", "timestamps"), "1\n")
    there = FILES | {f"/proc/sys/net/ipv4/tcp_{name}": text for name, text in files.items()}
    there["/proc/sys/vm/stat_interval"] = "1\n"
    machine = TunableMachine(lambda boot, written: 1.0, files=there)
    names = [f"net.ipv4.tcp_{name}" for name in files]
    study = with_space(a_search(*names, "vm.stat_interval"), machine, scripted_resources(), Observer())
    dimensions = {one.name: one for one in search_of(study)[1].dimensions}
    assert {dimensions[name].choices for name in names[:3]} == {("1", "0")}
    assert dimensions[names[3]].choices == ("1", "0", "2")
    assert dimensions["vm.stat_interval"].range == Range(low=1, high=16, log=True), "seconds are an amount"


def test_boot_parameters_and_kernels_cost_more_and_come_last() -> None:
    machine = TunableMachine(lambda boot, written: 1.0)
    plain = a_search("kernel=debian:6.1", "boot:nohz=off", "boot:threadirqs", "vm.swappiness")
    _, space = search_of(with_space(plain, machine, scripted_resources(), Observer()))
    assert [(one.name, one.cost, one.default, one.choices) for one in space.dimensions[1:]] == [
        ("boot:nohz", Cost.BOOT, "", ("", "off")),
        ("boot:threadirqs", Cost.BOOT, "", ("", "threadirqs")),
        ("kernel", Cost.KERNEL, "debian:6.12", ("debian:6.12", "debian:6.1")),
    ]


def test_options_are_searched_of_a_kernel_that_the_study_builds() -> None:
    build = Build(source="debian:linux-source-6.1", options={"CONFIG_LOG_BUF_SHIFT": "17"})
    knobs = ("kconfig:CONFIG_SLAB=y", "kconfig:LOG_BUF_SHIFT=14,17", "kconfig:NR_CPUS=2..64")
    machine, fake = TunableMachine(lambda boot, written: 1.0), FakeBuilder()
    there = scripted_resources(builder=fake.builder)
    _, space = search_of(with_space(a_search(*knobs, builds={"mine": build}), machine, there, Observer()))
    assert [(one.name, one.cost, one.default, one.choices) for one in space.dimensions] == [
        ("kconfig:SLAB", Cost.BUILD, "n", ("n", "y")),
        ("kconfig:LOG_BUF_SHIFT", Cost.BUILD, "17", ("17", "14")),
        ("kconfig:NR_CPUS", Cost.BUILD, "n", ()),
    ]
    assert fake.built == []


def test_an_option_that_does_not_take_its_value_is_an_error_before_anything_is_built() -> None:
    build = Build(source="debian:linux-source-6.1")
    study = a_search(f"kconfig:{NO_OPTION}=y", builds={"mine": build})
    machine, fake = TunableMachine(lambda boot, written: 1.0), FakeBuilder()
    with pytest.raises(OptionNotTaken):
        with_space(study, machine, scripted_resources(builder=fake.builder), Observer())
    assert (fake.built, machine.ran) == ([], [])


def test_options_of_a_kernel_that_nobody_builds_are_refused() -> None:
    builds = {"mine": Build(source="debian:linux-source-6.1")}
    study = a_search("kconfig:SLAB=y", "kernel=debian:6.12", builds=builds)
    machine, fake = TunableMachine(lambda boot, written: 1.0), FakeBuilder()
    with pytest.raises(TuningError, match="is searched too, which the study does not build"):
        with_space(study, machine, scripted_resources(builder=fake.builder), Observer())


def test_an_option_that_is_so_already_is_left_out() -> None:
    build = Build(source="debian:linux-source-6.1", options={"CONFIG_SLAB": "y"})
    study = a_search("kconfig:SLAB=y", "boot:nohz=off", builds={"mine": build})
    machine, fake = TunableMachine(lambda boot, written: 1.0), FakeBuilder()
    searched = with_space(study, machine, scripted_resources(builder=fake.builder), Observer())
    assert search_of(searched)[1].names == ("boot:nohz",)
    assert "it is y already" in reasons(searched)["kconfig:SLAB"]


def test_what_needs_a_boot_is_refused_on_this_system() -> None:
    study, machine = a_search("boot:nohz=off", kind="host"), TunableMachine(lambda boot, written: 1.0)
    with pytest.raises(TuningError, match="needs a boot"):
        with_space(study, machine, scripted_resources(), Observer())
    with pytest.raises(TuningError, match="not one that the study builds"):
        made("kconfig:HZ=250,1000")
    with pytest.raises(TuningError, match="boot parameter"):
        made("nohz")


def test_the_same_knobs_on_the_same_system_are_the_same_search() -> None:
    assert digest(made("vm", "vm.dirty_ratio")) == digest(made("vm", "vm.dirty_ratio"))


def test_wide_ranges_are_logarithmic_where_they_can_be() -> None:
    assert range_of(1, 99).log is False
    assert range_of(1, 100).log is True
    assert range_of(0, 10_000).log is False


def test_what_a_knob_must_stay_beside_holds_also_where_only_one_of_both_is_searched() -> None:
    study = made("vm.dirty_ratio=5..60")
    _, space = search_of(study)
    (order,) = space.constraints
    assert str(order) == "vm.dirty_background_ratio (10 in force) < vm.dirty_ratio"
    assert not space.holds({"vm.dirty_ratio": "10"})
    assert not space.holds({"vm.dirty_ratio": "5"})
    assert space.holds({"vm.dirty_ratio": "11"})
    again = Study.model_validate_json(study.model_dump_json())
    assert search_of(again)[1] == space


def test_the_other_side_is_in_force_where_it_was_named_and_cannot_be_varied() -> None:
    study = made("vm.dirty_*", "vm.dirty_ratio=5..60", read_only=frozenset({BACKGROUND}))
    _, space = search_of(study)
    assert "vm.dirty_background_ratio" in reasons(study)
    assert [str(each) for each in space.constraints if isinstance(each, Order)] == [
        "vm.dirty_background_ratio (10 in force) < vm.dirty_ratio"
    ]


def test_a_search_never_runs_what_the_value_in_force_forbids() -> None:
    study = made("vm.dirty_ratio=5..60")
    encoding = Encoding(search_of(study)[1])
    rng = np.random.default_rng(1)
    drawn = [encoding.draw(rng)["vm.dirty_ratio"] for _ in range(200)]
    walked = [each["vm.dirty_ratio"] for each in encoding.neighbours({}, "vm.dirty_ratio")]
    assert min(map(int, drawn + walked)) > 10
