"""`ktrial replicate` of a stored study, on a real kernel: the same digits, or the figures that differ."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.experiment.session import run
from ktrial.machines import guest_programs
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import Disk, MachineSettings, Study
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest
ONE_TREATMENT = Study(
    name="once",
    machine=MachineSettings(),
    factors=(Factor(name="kernel", kind=FactorKind.KERNEL, levels=("debian:6.12",), baseline="debian:6.12"),),
    workloads=(WorkloadUse(name="syscall"),),
    perturbations=1,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trials.db"
    with open_store(path) as store:
        run(ONE_TREATMENT, store=store)
    return path


def verified(path: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["replicate", "once", "--store", str(path), *options])


def test_a_trial_that_is_run_again_matches_and_a_stored_figure_that_was_changed_is_told(path: Path) -> None:
    same = verified(path)
    assert same.exit_code == 0, same.output
    with open_store(path) as store:
        (trial,) = store.trials(1)
        (sample, *others) = trial.samples
        changed = sample.model_copy(update={"value": sample.value + 0.125})
        (check,) = store.check_trials(1)
        store.remove_trials([check.trial_id])
        # With the digest of what it says now: only running it again can tell.
        store.add_trial(1, trial.model_copy(update={"samples": (changed, *others)}))
        assert not store.check_trials(1)[0].damaged
    differs = verified(path)
    assert differs.exit_code == 1
    assert f"syscall: {sample.metric}: {changed.value!r}" in differs.output
    assert f"now {sample.value!r}" in differs.output
    (told,) = json.loads(verified(path, "--json").stdout)["differences"]
    assert told["fact"] == f"syscall: {sample.metric}"


@pytest.mark.nightly
def test_another_guest_program_is_named_before_the_figures_that_it_may_have_moved(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "package"
    shutil.copytree(guest_programs.directory().parent, own / "_guest")
    with (own / "_guest" / "x86_64" / guest_programs.WORK).open("ab") as program:
        program.write(bytes(64))
    monkeypatch.setattr(guest_programs, "package_directory", lambda: own)
    differs = verified(path, "--json")
    assert differs.exit_code == 1
    told = json.loads(differs.stdout)
    assert not told["same"]
    assert told["differences"][0]["fact"].startswith("executed: ")


@pytest.mark.nightly
def test_a_bundle_of_workloads_on_a_disk_is_replicated_to_the_last_digit(tmp_path: Path) -> None:
    """The parameters are in no alphabetical order: 149 of 820 numbers were others once. 35 s."""
    parameters = {"path": "/mnt", "size": 8, "transactions": 100, "passes": 1}
    kernel = ONE_TREATMENT.factors[0].model_copy(update={"levels": ("debian:6.12", "debian:6.1")})
    study = ONE_TREATMENT.model_copy(
        update={
            "machine": MachineSettings(disk=Disk(size_mib=128, bandwidth_mib=400, latency_us=100)),
            "factors": (kernel,),
            "workloads": (WorkloadUse(name="oltp", parameters=parameters),),
        }
    )
    with open_store(tmp_path / "trials.db") as store:
        run(study, store=store)
    where = ["--store", str(tmp_path / "trials.db")]
    file = tmp_path / "once.zip"
    made = CliRunner().invoke(app, ["bundle", "once", "-o", str(file), *where])
    assert made.exit_code == 0, made.output
    again = CliRunner().invoke(app, ["replicate", str(file), "--json"])
    told = json.loads(again.stdout)
    assert told["outcome"] == "identical"
    assert told["identical"] == told["compared"] > 20
