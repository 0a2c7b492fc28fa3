"""`ktrial bisect versions` from the command line: releases that nobody fetches."""

import math
from pathlib import Path

import pytest
from tests.support.bisecting import FORK, Here, here_in

from ktrial.kernels.providers.debian import Available
from ktrial.model.machine import Boot


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    known = tuple(
        Available(f"debian:6.{at}.0-cloud-amd64", f"6.{at}.0-cloud-amd64", f"6.{at}.0-1", "sid")
        for at in range(20)
    )
    monkeypatch.setattr("ktrial.kernels.providers.debian.releases", lambda _flavour, _progress: known)


@pytest.mark.usefixtures("releases")
def test_releases_end_with_two_neighbours_and_their_packages(
    here: Here,
) -> None:
    def number(boot: Boot, _settings: dict[str, str]) -> float:
        return 1000 if int(boot.kernel.name.split(".")[1]) < 13 else 1080

    here.measured_on(number)
    said = here.run("bisect", "versions", "6.0..6.19", *FORK)
    assert said.status == 0
    assert "follows debian:6.12.0-cloud-amd64" in said.output
    assert said.output.splitlines()[-1] == (
        "The numbers change between debian:6.12.0-cloud-amd64 and debian:6.13.0-cloud-amd64."
    )
    assert len({boot.kernel.name for boot, _ in here.machine.programs}) <= math.ceil(math.log2(20)) + 2


def _minor(boot: Boot) -> int:
    return int(boot.kernel.name.split(".")[1])


@pytest.mark.usefixtures("releases")
def test_the_plan_for_releases_says_what_more_than_one_step_costs(here: Here) -> None:
    said = here.run("bisect", "versions", "6.0..6.19", *FORK, "--dry-run")
    assert "at most 7 candidates measured where the numbers change in one place" in " ".join(
        said.output.split()
    )
    assert "and about 5 more for each further place; all 20 at the very most" in " ".join(said.output.split())
    here.measured_on(lambda boot, _settings: 1000 * 1.1 ** ((_minor(boot) >= 4) + (_minor(boot) >= 15)))
    assert here.run("bisect", "versions", "6.0..6.19", *FORK).status == 0
    assert len({boot.kernel.name for boot, _ in here.machine.programs}) <= 7 + 5


@pytest.mark.usefixtures("releases")
def test_an_interrupted_search_of_releases_tells_what_it_knows(here: Here) -> None:
    asked: set[int] = set()

    def number(boot: Boot, _settings: dict[str, str]) -> float:
        asked.add(_minor(boot))
        if len(asked) == 9:
            raise KeyboardInterrupt
        return 1000 * 1.1 ** ((_minor(boot) >= 4) + (_minor(boot) >= 15))

    here.measured_on(number)
    said = here.run("bisect", "versions", "6.0..6.19", *FORK)
    assert said.status == 130
    told = " ".join(said.output.split())
    assert "between debian:6.3.0-cloud-amd64 and debian:6.4.0-cloud-amd64" in told or (
        "between debian:6.14.0-cloud-amd64 and debian:6.15.0-cloud-amd64" in told
    )
    assert "it changes somewhere between" in told
    assert "+10.0" in told
    assert "it was interrupted" in told
