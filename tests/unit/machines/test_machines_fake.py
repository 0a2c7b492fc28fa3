"""The machine without a kernel, and finding machines by name."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ktrial import machines, plugin_discovery
from ktrial.machines.errors import HostProblem, MachineStopped, MachineUsageError
from ktrial.machines.fake import FakeMachine, agreeable, ended
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target import Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded

KERNEL = Kernel(
    name="k",
    release="6.1.0",
    origin=Origin(provider="path", source="k"),
    digest="d",
    image=Path("/k/vmlinuz"),
)
BOOT = Boot(kernel=KERNEL, parameters=("mitigations=off",))
STEPS = (Write(path="/proc/sys/vm/swappiness", value="1"), Run(argv=("/ktrial/work",)), Read(path="/x"))


def silent(_text: str) -> None:
    """Nobody listens."""


def test_a_script_answers_every_step_and_what_was_asked_is_noted() -> None:
    def answer(boot: Boot, step: Step) -> StepResult:
        return agreeable(boot, step).model_copy(update={"stdout": " ".join(boot.parameters)})

    machine = FakeMachine(answer)
    machine.prepare(BOOT, silent)
    with machine.start(BOOT) as target:
        results = target.perform(STEPS)
    assert [(result.step, result.do) for result in results] == [(0, "write"), (1, "run"), (2, "read")]
    assert results[0].after == "1"
    assert results[1].stdout == "mitigations=off"
    assert (machine.prepared, machine.started) == ([BOOT], [BOOT])
    assert machine.performed[0].steps == STEPS


@pytest.mark.parametrize("outcome", [Outcome.PANICKED, Outcome.HUNG, Outcome.OUT_OF_MEMORY])
def test_a_guest_that_ends_early_leaves_the_results_before(outcome: Outcome) -> None:
    def answer(boot: Boot, step: Step) -> StepResult:
        if step.do == "run":
            raise ended(outcome, "because", console="the end")
        return agreeable(boot, step)

    with FakeMachine(answer).start(BOOT) as target, pytest.raises(GuestEnded) as caught:
        target.perform(STEPS)
    assert caught.value.outcome == outcome.value
    assert caught.value.console == "the end"
    results = caught.value.results
    assert isinstance(results, tuple)
    assert [result.do for result in results] == ["write"]


def test_preparing_may_fail() -> None:
    def full(_boot: Boot) -> None:
        raise HostProblem(machine="fake", directory="/cache", problem="No space left on device", mib=1)

    with pytest.raises(HostProblem):
        FakeMachine(preparation=full).prepare(BOOT, silent)


def test_after_stop_nothing_goes_on() -> None:
    machine = FakeMachine()
    with machine.start(BOOT) as target:
        machine.stop()
        with pytest.raises(MachineStopped):
            target.perform(STEPS)
    with pytest.raises(MachineStopped):
        machine.prepare(BOOT, silent)


def test_a_plain_boot_is_said() -> None:
    with FakeMachine(plain_boot_reason="no snapshots here").start(BOOT) as target:
        assert target.identity.plain_boot_reason == "no snapshots here"
        assert target.identity.snapshot == ""


def test_exact_is_found_by_its_name() -> None:
    assert machines.find("exact").name == "exact"
    assert "fake" not in machines.names()


def test_an_unknown_machine_names_those_like_it() -> None:
    with pytest.raises(
        MachineUsageError, match=r"no machine exakt \(did you mean exact\?\); there are: exact"
    ):
        machines.find("exakt")


@pytest.fixture
def _fresh_catalogue() -> Iterator[None]:
    machines.installed.cache_clear()
    yield
    machines.installed.cache_clear()


@pytest.mark.usefixtures("_fresh_catalogue")
def test_outsiders_are_found_and_a_broken_one_only_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("theirs", "ktrial.machines.fake:FakeMachine", "ktrial.machines"),
        EntryPoint("broken", "no_such_package:Machine", "ktrial.machines"),
        EntryPoint("odd", "ktrial.machines.fake:NAME", "ktrial.machines"),
    ]
    monkeypatch.setattr(plugin_discovery, "entry_points", lambda group: entries)
    assert isinstance(machines.find("theirs"), FakeMachine)
    _, warnings = machines.installed()
    assert [warning.text.split(" (")[0] for warning in warnings] == [
        "the machine broken",
        "the machine odd",
    ]
