"""Ctrl-C, SIGTERM and SIGHUP at named instants of all that runs trials: it ends, and knobs are as they were.

Each case runs in a process of its own, which is sent the signal at a fault point: once, or there and at every
point that it reaches from then on, as by somebody who keeps pressing Ctrl-C.
"""

import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import pytest
from tests.support.killing import directory_in_memory, forked
from tests.support.knob_tree import Tree, made
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, a_kernel, number_of, scripted_resources
from tests.support.tuning import TunableMachine, a_search

from ktrial.cli.error_handling import ErrorHandling
from ktrial.experiment import regression_check as baselines
from ktrial.experiment.host_settings import Journaled
from ktrial.experiment.observer import Observer
from ktrial.experiment.regression_check import check
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import Runs
from ktrial.experiment.watch import look
from ktrial.fault_points import SIGNAL, VARIABLE, fault_point
from ktrial.knobs.apply import Changes
from ktrial.machines.errors import MachineStopped
from ktrial.model.base import digest
from ktrial.model.design import Factor, FactorKind
from ktrial.model.machine import Boot
from ktrial.model.study import Measurement, Timing
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.optimize.search_space import with_space
from ktrial.optimize.session import run_search
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult, Write

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SWAP = Factor(name="swap", kind=FactorKind.SETTING, levels=(10, 20), baseline=10, target="vm.swappiness")
STUDY = a_study(kernels=("debian:6.12",), workloads=("fork",), factors=(SWAP,), timing=Timing())
BLOCKS = 3
TRIALS = 2 * BLOCKS
LONGEST_S = 0.2
"""Random instants lie within this time: on an idle machine the study has ended then."""
HOW = Measurement((WorkloadUse(name="fork"),), perturbations=2)


class Telling(Observer):
    """Reaches a point where it is told something."""

    def blocks_wanted(self, *_: object) -> None:
        fault_point("test: between blocks")

    def kernel_progress(self, *_: object) -> None:
        fault_point("test: a kernel is fetched")


def answer(boot: Boot, program: Run) -> StepResult:
    fault_point("test: in a program")
    return number_of(boot, program)


def boots(_boot: Boot) -> None:
    fault_point("test: while a guest boots")


def timed_study(store: Store, changes: Changes) -> None:
    """In real time, with a setting of this system that is made for each trial and taken back after it."""
    journal = Journaled(changes)

    def on_write(step: Write) -> StepResult:
        fault_point("test: before a knob is applied")
        return journal.write(step)

    machine = ScriptedMachine(
        answer, mode=Mode.TIMED, on_prepare=boots, on_write=on_write, on_end=journal.undo
    )
    run(STUDY, store=store, machine=machine, resources=scripted_resources(), observer=Telling(), until=BLOCKS)


def exact_study(store: Store, _changes: Changes) -> None:
    machine = ScriptedMachine(answer, on_prepare=boots)
    study = a_study(workloads=("fork",))
    run(study, store=store, machine=machine, resources=scripted_resources(), observer=Telling(), jobs=2)


def a_tuning(store: Store, _changes: Changes) -> None:
    def number(_boot: Boot, written: object) -> float:
        fault_point("test: in a program")
        return 1000.0

    machine = TunableMachine(number)
    study = with_space(a_search("vm.swappiness", "vm.numa_stat"), machine, scripted_resources(), Observer())
    fault_point("test: before a search")
    run_search(study, store=store, machine=machine, resources=scripted_resources())


def a_check(store: Store, _changes: Changes) -> None:
    runs = Runs(store, machine=ScriptedMachine(answer, on_prepare=boots), resources=scripted_resources())
    good = baselines.of_kernel(a_kernel("debian:6.1"), HOW, runs)
    fault_point("test: between two kernels")
    check(a_kernel("debian:6.12"), good, HOW, {"fork": 0.01}, runs)


def a_watch(store: Store, _changes: Changes) -> None:
    runs = Runs(store, machine=ScriptedMachine(answer, on_prepare=boots), resources=scripted_resources())
    for release in ("6.12.1", "6.12.2"):
        look(
            "debian:6.12",
            HOW,
            {"fork": 0.01},
            runs,
            lambda *_, of=release: a_kernel(release=of, digest=digest(of)),
        )
        fault_point("test: between two kernels")


Work = Callable[[Store, Changes], None]


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What the work imports when it runs is imported here, and not in each of the processes."""
    for work in (timed_study, exact_study, a_tuning, a_check, a_watch):
        with (
            directory_in_memory() as directory,
            open_store(directory / "ktrial.db") as store,
            made(directory).changing() as changes,
        ):
            work(store, changes)


@pytest.fixture
def tree() -> Iterator[Tree]:
    with directory_in_memory() as directory:
        yield made(directory)


def ended(tree: Tree, work: Work, number: signal.Signals, armed: str = "") -> int:
    """Do the work in another process, as `ktrial` does, with a fault point that sends a signal."""

    def child() -> None:
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler if each is signal.SIGINT else signal.SIG_DFL)
        os.environ.update({VARIABLE: armed, SIGNAL: number.name})
        os.dup2(os.open(tree.root / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stderr = os.fdopen(2, "w")  # pytest has put another one in its place
        with (
            ErrorHandling() as ending,
            open_store(tree.root / "ktrial.db") as store,
            tree.changing() as changes,
        ):
            (tree.root / "begun").touch()
            work(store, changes)
        os._exit(ending.code)

    return forked(child)


def told(tree: Tree) -> str:
    return (tree.root / "said").read_text()


def stored(tree: Tree) -> list[int]:
    """Trials of each study."""
    with open_store(tree.root / "ktrial.db") as store:
        return [study.finished for study in store.studies()]


def check_end(
    tree: Tree, process: int, number: signal.Signals, first: dict[str, str], *, may_be_over: bool = False
) -> int:
    """That the process says which signal has ended it, and left everything as it was. Its exit status."""
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    allowed = {128 + number, -number} | ({0} if may_be_over else set())
    assert status in allowed, f"{status}: {told(tree)}"
    assert tree.values() == first
    assert not tree.entries, "something is left in the journal"
    for text in re.findall(r"(\d+) (?:of \d+ trials|runs) are stored", told(tree)):
        # A study of no trials is not kept.
        assert int(text) in (stored(tree) or [0]), "what is told is of one study"
    assert "Traceback" not in told(tree)
    return status


INSTANTS: tuple[tuple[Work, tuple[str, ...]], ...] = (
    (
        timed_study,
        (
            "test: a kernel is fetched",
            "store: transaction begun",
            "session: study stored",
            "session: before a block#2",
            "test: between blocks#1",
            "test: between blocks#3",
            "test: while a guest boots",
            "workers: system prepared",
            "workers: trial started#3",
            "test: before a knob is applied#2",
            "journal: entry on disk#3",
            "apply: value written#3",
            "test: in a program#2",
            "restore: value put back#2",
            "journal: entry dropped#2",
            "workers: trial ended#2",
            "workers: trial handed over#2",
            "store: samples inserted#2",
            "store: transaction committed#5",
            "session: trial stored#3",
            "workers: trial known to be stored#6",
            "session: all trials stored",
            "apply: work done",
        ),
    ),
    (
        exact_study,
        (
            "test: a kernel is fetched#2",
            "test: while a guest boots#2",
            "test: in a program#4",
            "store: transaction about to be committed#3",
            "session: trial stored#6",
            "session: all trials stored",
        ),
    ),
    (
        a_tuning,
        (
            "test: before a search",
            "workers: trial started",
            "test: in a program#7",
            "store: transaction committed#9",
            "workers: trial known to be stored#10",
        ),
    ),
    (a_check, ("test: in a program", "test: between two kernels", "test: while a guest boots#2")),
    (a_watch, ("test: in a program", "test: between two kernels", "test: while a guest boots#2")),
)
CASES = [(work, point) for work, points in INSTANTS for point in points]


@pytest.mark.parametrize(
    "insists",
    [pytest.param("", marks=pytest.mark.nightly, id="once"), pytest.param("+", id="again and again")],
)
@pytest.mark.parametrize(
    ("work", "point", "number"),
    [(*case, number) for case, number in zip(CASES, cycle(SIGNALS), strict=False)],
    ids=lambda case: getattr(case, "__name__", None) or getattr(case, "name", case),
)
def test_it_ends_and_knobs_are_as_they_were(
    work: Work, point: str, number: signal.Signals, insists: str, tree: Tree
) -> None:
    first = tree.values()
    check_end(tree, ended(tree, work, number, point + insists), number, first)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_at_random_instants_as_well(seed: int, tree: Tree) -> None:
    first, chance = tree.values(), random.Random(seed)
    process, number = ended(tree, timed_study, SIGNALS[seed % 3]), SIGNALS[seed % 3]
    while not (tree.root / "begun").exists():
        time.sleep(0.001)
    time.sleep(chance.uniform(0, LONGEST_S))
    for _ in range(chance.choice([1, 2, 5])):
        os.kill(process, number)
        time.sleep(chance.uniform(0, 0.005))
    status = check_end(tree, process, number, first, may_be_over=True)
    assert status or stored(tree) == [TRIALS]


def test_of_a_search_whose_store_was_deleted_nothing_is_promised(tree: Tree) -> None:
    def losing_its_store(store: Store, _changes: Changes) -> None:
        def number(_boot: Boot, written: object) -> float:
            for file in tree.root.glob("ktrial.db*"):
                file.unlink()
            os.kill(os.getpid(), signal.SIGINT)
            machine.stopped.wait(300)
            raise MachineStopped(machine=machine.name)

        machine = TunableMachine(number)
        study = with_space(a_search("vm.swappiness"), machine, scripted_resources(), Observer())
        run_search(study, store=store, machine=machine, resources=scripted_resources())

    process = ended(tree, losing_its_store, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 128 + signal.SIGINT
    assert "no run is known to be kept" in told(tree)
    assert "nothing of them is lost" not in told(tree)
