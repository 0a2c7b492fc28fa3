"""What fails for this host's sake is no result of a configuration that a search tried."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.fake_builds import FakeBuilder
from tests.support.scripted import ends, scripted_resources
from tests.support.tuning import TunableMachine, a_search

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildCutShort, BuildFailed, FetchFailed, KernelError
from ktrial.model.kernel import Build, Kernel
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Configuration, Purpose
from ktrial.model.workload import Mode
from ktrial.optimize.evaluation_log import Ask
from ktrial.optimize.search_space import with_space
from ktrial.optimize.trial_evaluator import TrialEvaluator


def asked_of(machine: TunableMachine, study: Study, there: Resources, *wanted: Configuration) -> list[Trial]:
    """What is kept of a baseline and of these configurations, each measured once."""
    kept: list[Trial] = []
    evaluator = TrialEvaluator(study, machine, there, Observer(), kept.append)
    for order, configuration in enumerate(({}, *wanted)):
        ask = Ask(configuration=configuration, purpose=Purpose.EXPLORE, order=order)
        list(evaluator.measure([ask]))
    return kept[1:]


def test_a_kernel_that_cannot_be_fetched_now_is_no_result_of_a_configuration() -> None:
    machine = TunableMachine(lambda _boot, _written: 1000.0)
    study = with_space(a_search("kernel=debian:6.1"), machine, scripted_resources(), Observer())
    offline: dict[str, KernelError] = {
        "debian:6.1": FetchFailed(name="debian:6.1", distribution="Debian", problem="no route")
    }
    with pytest.raises(FetchFailed, match="no route"):
        asked_of(machine, study, scripted_resources(missing=offline), {"kernel": "debian:6.1"})
    (trial,) = asked_of(machine, study, scripted_resources(), {"kernel": "debian:6.1"})
    assert trial.outcome is Outcome.COMPLETED


def test_a_build_that_ran_out_of_memory_is_no_result_and_one_that_fails_is() -> None:
    problem = {"directory": "linux", "problem": "Killed signal terminated program cc1", "name": "linux"}
    error: list[BuildFailed] = [BuildCutShort(**problem, hint="look", killed=True)]

    def built(wanted: Build, _progress: Progress) -> Kernel:
        if wanted.options:
            raise error[0]
        return FakeBuilder.kernel(wanted)

    machine = TunableMachine(lambda _boot, _written: 1000.0)
    there = scripted_resources(builder=replace(FakeBuilder().builder, build=built))
    study = a_search("kconfig:SLAB=y", builds={"mine": Build(source="/src/linux")})
    study = with_space(study, machine, there, Observer())
    with pytest.raises(BuildCutShort):
        asked_of(machine, study, there, {"kconfig:SLAB": "y"})
    error[0] = BuildFailed(**problem, hint="look", log="log")
    (trial,) = asked_of(machine, study, there, {"kconfig:SLAB": "y"})
    assert trial.outcome is Outcome.KERNEL_MISSING
    assert "does not build" in trial.reason


def test_what_the_clock_has_ended_once_is_run_again() -> None:
    """This host was busy for a while; what hangs each time is an outcome."""
    ended_once: set[str] = set()

    def held_up(boot: Boot, written: Mapping[str, str]) -> float:
        asked = repr(written)
        if written and ("/proc/sys/vm/swappiness" in written or asked not in ended_once):
            ended_once.add(asked)
            raise ends(Outcome.HUNG, "5 s went by before the steps were done")
        return 800.0 if "400" in written.values() else 1000.0

    machine = TunableMachine(held_up, mode=Mode.TIMED)
    busy, hangs = asked_of(
        machine,
        with_space(
            a_search("vm.vfs_cache_pressure", "vm.swappiness"), machine, scripted_resources(), Observer()
        ),
        scripted_resources(),
        {"vm.vfs_cache_pressure": "400"},
        {"vm.swappiness": "200"},
    )
    assert (busy.outcome, busy.samples[0].value) == (Outcome.COMPLETED, 800.0)
    assert hangs.outcome is Outcome.HUNG
