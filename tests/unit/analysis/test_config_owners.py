"""Options that plausibly own the functions of a difference."""

import pytest
from tests.support.profiles import a_profile

from ktrial.analysis.attribution import conditions_diff, subsystems
from ktrial.analysis.attribution.conditions_diff import ALL_CODE, differing_options, heavy_subsystems
from ktrial.analysis.attribution.decomposition import explain
from ktrial.model.attribution import Explanation


def explained(old: dict[str, int], new: dict[str, int]) -> Explanation:
    before, after = (
        a_profile({(name, ""): count for name, count in counts.items()}) for counts in (old, new)
    )
    return explain(before, after)


SLAB_AND_LOCKS = explained({"kmem_cache_alloc": 100, "mutex_lock": 100, "zap_pte": 9}, {"mutex_lock": 400})


def owners(option: str, explanation: Explanation = SLAB_AND_LOCKS) -> tuple[str, ...]:
    (differing_option,) = differing_options(explanation, {}, {option: "y"})
    return differing_option.owners


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("CONFIG_SLUB_CPU_PARTIAL", ("slab",)),
        ("CONFIG_MUTEX_SPIN_ON_OWNER", ("locks",)),
        ("CONFIG_DEBUG_LOCK_ALLOC", ("locks",)),
        ("CONFIG_TCP_CONG_BBR", ()),
        ("CONFIG_CC_VERSION_TEXT", (ALL_CODE,)),
        ("CONFIG_PREEMPT_LAZY", (ALL_CODE,)),
        ("CONFIG_INIT_ON_ALLOC_DEFAULT_ON", ("slab",)),
        ("CONFIG_ARCH_SUPPORTS_RT", ()),
        ("CONFIG_HAVE_MOVE_PUD", ()),
        ("CONFIG_USB", ()),
    ],
)
def test_an_option_is_owned_by_the_subsystems_that_weigh(option: str, expected: tuple[str, ...]) -> None:
    assert owners(option) == expected


def test_options_of_the_heaviest_subsystem_come_first_and_unowned_ones_last() -> None:
    names = ("CONFIG_USB", "CONFIG_SLUB_DEBUG", "CONFIG_LOCKDEP", "CONFIG_SMP", "CONFIG_ACPI")
    options = differing_options(SLAB_AND_LOCKS, dict.fromkeys(names, "y"), {})
    assert [option.option for option in options] == [
        "CONFIG_LOCKDEP",
        "CONFIG_SLUB_DEBUG",
        "CONFIG_SMP",
        "CONFIG_ACPI",
        "CONFIG_USB",
    ]
    assert {option.after for option in options} == {None}


def test_options_that_are_the_same_are_no_difference() -> None:
    assert differing_options(SLAB_AND_LOCKS, {"CONFIG_SMP": "y"}, {"CONFIG_SMP": "y"}) == ()


def test_subsystems_weigh_by_their_differences_without_the_signs() -> None:
    balanced = explained({"mutex_lock": 1000, "kfree": 50}, {"down_read": 1000, "kfree": 60, "zap": 1})
    assert heavy_subsystems(balanced) == ["locks"]


def test_every_owner_is_a_subsystem() -> None:
    subsystem_names = {*subsystems.PREFIXES, *subsystems.BY_FILE, *subsystems.BY_DIRECTORY, ALL_CODE}
    assert set(conditions_diff.OWNED) <= subsystem_names


def test_what_follows_stands_behind_the_one_option_that_was_decided() -> None:
    after = {"CONFIG_SLAB": "y", "CONFIG_HZ": "250"}
    before = {"CONFIG_SLUB": "y", "CONFIG_SLUB_CPU_PARTIAL": "y", "CONFIG_STACKDEPOT": "y"}
    follows = dict.fromkeys(before, "CONFIG_SLAB")
    options = differing_options(SLAB_AND_LOCKS, before, after, follows)
    folded = {option.option: option for option in options}
    assert set(folded) == {"CONFIG_SLAB", "CONFIG_HZ"}
    assert folded["CONFIG_SLAB"].followers == tuple(sorted(before))
    assert folded["CONFIG_SLAB"].before is None
    assert folded["CONFIG_SLAB"].owners == ("slab",), "by the one that follows from it"
