"""Trials that the plugin counts: what stays of them in the store, and that it says what the numbers say."""

from pathlib import Path

import pytest

from ktrial.analysis.store_queries import profile_of
from ktrial.experiment.session import run
from ktrial.file_digests import sealed
from ktrial.kernels import kernel_registry
from ktrial.kernels.modules import resolve
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Treatment
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Study
from ktrial.model.trial import Outcome
from ktrial.model.workload import Command, CountedBy, Mode, WorkloadUse
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

KERNEL = "debian:6.12"
LISTING = WorkloadUse(name="listing", command=Command(argv=("/bin/ls", "-l", "/dev"), repeats=3))


@pytest.mark.nightly
def test_a_study_keeps_what_each_function_had(tmp_path: Path) -> None:
    study = Study(
        name="counted",
        machine=MachineSettings(kernel=KERNEL, count=CountedBy.PLUGIN),
        factors=(),
        workloads=(WorkloadUse(name="fork"), LISTING),
        perturbations=2,
    )
    with open_store(tmp_path / "trials.db") as store:
        record = run(study, store=store)
        assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 2
        assert [trial.warnings for trial in record.trials] == [()] * 2
        as_it_is = Treatment(levels={})
        profiles = {use.label: profile_of(store, record, as_it_is, use.label) for use in study.workloads}
        other = store.profile(record.id, record.trials[1].planned.key, "fork")
    plain, *_ = record.trials
    values = {(sample.workload, sample.metric): sample for sample in plain.samples}
    assert {sample.mode for sample in plain.samples} == {Mode.EXACT_PLUGIN}

    fork, listing = profiles["fork"], profiles["listing"]
    assert fork
    assert listing
    assert other
    # Calls are followed once a treatment.
    assert (fork.region.nodes is None, other.region.nodes is None) == (False, True)
    assert sum(each.instructions for each in fork.region.functions) == fork.region.kernel
    instructions = values["fork", "fork, exit, wait"].mean
    assert fork.region.operations.total / fork.operations == pytest.approx(instructions, rel=1e-3)
    assert values["fork", "string-bytes"].mean == fork.region.strings.bytes / fork.operations

    assert listing.operations == 1
    assert listing.region.instructions == values["listing", "wall time"].value
    assert listing.region.strings.bytes == values["listing", "string-bytes"].value
    assert "/bin/ls" in {each.program for each in listing.programs}


@pytest.mark.nightly  # for each change: test_other_file_systems_hold_what_is_written[xfs]
def test_modules_have_names_that_hold_for_their_boot(tmp_path: Path) -> None:
    kernel = kernel_registry.add(KERNEL)
    modules = resolve(kernel, ["loop"])
    boot = Boot(kernel=kernel, memory_mib=256, settle_ns=500_000_000, modules=modules)
    machine = ExactMachine(cache=tmp_path, count=CountedBy.PLUGIN)
    with machine.instrumented(boot) as target:
        told = target.kallsyms()
    assert "\t[loop]\n" in told
    (kept,) = tmp_path.glob("*/kallsyms")
    assert kept.read_bytes() == sealed(told.encode())
