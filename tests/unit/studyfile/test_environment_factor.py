"""A variable in the environment of a study's commands as a factor; and the studies of fidelity."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.places import ROOT
from tests.support.scripted import a_kernel, scripted_resources

from ktrial.cli.studies import registry
from ktrial.experiment.jobs import jobs_of
from ktrial.model.design import FactorKind, Perturbation
from ktrial.model.study import Study, treatments
from ktrial.model.workload import Mode
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.references import resolved
from ktrial.studyfile.writer import study_toml
from ktrial.target import Run
from ktrial.workloads.command import CommandWorkload

STUDY = """\
workloads = [{ name = "mine", command = "/bin/true", environment = { KEPT = "1" } }]
[factors.SIZE]
kind = "environment"
levels = ["as it is", "small", "large"]
[machine]
kernel = "debian:6.12"
"""
WITH_COMMANDS = scripted_resources({"mine": CommandWorkload()})


def loaded(tmp_path: Path, text: str) -> Study:
    (tmp_path / "study.toml").write_text(text)
    return load(tmp_path / "study.toml", registry())


def test_each_treatment_has_its_own_environment(tmp_path: Path) -> None:
    study = resolved(loaded(tmp_path, STUDY))
    environments = []
    for treatment in treatments(study):
        (job,) = jobs_of(study, treatment, a_kernel("debian:6.12"), WITH_COMMANDS)
        (step, *_) = job.steps(Mode.EXACT_PLUGIN, Perturbation(number=0))
        assert isinstance(step, Run)
        assert step.environment["KEPT"] == "1"
        environments.append(step.environment.get("SIZE"))
    assert environments == [None, "small", "large"]


def test_the_study_is_written_as_it_was_read(tmp_path: Path) -> None:
    study = loaded(tmp_path, STUDY)
    assert study.factors[0].kind is FactorKind.ENVIRONMENT
    (tmp_path / "again").mkdir()
    assert loaded(tmp_path / "again", study_toml(study)).factors == study.factors


COMMAND = '{ name = "mine", command = "/bin/true", environment = { KEPT = "1" } }'


@pytest.mark.parametrize(
    ("here", "instead", "problem"),
    [
        ("SIZE", "KEPT", "fixed in mine"),
        ("SIZE", '"A=B"', "has no ="),
        (COMMAND, '"fork"', "no workload of this study is a command"),
        ('"small"', '""', "it is empty"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, here: str, instead: str, problem: str) -> None:
    with pytest.raises(StudyMistake, match=problem):
        loaded(tmp_path, STUDY.replace(here, instead))


def test_the_studies_of_fidelity_load_and_have_their_pairs(tmp_path: Path) -> None:
    """Their program is built as the documentation says; a change that it does not know is an error."""
    here = tmp_path / "fidelity"
    shutil.copytree(ROOT / "studies" / "fidelity", here)
    subprocess.run([here / "build"], check=True)
    studies = [load(file, registry()) for file in sorted(here.glob("*.toml"))]
    pairs = sum((len(treatments(study)) - 2) * len(study.workloads) for study in studies)
    assert pairs == 557
    for study in studies:
        assert study.factors[0].baseline == "none"
        assert "nothing" in study.factors[0].levels
    wrong = subprocess.run(
        [here / "operations", "fork"], env={"CHANGE": "no-such"}, capture_output=True, check=False
    )
    assert (wrong.returncode, wrong.stderr) == (2, b"there is no change no-such\n")
