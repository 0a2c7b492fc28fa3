"""Every study that ktrial brings can be run as it is, with the workloads and providers that there are."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.support.places import STUDIES

from ktrial.cli.studies import registry
from ktrial.model.base import Model, keys_of
from ktrial.model.study import MachineSettings, plan
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import MetricRule
from ktrial.studyfile import toml_files
from ktrial.studyfile.reader import load
from ktrial.studyfile.tables import FactorTable, KernelTable, SearchTable, StudyTable, WorkloadTable
from ktrial.workloads import DEFAULT

PATCH = "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1 +1 @@\n-old\n+new\n"
FILES = sorted(STUDIES.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_study_that_ktrial_brings_has_no_mistake(file: Path, tmp_path: Path) -> None:
    patch = tmp_path / "my.patch"
    patch.write_text(PATCH)
    study = load(file, registry(), [str(patch)] if '"?"' in file.read_text() else [])
    assert study.name == file.stem
    assert study.question.endswith("?")
    assert len(plan(study).treatments) > 1


def test_a_study_that_ktrial_brings_is_found_by_its_name_where_no_such_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert toml_files.file_of(Path("quick")) == STUDIES / "quick.toml"
    assert list(toml_files.names()) == [file.stem for file in FILES]
    for elsewhere in ("quick.toml", "./no/quick", "nothing"):
        assert toml_files.file_of(Path(elsewhere)) == Path(elsewhere)
    Path("quick").write_text("")
    assert toml_files.file_of(Path("quick")) == Path("quick")


def test_the_wheel_has_the_studies() -> None:
    built = tomllib.loads((STUDIES.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"]["force-include"] == {
        "LICENSE": "ktrial/LICENSE",
        "studies": "ktrial/studies",
        "src/ktrial_launcher.py": "ktrial_launcher.py",
    }


def test_the_studies_are_inside_of_the_package_in_a_wheel_and_above_it_in_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "ktrial"
    monkeypatch.setattr(toml_files, "package_directory", lambda: package)
    for place in (tmp_path / "studies", package / "studies"):
        place.mkdir(parents=True)
        (place / "mine.toml").write_text(f'question = "in {place.parent.name}?"')
        assert toml_files.names() == {"mine": f"in {place.parent.name}?"}
        assert toml_files.file_of(Path("mine")) == place / "mine.toml"


def test_the_quick_study_is_two_kernels_and_six_workloads() -> None:
    study = load(STUDIES / "quick.toml", registry())
    assert [factor.levels for factor in study.factors] == [("debian:6.1", "debian:6.12")]
    assert len(study.workloads) == 6
    assert study.workloads[-1].name == "nqueens", "the null control"


def test_the_kernel_versions_study_runs_every_built_in_workload() -> None:
    study = load(STUDIES / "kernel-versions.toml", registry())
    assert {use.name for use in study.workloads} == set(DEFAULT)
    assert len(study.factors[0].levels) == 5


def test_init_on_alloc_is_a_boot_parameter_of_one_kernel() -> None:
    study = load(STUDIES / "init-on-alloc.toml", registry())
    [factor] = study.factors
    assert (factor.kind.value, factor.target, factor.levels) == ("boot", "init_on_alloc", (0, 1))
    assert study.machine.kernel == "debian:6.12"


def test_a_broken_plugin_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    warning = DataWarning(
        kind=WarningKind.PLUGIN_BROKEN, text="the machine xen is broken", advice="update it"
    )
    monkeypatch.setattr("ktrial.machines.installed", lambda: ({}, (warning,)))
    registry()
    assert capsys.readouterr().err == "ktrial: warning: the machine xen is broken\nhint: update it\n"


@pytest.mark.parametrize(
    "table", [StudyTable, FactorTable, KernelTable, MachineSettings, WorkloadTable, MetricRule, SearchTable]
)
def test_every_key_is_documented(table: type[Model]) -> None:
    page = (STUDIES.parent / "docs" / "studies.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(keys_of(table)) <= rows


@pytest.mark.parametrize("place", ["studies/papers/nqueens.csv", "studies/quick.toml"])
def test_what_the_documentation_names_is_found_from_anywhere(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert toml_files.file_of(Path(place)) == toml_files.directory() / Path(place).relative_to("studies")
    assert toml_files.file_of(Path("studies/../secret")) == Path("studies/../secret")
    assert toml_files.file_of(Path("studies/none.toml")) == Path("studies/none.toml")
    mine = tmp_path / place
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert toml_files.file_of(Path(place)) == Path(place)
