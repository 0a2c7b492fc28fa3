"""Explanations of real kernels: of a stored study, the same twice; settings read in the guests."""

from collections.abc import Iterator

import pytest
from tests.support.guests import ALL, boot_of, newest_for_each_change
from tests.support.making import a_study

from ktrial.analysis.attribution.conditions_diff import differing_values
from ktrial.experiment.default_settings import ROOTS, SKIPPED, default_values
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.session import run
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.attribution import Attribution, Match
from ktrial.model.study import StudyRecord
from ktrial.store.store import Store, open_store
from ktrial.target import Walk

pytestmark = pytest.mark.guest

NOTHING_RUNS = Guests(run=False)
WHY_LEFT_OUT = {"changing", "long", "unreadable", "ENOENT", "EIO", "EPERM", "EINVAL", "EACCES", "ENODEV"}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, StudyRecord]]:
    kernels_ = ("debian:5.10", "debian:6.12")
    study = a_study("upgrade", kernels=kernels_, workloads=("fork", "pipe"), perturbations=2)
    with open_store(str(tmp_path_factory.mktemp("store") / "ktrial.db")) as store:
        yield store, run(study, store=store, jobs=1)


def explained(stored: tuple[Store, StudyRecord], workload: str) -> Attribution:
    store, record = stored
    return explain_record(store, record, workload, guests=NOTHING_RUNS)


def measured(record: StudyRecord, workload: str, kernel: str) -> float:
    """Instructions per operation, the mean, as the workload's own marks tell them."""
    (mean,) = (
        sample.mean
        for trial in record.trials
        for sample in trial.samples
        if sample.workload == workload
        and sample.metric != "string-bytes"
        and trial.planned.perturbation.number == 0
        and trial.planned.treatment.label == kernel
    )
    assert mean is not None
    return mean


@pytest.mark.nightly
@pytest.mark.parametrize("workload", ["fork", "pipe"])
def test_the_functions_of_a_stored_study_sum_to_the_measured_difference(
    stored: tuple[Store, StudyRecord], workload: str
) -> None:
    explanation = explained(stored, workload).explanation
    old, new = (measured(stored[1], workload, kernel) for kernel in ("debian:5.10", "debian:6.12"))
    summed = float(sum(explanation.difference(row) for row in explanation.rows))
    assert summed == pytest.approx(new - old, rel=0.001)
    assert explanation.unexplained == 0
    assert explanation == explained(stored, workload).explanation


@pytest.mark.nightly
def test_what_differs_around_a_stored_study_is_told(stored: tuple[Store, StudyRecord]) -> None:
    differences = explained(stored, "fork").differences
    assert [(one.before, one.after) for one in differences.levels] == [("debian:5.10", "debian:6.12")]
    options = {one.option: one for one in differences.options}
    assert options["CONFIG_LRU_GEN"].after == "y"
    assert "all code" in options["CONFIG_CC_VERSION_TEXT"].owners
    assert {"vmstat.numa_hit", "vmstat.pgactivate"} <= {one.counter for one in differences.counters}


@pytest.mark.nightly
def test_functions_are_matched_by_the_tree_of_a_trial(stored: tuple[Store, StudyRecord]) -> None:
    rows = {row.name: row for row in explained(stored, "pipe").explanation.rows}
    assert rows["vfs_read + new_sync_read → vfs_read"].match is Match.MERGED
    assert rows["do_syscall_64"].subsystem == "entry and exit"


@pytest.mark.nightly
@pytest.mark.parametrize("name", newest_for_each_change(*ALL))
def test_settings_are_the_same_when_they_are_read_again(name: str) -> None:
    walk = Walk(roots=ROOTS, skip=SKIPPED)
    with ExactMachine().start(boot_of(kernel_registry.add(name))) as target:
        (first,), (second,) = target.perform((walk,)), target.perform((walk,))
    assert first.failure is None
    assert first == second
    assert len(first.files) > 1000
    assert first.files["/proc/sys/vm/swappiness"] == "60"
    assert first.left_out["/proc/sys/kernel/random/uuid"] == "changing"
    assert set(first.left_out.values()) <= WHY_LEFT_OUT


@pytest.mark.nightly
def test_the_read_ahead_of_rotating_disks_differs_between_6_12_and_7_2() -> None:
    machine = ExactMachine()
    old, new = (
        default_values(machine, boot_of(kernel_registry.add(name))) for name in ("debian:6.12", "debian:7.2")
    )
    values = {one.path: (one.before, one.after) for one in differing_values(old, new)}
    assert values["/sys/block/nullb0/queue/read_ahead_kb"] == ("128", "8192")
    assert "/proc/sys/kernel/osrelease" not in values
    assert default_values(machine, boot_of(kernel_registry.add("debian:7.2"))) == new


@pytest.mark.nightly
def test_a_boot_parameter_that_sets_a_setting_is_seen_there() -> None:
    kernel, machine = kernel_registry.add("debian:6.12"), ExactMachine()
    plain, changed = (
        default_values(machine, boot_of(kernel, parameters=parameters))
        for parameters in ((), ("sysctl.vm.swappiness=10",))
    )
    values = {one.path: one.after for one in differing_values(plain, changed)}
    assert values == {"/proc/sys/vm/swappiness": "10"}
