"""Replication of a study with a disk: what makes its file system is ktrial's own choice, not the bundle's."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import bundles
from tests.support.command_line import KNOWN, STUDY
from tests.support.report_records import a_record
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.analysis.replication import circumstances, likely_reason
from ktrial.bundle import replicating
from ktrial.bundle.reading import open_bundle
from ktrial.experiment import session
from ktrial.experiment.errors import SystemNotReady
from ktrial.experiment.resources import installed
from ktrial.kernels import Progress
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.trial import Trial
from ktrial.store.store import open_store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import study_from

WITH_A_DISK = STUDY + '\n[machine.disk]\nsize = "64M"\n'


def cached(digest: str, _progress: Progress) -> Kernel:
    kernels = map(a_kernel, ("debian:6.1", "debian:6.12"))
    (kernel,) = (kernel for kernel in kernels if kernel.digest == digest)
    return kernel


def test_a_disk_needs_no_files_of_the_bundles_reader(tmp_path: Path) -> None:
    study = study_from(tomllib.loads(WITH_A_DISK), StudySource("disk.toml"), "disk", tmp_path, KNOWN)
    with open_store(tmp_path / "trials.db") as store:
        session.run(study, store=store, machine=ScriptedMachine(), resources=scripted_resources())
    file = tmp_path / "disk.zip"
    bundles.bundle(tmp_path / "trials.db", file)
    with (
        open_store(tmp_path / "a.db") as first,
        open_store(tmp_path / "b.db") as fresh,
        open_bundle(file) as bundle,
    ):
        again = replicating.replicate(
            bundle,
            (first, fresh),
            replicating.ReplicationRequest(),
            machine=ScriptedMachine(),
            resources=scripted_resources(),
            cached=cached,
        )
    assert [trial.outcome for trial in again.now.trials] == [trial.outcome for trial in again.before.trials]
    for trial in again.now.trials:
        assert trial.provenance.programs["mke2fs"].startswith("sha256:")


def test_another_build_of_mke2fs_is_the_likely_reason() -> None:
    trial = a_record(("debian:6.1", "debian:6.12")).trials[0]

    def made_by(digest: str) -> Trial:
        noted = {"programs": {"mke2fs": digest}, "executed": {"initial RAM disk": digest}}
        return trial.model_copy(update={"provenance": trial.provenance.model_copy(update=noted)})

    reasons = circumstances([(made_by("sha256:aa"), made_by("sha256:bb"))])
    assert likely_reason(reasons) == "another build of mke2fs made the disk: sha256:bb in place of sha256:aa"


def test_parameters_stay_in_the_order_of_the_study(tmp_path: Path) -> None:
    """They are a program's arguments: in another order it takes other instructions before its work."""
    names = ["path", "size", "reads", "passes"]
    given = {"name": "random-read", "path": "/mnt", "size": 8, "reads": 50, "passes": 1}
    data = {"workloads": [given], "factors": {"kernel": {"levels": ["debian:6.1", "debian:6.12"]}}}
    study = study_from(data, StudySource("order.toml"), "order", tmp_path, installed().registry)
    assert list(study.workloads[0].parameters) == names
    with open_store(tmp_path / "trials.db") as store:
        session.run(study, store=store, machine=ScriptedMachine(), resources=scripted_resources())
    bundles.bundle(tmp_path / "trials.db", tmp_path / "order.zip")
    with open_bundle(tmp_path / "order.zip") as bundle:
        assert list(bundle.study.workloads[0].parameters) == names


def test_a_missing_maker_is_told_before_a_kernel_is_obtained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_from(tomllib.loads(WITH_A_DISK), StudySource("disk.toml"), "disk", tmp_path, KNOWN)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    obtained: list[str] = []
    plain = scripted_resources()

    def obtain(kernel: KernelRef, progress: Progress) -> Kernel:
        obtained.append(kernel.asked)
        return plain.obtain(kernel, progress)

    told = replace(plain, obtain=obtain)
    with open_store(tmp_path / "trials.db") as store, pytest.raises(SystemNotReady, match="mke2fs"):
        session.run(study, store=store, machine=ScriptedMachine(), resources=told)
    assert obtained == []
