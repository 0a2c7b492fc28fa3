"""`ktrial baseline` from the command line, and checks against what it has saved."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.command_line import FORK, GOOD, SLOW, SLOW_FORK, Here, here_in

from ktrial.store.location import default_location


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE studies SET spec = replace(spec, 'fork', 'fori') WHERE name = 'baseline:second'",
        "UPDATE samples SET value = value + 1 WHERE trial_id = (SELECT max(id) FROM trials)",
    ],
    ids=["study", "trial"],
)
def test_baselines_beside_a_damaged_one_are_listed_and_it_is_told(damage: str, here: Here) -> None:
    for name in ("first", "second"):
        here.run("baseline", "save", name, "--kernel", GOOD, *FORK)
    with closing(sqlite3.connect(default_location())) as raw:
        assert raw.execute(damage).rowcount > 0
        raw.commit()
    said = here.run("baseline", "list", "--json")
    assert said.status == 1
    assert [one["name"] for one in json.loads(said.output)] == ["first"]
    assert "ktrial: warning: baseline second, is not what was stored" in said.messages
    assert here.run("baseline", "show", "first").status == 0
    shown = here.run("baseline", "show", "second")
    assert shown.status == 1
    assert "ktrial store verify" in shown.messages


def test_what_ktrial_measured_for_itself_is_listed_only_when_asked_for(here: Here) -> None:
    here.run("baseline", "save", "v6.1", "--kernel", GOOD, *FORK)
    here.run(*SLOW_FORK)
    said = here.run("list")
    assert said.output == ""
    assert said.messages.endswith("for check, watch, baseline or bisect: ktrial list --all\n")
    assert said.messages.startswith("3 more")
    assert here.run("list", "--json").output == "[]\n"
    names = [one["study"] for one in json.loads(here.run("list", "--all", "--json").output)]
    assert sorted(names) == ["baseline:v6.1", "check", "check"]
    assert here.run("list", "--all").messages == ""


def test_a_baseline_is_saved_shown_listed_and_removed(here: Here) -> None:
    saved = here.run("baseline", "save", "v6.1", "--kernel", GOOD, "--workload", "fork,pipe")
    assert saved.status == 0
    shown = here.run("baseline", "show", "v6.1")
    assert shown.output == saved.output
    assert "7.2.22" in shown.output, "all that numbers depend on is shown"
    (data,) = json.loads(here.run("baseline", "list", "--json").output)
    assert (data["name"], data["numbers"][0]["values"]) == ("v6.1", [1000.0] * 3)
    assert "v6.1" in here.run("baseline", "list").output
    assert here.run("baseline", "remove", "v6.1").status == 0
    assert here.run("baseline", "show", "v6.1").status == 2
    assert "no baselines yet" in here.run("baseline", "list").messages


def test_a_check_against_a_saved_baseline_measures_as_the_baseline_was_measured(here: Here) -> None:
    here.run("baseline", "save", "good", "--kernel", GOOD, "--workload", "fork,pipe", "--memory", "1G")
    whole = json.loads(here.run("check", "--kernel", SLOW, "--against", "good", "--json").output)
    assert [row["workload"] for row in whole["rows"]] == ["fork", "pipe"]
    part = json.loads(here.run("check", "--kernel", SLOW, "--against", "good", *FORK, "--json").output)
    assert [row["workload"] for row in part["rows"]] == ["fork"]
    assert here.run("check", "--kernel", SLOW, "--against", "good", "--memory", "1G").status == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--workload", "syscall"), "was not measured with workload syscall; it has fork"),
        (("--memory", "1G"), "was not measured with --memory 1024; it has 512"),
        (("--boot", "quiet"), "was not measured with --boot quiet; it has none"),
        (("--perturbations", "5"), "was not measured with --perturbations 5; it has 3"),
    ],
)
def test_a_check_in_another_way_than_the_baseline_is_refused(
    options: tuple[str, ...], problem: str, here: Here
) -> None:
    here.run("baseline", "save", "good", "--kernel", GOOD, *FORK)
    said = here.run("check", "--kernel", SLOW, "--against", "good", *options)
    assert (said.status, problem in said.messages) == (2, True)
