"""`ktrial bisect knobs` from the command line: a machine that answers as planted."""

import math
import random
from pathlib import Path

import pytest
from tests.support.bisecting import FORK, Here, causes_of, here_in, result_of

from ktrial.model.machine import Boot
from ktrial.model.workload import Mode


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


def test_a_knob_that_is_named_by_its_path_is_for_the_kernel_to_judge(here: Here) -> None:
    knob = ("--knob", "/proc/sys/vm/swapiness=1..2")
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", *knob, "--dry-run", *FORK)
    assert said.status == 0
    assert "1 knob differs" in said.output


def test_of_ten_knobs_two_that_matter_together_are_found(here: Here) -> None:
    def number(_boot: Boot, settings: dict[str, str]) -> float:
        both = settings["/proc/sys/vm/swappiness"] == "1" and settings["/proc/sys/vm/dirty_ratio"] == "5"
        return 1200 if both else 1000

    here.measured_on(number)
    knobs = [f"/proc/sys/net/core/k{at}=1..2" for at in range(8)] + [
        "vm.swappiness=60..1",
        "vm.dirty_ratio=20..5",
    ]
    arguments = [part for knob in knobs for part in ("--knob", knob)]
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", *arguments, *FORK)
    assert said.status == 0
    assert said.output.splitlines()[-1] == (
        "vm.swappiness 60 → 1 with vm.dirty_ratio 20 → 5 explain the difference."
    )


def test_knobs_from_two_files(here: Here, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# before\nvm.swappiness = 60\nvm/dirty_ratio = 20\nkernel.same=1\n")
    (tmp_path / "b").write_text("vm.swappiness=1\n; after\nvm.dirty_ratio=5\nkernel.same=1\n")
    here.measured_on(lambda _boot, settings: 1200 if settings["/proc/sys/vm/swappiness"] == "1" else 1000)
    result = result_of(
        here.run("bisect", "knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK, "--json")
    )
    assert (causes_of(result), result["differing"]) == ([{"vm.swappiness"}], 2)
    (tmp_path / "b").write_text("vm.swappiness=1\n")
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK)
    assert (said.status, "it has no value for kernel.same" in said.messages) == (2, True)


def test_in_real_time_each_answer_is_a_test_and_the_error_is_told(here: Here) -> None:
    noise = random.Random(1)

    def number(_boot: Boot, settings: dict[str, str]) -> float:
        slow = 1.2 if settings["/proc/sys/vm/swappiness"] == "1" else 1.0
        return 1000 * slow * math.exp(noise.gauss(0, 0.01))

    here.measured_on(number, Mode.TIMED)
    knobs = [f"/proc/sys/net/core/k{at}=1..2" for at in range(3)] + ["vm.swappiness=60..1"]
    arguments = [part for knob in knobs for part in ("--knob", knob)]
    command = ("bisect", "knobs", "--kernel", "debian:6.1", *arguments, *FORK, "--machine", "kvm")
    said = here.run(*command)
    assert said.status == 0, said.messages
    assert said.output.splitlines()[-1] == "vm.swappiness 60 → 1 explains the difference."
    assert "any decision of this search is wrong is at most 5 %" in said.output
    assert "is decided with probability" in said.output
    programs = len(here.machine.programs)
    again = here.run(*command)
    assert again.status == 0, again.messages
    assert again.output.splitlines()[-1] == said.output.splitlines()[-1]
    assert len(here.machine.programs) == programs, "what was measured is not measured again"
