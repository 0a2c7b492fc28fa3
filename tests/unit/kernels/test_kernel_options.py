"""Which options differ, and which of them follow from others: told by a small Kconfig, and without one."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.support.kconfig_trees import SLAB, SLUB, a_kconfig_tree, known, some_rules
from tests.support.runs_of_tests import examples

from ktrial.kernels.config import read
from ktrial.kernels.errors import SourceUnusable
from ktrial.kernels.kernel_difference import ConfigSide, Rules, changed_options, is_of_tools, rules_in
from ktrial.model.kernel import OptionCause, OptionChange


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    return some_rules(tmp_path_factory.mktemp("linux"))


def found(before: ConfigSide, after: ConfigSide, *, same_source: bool = True) -> dict[str, OptionChange]:
    changes = changed_options(before, after, same_source=same_source)
    return {change.option.removeprefix("CONFIG_"): change for change in changes}


def causes(changes: dict[str, OptionChange]) -> dict[str, str]:
    """Option → what it follows from, or its cause."""
    return {
        name: change.follows.removeprefix("CONFIG_") or change.cause.value for name, change in changes.items()
    }


def test_of_slab_and_slub_only_the_choice_is_decided_and_all_else_follows(rules: Rules) -> None:
    changes = found(known(SLUB, rules), known(SLAB, rules))
    assert causes(changes) == {
        "SLAB": "own",
        "SLUB": "SLAB",
        "SLUB_CPU_PARTIAL": "SLAB",
        "SLUB_DEBUG": "SLAB",
        "STACKDEPOT": "SLAB",
    }
    assert changes["SLAB"].choice == changes["SLUB"].choice == "Choose SLAB allocator"
    assert changes["SLAB"].menu == ("Memory Management options", "SLAB allocator options")
    assert changes["SLUB_CPU_PARTIAL"].prompt == "SLUB per cpu partial cache"


def test_an_option_that_could_have_stayed_is_somebodys_decision(rules: Rules) -> None:
    changes = found(known(SLUB, rules), known(SLUB.replace("CONFIG_SLUB_CPU_PARTIAL=y\n", ""), rules))
    assert causes(changes) == {"SLUB_CPU_PARTIAL": "own"}


def test_what_is_selected_follows_from_the_one_that_selects_it(rules: Rules) -> None:
    before, after = "CONFIG_SWAP=y\n", "CONFIG_SWAP=y\nCONFIG_ZSWAP=m\nCONFIG_ZPOOL=m\n"
    assert causes(found(known(before, rules), known(after, rules))) == {"ZSWAP": "own", "ZPOOL": "ZSWAP"}


def test_a_chain_is_folded_under_its_first_link(rules: Rules) -> None:
    after = "CONFIG_SWAP=y\nCONFIG_ZSWAP=y\nCONFIG_ZPOOL=y\n"
    assert causes(found(known("", rules), known(after, rules))) == {
        "SWAP": "own",
        "ZSWAP": "SWAP",
        "ZPOOL": "SWAP",
    }


@pytest.mark.parametrize(
    ("before", "after", "by_hand"),
    [
        # DEBUG_SLAB needs SLAB, and is off by default: that it is on is a decision of its own.
        (SLUB, SLAB.replace("# CONFIG_DEBUG_SLAB is not set", "CONFIG_DEBUG_SLAB=y"), {"DEBUG_SLAB"}),
        (SLAB.replace("# CONFIG_DEBUG_SLAB is not set", "CONFIG_DEBUG_SLAB=y"), SLUB, {"DEBUG_SLAB"}),
        # SLUB_CPU_PARTIAL is on by default, SLUB_DEBUG is not even shown, STACKDEPOT is selected.
        (SLUB, SLAB, set()),
        ("", "CONFIG_SWAP=y\nCONFIG_ZSWAP=y\nCONFIG_ZPOOL=y\n", {"ZSWAP"}),
        ("CONFIG_SWAP=y\n", "CONFIG_SWAP=y\nCONFIG_ZSWAP=m\nCONFIG_ZPOOL=m\n", set()),
        ("", 'CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE="quiet"\n', {"CMDLINE"}),
        ("", 'CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE=""\n', set()),
    ],
)
def test_a_child_that_was_set_against_its_own_default_is_marked(
    before: str, after: str, by_hand: set[str], rules: Rules
) -> None:
    changes = found(known(before, rules), known(after, rules))
    assert {name for name, change in changes.items() if change.against_default} == by_hand
    assert all(changes[name].cause is OptionCause.OPTION for name in by_hand)


def test_a_default_that_depends_on_another_option_follows_from_it(rules: Rules) -> None:
    first = "CONFIG_SMP=y\nCONFIG_NR_CPUS=64\nCONFIG_NR_CPUS_DEFAULT=64\nCONFIG_MODEL=large\n"
    second = "CONFIG_NR_CPUS=1\nCONFIG_NR_CPUS_DEFAULT=1\nCONFIG_MODEL=small\n"
    assert causes(found(known(first, rules), known(second, rules))) == {
        "SMP": "own",
        "NR_CPUS": "SMP",
        "NR_CPUS_DEFAULT": "SMP",
        "MODEL": "SMP",
    }


def test_a_number_that_somebody_has_chosen_is_a_decision(rules: Rules) -> None:
    first = "CONFIG_SMP=y\nCONFIG_NR_CPUS=64\nCONFIG_MODEL=large\n"
    second = first.replace("64", "4").replace("large", "small")
    assert causes(found(known(first, rules), known(second, rules))) == {"NR_CPUS": "own", "MODEL": "NR_CPUS"}


def test_what_the_compiler_can_do_is_nobodys_decision(rules: Rules) -> None:
    after = 'CONFIG_CC_VERSION_TEXT="gcc 13"\nCONFIG_CC_HAS_FANCY=y\nCONFIG_GCC_VERSION=130000\n'
    changes = found(known('CONFIG_CC_VERSION_TEXT="gcc 12"\n', rules), known(after, rules))
    assert {change.cause for change in changes.values()} == {OptionCause.COMPILER}


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("CC_VERSION_TEXT", True),
        ("GCC_VERSION", True),
        ("PAHOLE_VERSION", True),
        ("AS_VERSION", True),
        ("LD_IS_BFD", True),
        ("RUSTC_VERSION", True),
        ("GCC10_NO_ARRAY_BOUNDS", True),
        ("CC_HAS_ASM_INLINE", True),
        ("CC_OPTIMIZE_FOR_SIZE", False),
        ("GCC_PLUGINS", False),
        ("LD_DEAD_CODE_DATA_ELIMINATION", False),
        ("ASYNC_CORE", False),
        ("SMP", False),
    ],
)
def test_options_of_the_tools_are_known_by_their_names(name: str, tools: bool) -> None:
    assert is_of_tools(f"CONFIG_{name}") is tools


def test_an_option_that_one_of_two_sources_lacks_comes_with_the_source(rules: Rules, tmp_path: Path) -> None:
    extra = (
        'config LRU_GEN\n\tbool "Multi-Gen LRU"\n\nconfig LRU_STATS\n\tbool "Stats"\n\tdepends on LRU_GEN\n'
    )
    newer = some_rules(tmp_path, extra)
    after = known("CONFIG_SWAP=y\nCONFIG_LRU_GEN=y\nCONFIG_LRU_STATS=y\n", newer)
    changes = found(known("", rules), after, same_source=False)
    assert causes(changes) == {"SWAP": "own", "LRU_GEN": "source", "LRU_STATS": "source"}


def test_without_a_source_menus_come_from_the_configuration_itself() -> None:
    changes = found(known(SLUB), known(SLAB))
    assert set(causes(changes).values()) == {"own"}, "nothing tells what follows from what"
    assert changes["SLUB"].menu == ("Memory Management options", "SLAB allocator options")
    assert changes["STACKDEPOT"].menu == ("Memory Management options",)


def test_without_a_source_what_one_version_does_not_offer_is_told_apart() -> None:
    first, second = "# CONFIG_A is not set\nCONFIG_B=y\n", "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_NEW=y\n"
    assert causes(found(known(first), known(second), same_source=False)) == {
        "A": "own",
        "B": "own",
        "NEW": "source",
    }


def test_comments_of_a_configuration_are_no_menus() -> None:
    text = "#\n# Menu\n#\nCONFIG_A=y\n\n#\n# only a comment\n#\nCONFIG_B=y\n# end of Menu\nCONFIG_C=y\n"
    assert read(text).menus == {"CONFIG_A": ("Menu",), "CONFIG_B": ("Menu",), "CONFIG_C": ()}


def test_before_linux_5_3_a_header_is_all_that_there_is() -> None:
    text = "#\n# General setup\n#\nCONFIG_A=y\n\n#\n# Timers\n#\nCONFIG_B=y\n"
    assert read(text).menus == {"CONFIG_A": ("General setup",), "CONFIG_B": ("Timers",)}


@pytest.mark.parametrize(
    "text", ["", "\0\0\0", "CONFIG_=y\n", "CONFIG_A\n=y\n# CONFIG_B is not", "# end of nothing\n" * 3]
)
def test_a_malformed_configuration_is_no_trouble(text: str, rules: Rules) -> None:
    assert changed_options(known(text, rules), known(text, rules), same_source=True) == ()
    assert all(
        changed_option.before is None
        for changed_option in changed_options(known(text), known(SLUB), same_source=True)
    )


@pytest.mark.nightly
def test_a_huge_configuration_takes_its_time_once() -> None:
    first = "".join(f"CONFIG_OPTION_{number}=y\n" for number in range(50_000))
    started = time.process_time()
    changes = changed_options(known(first), known(first.replace("=y", "=m")), same_source=True)
    assert len(changes) == 50_000
    assert time.process_time() - started < 60, "not quadratic"


@pytest.mark.parametrize("broken", ["config\n", 'source "not/there"\n', 'menu "never closed"\n'])
def test_a_kconfig_that_cannot_be_read_is_said_so(broken: str, tmp_path: Path) -> None:
    a_kconfig_tree(tmp_path, broken)
    with pytest.raises(SourceUnusable, match="Kconfig"):
        rules_in(tmp_path)


def test_nothing_that_kconfig_asks_the_shell_is_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    tree = a_kconfig_tree(tmp_path / "linux", f"config ASKED\n\tdef_bool $(shell,touch {proof})\n")
    rules_in(tree)
    assert not proof.exists()


_OPTIONS = sorted(
    set(re.findall(r"CONFIG_\w+", SLUB + SLAB)) | {"CONFIG_SWAP", "CONFIG_ZSWAP", "CONFIG_ELSE"}
)
_CONFIGS = some.dictionaries(
    some.sampled_from(_OPTIONS), some.sampled_from(["y", "m", "64", "1", "text", ""])
)


def written(config: dict[str, str]) -> str:
    return "".join(f'{name}="{value}"\n' for name, value in config.items())


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=_CONFIGS, second=_CONFIGS, message=some.booleans(), same=some.booleans())
def test_the_difference_mirrored_is_the_difference_the_other_way(
    rules: Rules, first: dict[str, str], second: dict[str, str], message: bool, same: bool
) -> None:
    before, after = (known(written(package), rules if message else None) for package in (first, second))
    remote = changed_options(before, after, same_source=same)
    assert tuple(package.mirrored for package in remote) == changed_options(after, before, same_source=same)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=_CONFIGS, second=_CONFIGS, message=some.booleans())
def test_the_difference_applied_to_the_first_gives_the_second(
    rules: Rules, first: dict[str, str], second: dict[str, str], message: bool
) -> None:
    before, after = (known(written(package), rules if message else None) for package in (first, second))
    config: dict[str, str] = dict(before.config)
    for package in changed_options(before, after, same_source=True):
        assert config.get(package.option) == package.before
        config.pop(package.option, None)
        if package.after is not None:
            config[package.option] = package.after
    assert config == after.config


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=_CONFIGS, second=_CONFIGS)
def test_what_follows_follows_from_something_that_was_decided(
    rules: Rules, first: dict[str, str], second: dict[str, str]
) -> None:
    changes = changed_options(known(written(first), rules), known(written(second), rules), same_source=True)
    own_value = {change.option for change in changes if change.cause is OptionCause.OWN}
    assert {change.follows for change in changes if change.cause is OptionCause.OPTION} <= own_value
