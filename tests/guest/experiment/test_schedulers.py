"""Schedulers that need no patch, on real kernels: preemption models by boot parameter, and sched_ext."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.support.guests import versions
from tests.support.places import SUPPORT

from ktrial.experiment.session import run
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.study import MachineSettings, Study, StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

SWITCHES = WorkloadUse(name="context-switch", parameters={"operations": 300, "passes": 2})
NO_SWITCH = WorkloadUse(name="pipe", parameters={"operations": 300, "passes": 2})


@pytest.fixture(scope="module")
def scx_fifo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The smallest sched_ext scheduler, built."""
    program = tmp_path_factory.mktemp("scheduler") / "scx_fifo"
    source = SUPPORT / "scx_fifo.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", program, source], check=True)
    return str(program)


def factor(kind: FactorKind, name: str, *levels: LevelValue) -> Factor:
    target = name if kind is FactorKind.BOOT else ""
    return Factor(name=name, kind=kind, levels=levels, baseline=levels[0], target=target)


def ran(
    directory: Path, *factors: Factor, workloads: tuple[WorkloadUse, ...] = (SWITCHES,), **settings: object
) -> StudyRecord:
    plain = {"name": "schedulers", "factors": factors, "workloads": workloads, "perturbations": 1}
    with open_store(directory / "trials.db") as store:
        return run(Study.model_validate(plain | settings), store=store)


def by_level(record: StudyRecord, name: str) -> dict[LevelValue, Trial]:
    return {trial.planned.treatment.levels[name]: trial for trial in record.trials}


# Each kernel's own model, one that it takes, and one that it does not; all of them are in docs/schedulers.md.
MODELS = {
    "debian:5.10": ("voluntary", "voluntary", "full"),  # built so: it cannot choose
    "debian:6.1": ("voluntary", "none", "lazy"),
    "debian:6.18": ("lazy", "voluntary", "rt"),
    "debian:7.2": ("lazy", "full", "none"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", MODELS)
def test_a_preemption_model_that_the_kernel_did_not_take_makes_the_trial_invalid(
    kernel: str, tmp_path: Path
) -> None:
    own, taken, refused = MODELS[kernel]
    models = factor(FactorKind.BOOT, "preempt", "", taken, refused)
    trials = by_level(ran(tmp_path, models, machine=MachineSettings(kernel=kernel)), "preempt")
    assert trials[""].settings == {"preempt": own}
    assert trials[taken].outcome is Outcome.COMPLETED, trials[taken].reason
    assert trials[taken].settings == {"preempt": taken}
    assert trials[taken].samples
    assert (trials[refused].outcome, trials[refused].samples) == (Outcome.REFUSED, ())
    assert f"preempt={refused} was asked for" in trials[refused].reason
    assert own in trials[refused].reason


@pytest.mark.parametrize("kernel", versions("debian:6.18", "debian:7.2"))
def test_a_scheduler_is_loaded_counted_and_the_same_twice(kernel: str, scx_fifo: str, tmp_path: Path) -> None:
    schedulers = factor(FactorKind.SCHEDULER, "scheduler", "default", scx_fifo)
    once, again = (
        ran(
            tmp_path / name,
            schedulers,
            workloads=(SWITCHES, NO_SWITCH),
            machine=MachineSettings(kernel=kernel),
        )
        for name in ("once", "again")
    )
    trials = by_level(once, "scheduler")
    assert trials[scx_fifo].settings == {"scheduler": "ktrial_fifo", "scheduler: rejected tasks": "0"}
    assert {trial.outcome for trial in once.trials} == {Outcome.COMPLETED}
    repeated = by_level(again, "scheduler")
    for level in ("default", scx_fifo):
        assert trials[level].samples == repeated[level].samples, "to the last digit"
        assert trials[level].counters == repeated[level].counters
        assert trials[level].profiles == repeated[level].profiles
    numbers = {
        (level, sample.workload.partition("(")[0]): sample.value
        for level, trial in trials.items()
        for sample in trial.samples
        if sample.unit.startswith("instructions")
    }
    switches, none = (
        numbers[scx_fifo, name] / numbers["default", name] for name in ("context-switch", "pipe")
    )
    assert abs(switches - 1) > 0.01, "another scheduler does other work at a switch"
    assert abs(none - 1) < 0.01, "and none where nothing is switched"


@pytest.mark.nightly
def test_a_scheduler_that_fails_exits_or_is_thrown_out_is_an_outcome_with_its_words(
    scx_fifo: str, tmp_path: Path
) -> None:
    said = {
        "--nonsense": "was not loaded: it ended before it was ready; it ended with status 1; "
        "it said: .*!read_ok",
        "--stall": 'the kernel says: BPF scheduler "ktrial_fifo" disabled \\(runnable task stall\\)',
        "--partial": "schedules only tasks that ask for it",
        "--quit-after-ms 20": "gone before the workload had ended: it had ended already; "
        "it ended with status 3; it said: ktrial_fifo: has had enough",
    }
    levels = ("default", *(f"{scx_fifo} {arguments}" for arguments in said))
    schedulers = factor(FactorKind.SCHEDULER, "scheduler", *levels)
    record = ran(tmp_path, schedulers, machine=MachineSettings(kernel="debian:7.2"))
    trials = by_level(record, "scheduler")
    assert trials["default"].outcome is Outcome.COMPLETED
    for level, words in zip(levels[1:], said.values(), strict=True):
        trial = trials[level]
        assert (trial.outcome, trial.samples) == (Outcome.REFUSED, ())
        assert re.search(words, trial.reason), trial.reason


@pytest.mark.nightly
def test_a_kernel_without_sched_ext_refuses_and_says_so(scx_fifo: str, tmp_path: Path) -> None:
    schedulers = factor(FactorKind.SCHEDULER, "scheduler", "default", scx_fifo)
    trial = by_level(ran(tmp_path, schedulers, machine=MachineSettings(kernel="debian:6.12")), "scheduler")[
        scx_fifo
    ]
    assert trial.outcome is Outcome.REFUSED
    assert "this kernel has no sched_ext" in trial.reason
