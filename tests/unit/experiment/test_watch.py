"""`ktrial watch`: first, unchanged, new; what is beyond; other machines; kernels that cannot be had."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import ScriptedMachine, a_kernel, ends, scripted_resources

from ktrial.analysis.errors import NothingToWatch
from ktrial.experiment.regression_check import worst
from ktrial.experiment.single_kernel import Runs
from ktrial.experiment.watch import News, TargetLook, look, newest
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.regression_check import Decision
from ktrial.model.study import Measurement
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

HOW = Measurement((WorkloadUse(name="fork"),), perturbations=2)
COSTS = {"6.12.1": 1000, "6.12.2": 1003, "6.12.3": 1100}


def version(release: str) -> Kernel:
    return a_kernel("debian:6.12", release=release, digest=digest(release))


def answer(boot: Boot, run: Run) -> StepResult:
    if boot.kernel.release == "6.12.9":
        raise ends(Outcome.PANICKED, "not syncing", "Kernel panic")
    return StepResult(step=0, do="run", exit=0, stdout=str(COSTS[boot.kernel.release]))


def seen(store: Store, release: str, qemu: str = "7.2.22") -> TargetLook:
    def obtain(_target: str, _progress: Progress) -> Kernel:
        return version(release)

    machine = ScriptedMachine(answer, qemu=qemu)
    runs = Runs(store, machine=machine, resources=scripted_resources())
    return look("debian:6.12", HOW, {"fork": 0.01}, runs, obtain)


def test_each_new_kernel_is_compared_with_the_one_before(store: Store) -> None:
    news = [seen(store, release) for release in ("6.12.1", "6.12.1", "6.12.2", "6.12.3", "6.12.3")]
    assert [new.news for new in news] == [News.FIRST, News.UNCHANGED, News.NEW, News.NEW, News.UNCHANGED]
    assert [new.decision for new in news] == [
        Decision.WITHIN, Decision.WITHIN, Decision.WITHIN, Decision.BEYOND, Decision.WITHIN,
    ]  # fmt: skip
    assert news[3].check is not None
    (row,) = news[3].check.rows
    assert row.comparison.baseline_value == 1003
    assert news[3].before.startswith("6.12.2")
    assert worst(new.decision for new in news) is Decision.BEYOND


def test_a_kernel_that_does_not_boot_is_told_and_never_compared_with(store: Store) -> None:
    seen(store, "6.12.1")
    broken = seen(store, "6.12.9")
    assert broken.decision is Decision.NOT_RUN
    assert broken.check is not None
    assert "panicked" in broken.check.problem
    assert seen(store, "6.12.2").before.startswith("6.12.1")


def test_another_machine_is_never_compared_with(store: Store) -> None:
    seen(store, "6.12.1")
    moved = seen(store, "6.12.3", qemu="10.0")
    assert (moved.news, moved.check) == (News.NEW, None)
    assert "different QEMU build" in moved.problem
    assert moved.decision is Decision.WITHIN


def test_targets_are_kernels_or_branches(tmp_path: Path) -> None:
    for wrong in ("git:", "git:@master", f"git:{tmp_path}@", f"git:{tmp_path}@master"):
        with pytest.raises(NothingToWatch):
            newest(wrong, lambda *_: None)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def test_watch_ends_as_check_does(
    cli: CommandLine, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = iter(["6.12.1", "6.12.3", "6.12.3"])

    def next_look(*_: object) -> TargetLook:
        return seen(store, next(releases))

    monkeypatch.setattr("ktrial.experiment.watch.look", next_look)
    summary = tmp_path / "summary.md"
    first = cli("watch", "debian:6.12", "--once", "--workloads", "fork", "--summary", summary)
    assert (first.status, "first look" in first.output) == (0, True)
    beyond = cli("watch", "6.12", "--once", "--workloads", "fork", "--summary", summary, "--json")
    assert beyond.status == 1
    (target,) = json.loads(beyond.output)["targets"]
    assert (target["news"], target["decision"]) == ("new", "beyond")
    assert "ktrial watch: beyond" in summary.read_text()
    assert "fork" in summary.read_text()
    assert cli("watch", "6.12", "--once", "--workloads", "fork").status == 0
    assert cli("watch", "6.12", "--every", "often").status == 2
    assert cli("watch").status == 2


def test_a_kernel_that_cannot_be_had_is_no_verdict(store: Store) -> None:
    def nowhere(_target: str, _progress: Progress) -> Kernel:
        raise KernelError(name="debian:6.12", problem="no mirror answers")

    looked = look("debian:6.12", HOW, {}, Runs(store), nowhere)
    assert (looked.news, looked.decision) == (News.NOT_HAD, Decision.NOT_RUN)
