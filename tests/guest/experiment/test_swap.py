"""Swap inside the guest: it is there, what does not fit into memory goes there, and the same twice."""

from pathlib import Path

import pytest

from ktrial.experiment.session import run
from ktrial.model.comparison import Verdict
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings, Study
from ktrial.model.trial import Outcome
from ktrial.model.workload import Command, CountedBy, WorkloadUse
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

MORE_THAN_THERE_IS = "yes | head -c 70M | tail -c 60M | wc -c"
PROGRAMS = ("sh", "yes", "head", "tail", "wc")


def a_study(factor: Factor) -> Study:
    command = Command(
        argv=("sh", "-c", MORE_THAN_THERE_IS),
        files=tuple(f"/usr/bin/{program}" for program in PROGRAMS),
        repeats=1,
        discarded=0,
    )
    return Study(
        name="swap",
        # Counted by the clock: to ask a guest for its modules' symbols takes longer than all else.
        machine=MachineSettings(kernel="debian:6.12", memory_mib=128, swap_mib=128, count=CountedBy.CLOCK),
        factors=(factor,),
        workloads=(WorkloadUse(name="last", command=command),),
        perturbations=1,
    )


@pytest.mark.nightly
def test_what_does_not_fit_into_memory_is_swapped_and_the_numbers_are_the_same_twice(tmp_path: Path) -> None:
    """Without files on a disk the kernel has nothing else to reclaim: of swappiness nothing is said."""
    same = Factor(name="same", kind=FactorKind.NOTHING, levels=("a", "b"), baseline="a", target="same")
    levels = (60, 10)
    swappiness = Factor(
        name="vm.swappiness", kind=FactorKind.SETTING, levels=levels, baseline=60, target="vm.swappiness"
    )
    with open_store(tmp_path / "trials.db") as store:
        alike = run(a_study(same), store=store)
        record = run(a_study(swappiness), store=store)
    assert {trial.outcome for trial in (*alike.trials, *record.trials)} == {Outcome.COMPLETED}
    once, again = alike.trials
    assert once.samples == again.samples
    assert once.counters == again.counters
    assert once.settings["swap"] == "131068 kB"
    assert {"mkswap", "swapon"} <= once.provenance.programs.keys()
    swapped = {counter.name: counter.delta for counter in once.counters}
    assert swapped["vmstat.pswpout"] > 1000
    (comparison,) = record.result.comparisons
    assert comparison.verdict is Verdict.NOT_TESTED
    assert comparison.reason.startswith("next to no page of a file was reclaimed")
