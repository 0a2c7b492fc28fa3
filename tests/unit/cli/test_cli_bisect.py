"""`ktrial bisect config` from the command line, and what is refused: kernels that nobody builds."""

import json
import math
from pathlib import Path

import pytest
from tests.support.bisecting import (
    FORK,
    OPTIONS,
    SOURCE,
    FakeSource,
    Here,
    all_on,
    causes_of,
    here_in,
    result_of,
)

from ktrial.errors import Interrupted
from ktrial.kernels.build.make import remember_build
from ktrial.kernels.errors import BuildFailed, KernelError, OptionNotTaken
from ktrial.model.kernel import MenuOption, Menus


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


def test_the_option_that_matters_is_found_among_64_within_the_bound(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1100 if "SLUB_DEBUG_ON" in on else 1000))
    said = here.run("bisect", "config", "guest", all_on("SLUB_DEBUG_ON"), *SOURCE, *FORK, "--json")
    result = result_of(said)
    assert causes_of(result) == [{"SLUB_DEBUG_ON"}]
    assert (result["found"], result["differing"]) == (True, 65)
    assert result["built"] == len(source.built) <= 2 * math.log2(65) + 6
    assert result["builds"] == len(source.built)


def test_a_pair_that_only_matters_together_is_told_with_what_each_does_alone(here: Here) -> None:
    here.source(FakeSource(lambda on: 1100 if {"LEAF_7", "LEAF_50"} <= on else 1000))
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "Cause 1 (only together):" in said.output
    assert said.output.count("alone it does 0.0 % of it") == 2
    assert said.output.splitlines()[-1] == "LEAF_50 n → y with LEAF_7 n → y explain the difference."


def test_two_options_that_each_carry_a_part_are_told_with_their_shares(here: Here) -> None:
    here.source(FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on)))
    result = result_of(here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK, "--json"))
    assert sorted(map(sorted, causes_of(result))) == [["LEAF_50"], ["LEAF_7"]]
    causes = result["causes"]
    assert isinstance(causes, list)
    shares = [next(iter(cause["shares"].values())) for cause in causes]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(math.log(1.06) / math.log(1.06 * 1.04))


def test_what_an_option_needs_is_told_with_it(here: Here) -> None:
    menus = Menus(
        options={
            **{f"CONFIG_{name}": MenuOption(kind="bool", prompt=name) for name in OPTIONS},
            "CONFIG_LEAF_9": MenuOption(kind="bool", prompt="Nine", menu=("Drivers",), depends="LEAF_40"),
        }
    )

    def refuse(on: set[str]) -> KernelError | None:
        facts = {
            "name": "x",
            "directory": "x",
            "option": "LEAF_9",
            "wanted": "y",
            "problem": "n",
            "advice": "",
        }
        return OptionNotTaken(**facts) if "LEAF_9" in on and "LEAF_40" not in on else None

    here.source(FakeSource(lambda on: 1100 if "LEAF_9" in on else 1000, menus, refuse))
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "  LEAF_9 n → y (Drivers › Nine)" in said.output
    assert "  goes with what it needs: LEAF_40 n → y (LEAF_40); that alone does 0.0 % of it" in said.output
    assert "unresolved" not in said.output


def test_what_was_measured_is_not_measured_again(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000))
    arguments = ("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    first = here.run(*arguments)
    programs = len(here.machine.programs)
    again = here.run(*arguments)
    assert len(here.machine.programs) == programs
    assert again.output.splitlines()[-1] == first.output.splitlines()[-1]
    assert "its trials are in the store" in again.messages
    assert len(source.built) == len(set(source.built))


def test_the_study_that_confirms_can_be_shown(here: Here) -> None:
    here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000))
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert "ktrial show bisect-config" in said.output
    shown = here.run("show", "bisect-config")
    assert shown.status == 0
    assert "+10.00" in shown.output


def test_a_dry_run_measures_nothing_and_says_what_it_would_cost(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1000))
    arguments = ("bisect", "config", "guest", all_on(), *SOURCE, *FORK, "--dry-run")
    said = here.run(*arguments)
    assert said.status == 0
    assert "64 options differ" in said.output
    assert "at most 10 kernels built where one is the cause" in said.output
    assert not source.built
    plan = json.loads(here.run(*arguments, "--json").output)
    assert (plan["groups"], plan["candidates_for_one"], plan["trials_each"]) == (64, 10, 3)


def test_the_plan_says_how_long_past_builds_took(here: Here, tmp_path: Path) -> None:
    here.source(FakeSource(lambda on: 1000))
    arguments = ("bisect", "config", "guest", all_on(), *SOURCE, *FORK, "--dry-run")
    assert json.loads(here.run(*arguments, "--json").output)["build_seconds"] is None
    for seconds in (61.0, 63.0):
        remember_build(seconds, from_nothing=False)
    assert json.loads(here.run(*arguments, "--json").output)["build_seconds"] == 62.0
    assert "a build takes about 1 min 2 s, by past ones" in here.run(*arguments).output


def test_where_nothing_differs_measurably_that_is_the_answer(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1000))
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "There is nothing to explain: fork instructions differ by less than 1 %." in said.output
    assert len(source.built) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("config", "guest", "guest", *SOURCE, *FORK), "do not differ in any option"),
        (("config", "guest", "guest+LEAF_1", *SOURCE, *FORK), "there is no '='"),
        (("config", "build:no-such", "guest", *FORK), "There is no kernel built by ktrial"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE), "--workload: which workload, or which command?"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK, "--margin", "2"), "--margin"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK, "--metric", "joy"), "measures 'joy'"),
        (("config", "guest", "guest+X=y", *SOURCE, *FORK, "--machine", "host"), "boots no other kernel"),
        (("config", "guest", "guest+X=y", *SOURCE, *FORK, "--machine", "moon"), "moon"),
        (("knobs", "--kernel", "debian:6.1", *FORK), "which knobs?"),
        (("knobs", "--knob", "vm.swappiness=60..1", *FORK), "which kernel?"),
        (("knobs", "--kernel", "debian:6.1", "--knob", "vm.swappiness=60", *FORK), "no two values"),
        (("knobs", "--kernel", "debian:6.1", "--knob", "a.b=1..1", *FORK), "do not differ in any knob"),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "vm.swapiness=1..2", "--dry-run", *FORK),
            "There is no knob vm.swapiness (did you mean vm.swappiness",
        ),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "vm.swapiness=1..2", *FORK),
            "give its path: /proc/sys/vm/swapiness",
        ),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "swapiness=1..2", *FORK),
            "There is no knob swapiness",
        ),
        (("knobs", "--kernel", "debian:6.1", "--knob", "/etc/motd=1..2", *FORK), "below /proc/sys or /sys"),
        (
            ("patches", "--patches", "series", "--make", "KCFLAG=-O3", *SOURCE, *FORK),
            "The make variable KCFLAG=-O3 cannot be set",
        ),
        (("knobs", "--kernel", "debian:6.1", "--from", "a", *FORK), "give both, or none"),
        (("knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK), "The file a cannot be used"),
        (("patches", "--patches", "nowhere", *SOURCE, *FORK), "The series nowhere cannot be used"),
        (("versions", "6.1", *FORK), "'6.1' is no range of releases"),
    ],
)
def test_bad_input_is_one_message_and_no_trial(here: Here, arguments: tuple[str, ...], message: str) -> None:
    here.source(FakeSource(lambda on: 1000))
    said = here.run("bisect", *arguments)
    assert said.status == 2
    assert message in said.messages


def test_an_end_that_does_not_build_ends_the_search(here: Here) -> None:
    def refuse(on: set[str]) -> KernelError | None:
        failed = BuildFailed(name="x", directory="/x", log="/x.log", problem="a.c:1: error: oh")
        return failed if "LEAF_1" in on else None

    here.source(FakeSource(lambda on: 1000, refuse=refuse))
    said = here.run("bisect", "config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK)
    assert said.status == 1
    assert "a.c:1: error: oh" in said.messages


@pytest.mark.parametrize(
    "ending",
    [KeyboardInterrupt(), Interrupted(what="0 of 1 trials are stored", hint="")],
    ids=["while it is built", "while it is measured"],
)
def test_an_interrupted_candidate_says_how_to_go_on(here: Here, ending: BaseException) -> None:
    def refuse(on: set[str]) -> KernelError | None:
        if "LEAF_1" in on and "LEAF_63" not in on:
            raise ending
        return None

    here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000, refuse=refuse))
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert said.status == 130
    assert "run the same command again" in said.messages
    assert "the candidates that were built and measured are kept" in said.messages
    assert "0 of 1" not in said.messages, "that is of one candidate"


def test_an_interrupted_search_of_options_tells_the_causes_that_it_has_found(here: Here) -> None:
    built: list[int] = []

    def refuse(_on: set[str]) -> KernelError | None:
        built.append(1)
        if len(built) > 16:
            raise KeyboardInterrupt
        return None

    here.source(
        FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on), refuse=refuse)
    )
    said = here.run("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
    assert said.status == 130
    assert "Cause 1" in said.output
    assert "it was interrupted" in " ".join(said.output.split())
