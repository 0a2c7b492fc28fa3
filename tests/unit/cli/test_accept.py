"""`ktrial accept` and the regressions of `ktrial history`: what a check found, and what may stay."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import FORK, GOOD, SLOW, SLOW_FORK, Here, here_in

from ktrial.store.location import default_location
from ktrial.store.store import open_store


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


def checked(cli: Here) -> str:
    """The id of the regression that a check finds."""
    (row,) = json.loads(cli.run(*SLOW_FORK, "--json").output)["rows"]
    return str(row["regression"]["id"])


def test_a_check_names_the_regression_and_fails_no_more_once_it_is_accepted(cli: Here) -> None:
    first = cli.run(*SLOW_FORK)
    number = checked(cli)
    assert (first.status, f"next: ktrial history {number}" in first.output) == (1, True)
    assert "Beyond the limit: fork +10.00 % (new)" in first.output
    accepted = cli.run("accept", number, "--because", "safety is worth it", "--by", "ann")
    assert accepted.status == 0
    assert accepted.output.splitlines()[-1] == "fork +10 % (+10 … +10): accepted by ann: safety is worth it."
    again = cli.run(*SLOW_FORK)
    assert (again.status, "Within what was accepted: fork +10.00 %" in again.output) == (0, True)
    assert f"was accepted by ann ({number}: safety is worth it)" in again.output
    data = json.loads(cli.run(*SLOW_FORK, "--json").output)
    assert (data["decision"], data["rows"][0]["decision"]) == ("accepted", "accepted")
    assert cli.run("accept", number, "--withdraw").status == 0
    assert cli.run(*SLOW_FORK).status == 1


def test_more_than_was_accepted_fails(cli: Here) -> None:
    cli.run("accept", checked(cli), "--because", "ok")
    cli.machine(lambda boot, run: _slower(boot.kernel.name))
    with open_store(default_location()) as store:
        for study in store.studies():
            if SLOW in study.study.question:
                numbers = {trial.planned.key for trial in store.trials(study.id)}
                kept = store.regressions()
                store.remove_trials_of(study.id, numbers)
                assert store.regressions() == kept
    more = cli.run(*SLOW_FORK)
    assert (more.status, ": this is more" in more.output) == (1, True)


def _slower(name: str):  # type: ignore[no-untyped-def]
    from ktrial.target import StepResult

    return StepResult(step=0, do="run", exit=0, stdout="1300" if name.startswith(SLOW) else "1000")


def test_history_lists_regressions_and_shows_each(cli: Here) -> None:
    number = checked(cli)
    every = cli.run("history")
    assert every.status == 0
    assert every.output.splitlines()[-1].startswith("1 regression is open: fork +10.00 % in")
    shown = cli.run("history", number[:6])
    assert (shown.status, f"Regression {number}" in shown.output) == (0, True)
    data = json.loads(cli.run("history", "--json").output)
    (regression,) = data["regressions"]
    assert (regression["id"], regression["state"], regression["found_by"]) == (number, "new", "check")
    assert regression["line"].startswith(f"ktrial {number}: fork +10 % (+10 … +10) in ")


def test_a_kernel_that_is_within_again_has_fixed_it(cli: Here) -> None:
    number = checked(cli)
    cli.builds("fast")
    assert cli.run("check", "--kernel", "debian:6.99", "--against", GOOD, *FORK).status == 0
    data = json.loads(cli.run("history", number, "--json").output)
    assert (data["state"], len(data["sightings"])) == ("fixed", 2)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("accept", "ffffffff", "--because", "x"), "There is no regression ffffffff", "ktrial history lists"),
        (("accept", "{id}"), "The reason is missing", "--because 'REASON'"),
        (("accept", "{id}", "--because", "  "), "The reason is missing", "--because 'REASON'"),
        (("accept", "{id}", "--withdraw"), "was not accepted", "ktrial history {id}"),
        (("accept", "{id}", "--withdraw", "--because", "x"), "--withdraw", "no --because"),
        (("history", "0123abcd"), "There is no regression 0123abcd", "ktrial history lists"),
    ],
)
def test_mistakes_say_what_is_allowed(arguments: tuple[str, ...], message: str, hint: str, cli: Here) -> None:
    number = checked(cli)
    result = cli.run(*(argument.replace("{id}", number) for argument in arguments))
    assert result.status != 0
    assert message in result.messages
    assert hint.replace("{id}", number) in result.messages
    with open_store(default_location()) as store:
        assert all(regression.acceptance is None for _, regression in store.regressions())
