"""`import ktrial` from somebody else's program: studies, runs, results, explanations, measurements."""

import csv
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from tests.support.command_line import STUDY
from tests.support.places import ROOT
from tests.support.report_records import a_record
from tests.support.scripted import ScriptedMachine, scripted_resources

import ktrial
from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.experiment import session
from ktrial.model.study import StudyRecord
from ktrial.store.store import open_store

HEAVY = ("pydantic", "numpy", "sqlalchemy", "rich", "scipy", "altair", "typer")
MISUSES = {
    'ktrial.open_shop("x")': "attr-defined",
    "ktrial.plugins.Gadget": "attr-defined",
    "ktrial.run(7)": "arg-type",
    'ktrial.compare("debian:6.1", ["fork"], margin="1%")': "arg-type",
    'ktrial.open_store().result("quick").to_csv("trials")': "arg-type",
}


@pytest.fixture
def stored(tmp_path: Path) -> StudyRecord:
    made = a_record(workloads=("fork", "pipe"))
    with open_store(tmp_path / "trials.db") as store:
        number = store.study(made.study)
        for trial in made.trials:
            assert store.add_trial(number, trial)
        return load_record(store, number)


@pytest.fixture
def result(stored: StudyRecord, tmp_path: Path) -> ktrial.StudyResult:
    with ktrial.open_store(tmp_path / "trials.db") as store:
        return store.result(stored.study.name)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials run on a scripted machine, with kernels that are made up."""
    real = session.run

    def run(study: ktrial.Study, **how: Any) -> StudyRecord:
        return real(study, **(how | {"machine": ScriptedMachine(), "resources": scripted_resources()}))

    monkeypatch.setattr("ktrial.experiment.session.run", run)


def test_importing_it_loads_nothing_that_takes_time() -> None:
    code = (
        "import sys; before = set(sys.modules); import ktrial; dir(ktrial);"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name for name in loaded if name.partition(".")[0] == "ktrial"} == {
        *("ktrial", "ktrial.installation")
    }
    assert not {name.partition(".")[0] for name in loaded}.intersection(HEAVY)
    assert len(loaded) < 40, loaded


def test_a_result_says_what_the_record_holds(result: ktrial.StudyResult, stored: StudyRecord) -> None:
    assert (result.name, result.study, result.answer) == ("quick", stored.study, stored.result.answer)
    assert (result.comparisons, result.trials) == (stored.result.comparisons, stored.trials)
    assert (result.warnings, result.complete) == (stored.result.warnings, True)
    assert isinstance(result.comparisons[0], ktrial.Comparison)
    assert isinstance(result.comparisons[0].verdict, ktrial.Verdict)
    assert isinstance(result.trials[0], ktrial.Trial)
    assert result.trials[0].outcome is ktrial.Outcome.COMPLETED
    assert isinstance(result.trials[0].samples[0], ktrial.Sample)
    assert repr(result) == f"<StudyResult quick: {stored.result.answer}>"


def test_its_forms_are_those_of_the_reports(result: ktrial.StudyResult, stored: StudyRecord) -> None:
    assert result.to_html() == report.study_html(stored)
    assert result.to_markdown() == report.study_markdown(stored)
    assert result.to_csv() == report.comparisons_csv(stored)
    assert result.to_csv("samples") == report.samples_csv(stored)


@pytest.mark.parametrize("rows", ["comparisons", "samples"])
def test_a_frame_has_the_rows_of_csv(
    result: ktrial.StudyResult, rows: Literal["comparisons", "samples"]
) -> None:
    frame = result.to_frame(rows)
    table = list(csv.DictReader(io.StringIO(result.to_csv(rows))))
    names = [name for name in table[0] if name != "scatter"]
    assert list(frame.columns) == names
    for name in names:
        text = ["" if value is None or value != value else str(value) for value in frame[name]]
        assert text == [row[name] for row in table], name
    assert frame["value"].dtype == float


def test_polars_makes_the_frame_where_there_is_no_pandas(
    result: ktrial.StudyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = ModuleType("polars")  # the real one is in test_notebook_use.py
    stand_in.__dict__["DataFrame"] = type("DataFrame", (dict,), {"__module__": "polars"})
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", stand_in)  # and taken out again: charts look there, too
    frame = result.to_frame()
    assert type(frame).__module__ == "polars"
    assert frame["workload"] == [row.workload for row in result.comparisons]
    assert frame["verdict"] == [row.verdict.value for row in result.comparisons]


def test_without_either_the_error_says_what_to_install(
    result: ktrial.StudyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ktrial.KtrialError, match="pandas or polars") as refused:
        result.to_frame()
    assert "pip install pandas" in refused.value.advice


def test_a_study_that_is_not_there_is_told_with_those_like_it(stored: StudyRecord, tmp_path: Path) -> None:
    with (
        ktrial.open_store(tmp_path / "trials.db", read_only=True) as store,
        pytest.raises(ktrial.KtrialError, match="quikc") as refused,
    ):
        store.result("quikc")
    assert "quick" in refused.value.message + refused.value.advice


@pytest.mark.usefixtures("scripted")
def test_a_study_from_a_file_runs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "upgrade.toml").write_text(STUDY)
    study = ktrial.load_study(tmp_path / "upgrade.toml")
    first = ktrial.run(study, store=tmp_path / "trials.db")
    again = ktrial.run(study, store=tmp_path / "trials.db", jobs=1)
    assert [row.verdict for row in first.comparisons] == [row.verdict for row in again.comparisons]
    assert [trial.started for trial in first.trials] == [trial.started for trial in again.trials]
    assert first.complete
    with ktrial.open_store(tmp_path / "trials.db") as store:
        assert store.result("upgrade").comparisons == first.comparisons


@pytest.mark.usefixtures("scripted")
def test_a_study_made_in_python_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "upgrade.toml").write_text(STUDY)
    made = ktrial.Study(
        name="upgrade",
        question="What did the upgrade cost?",
        factors=(ktrial.Factor.of("kernel", ["debian:6.1", "debian:6.12"]),),
        workloads=(ktrial.Workload(name="fork"), ktrial.Workload(name="pipe")),
        machine=ktrial.Machine(),
        perturbations=2,
    )
    assert made == ktrial.load_study(tmp_path / "upgrade.toml")
    assert ktrial.run(made, store=tmp_path / "trials.db").complete


@pytest.mark.parametrize("levels", [[], ["debian:6.1"], ["debian:6.1", "debian:6.1"]])
def test_a_factor_has_two_levels_that_differ(levels: list[str]) -> None:
    with pytest.raises(ValueError, match="at least two levels"):
        ktrial.Factor.of("kernel", levels)


def test_a_factor_is_of_a_kind_that_there_is() -> None:
    with pytest.raises(ValueError, match="'kernel', 'boot', 'setting'"):
        ktrial.Factor.of("kernle", ["a", "b"])


def test_studies_that_come_with_ktrial_have_names() -> None:
    assert ktrial.load_study("quick") == ktrial.load_study(ROOT / "studies" / "quick.toml")


@pytest.mark.usefixtures("scripted")
def test_kernels_are_compared_without_a_study_file(tmp_path: Path) -> None:
    result = ktrial.compare(
        ["debian:6.1", "debian:6.12"],
        ["fork"],
        store=tmp_path / "trials.db",
        margin=0.03,
        perturbations=1,
        memory="256M",
        boot=["quiet"],
    )
    machine = result.study.machine
    assert (result.study.margin, machine.memory_mib, machine.boot) == (0.03, 256, ("quiet",))
    assert [row.workload for row in result.comparisons] == ["fork"]


def test_what_compare_is_given_is_checked_as_a_study_is(tmp_path: Path) -> None:
    with pytest.raises(ktrial.KtrialError, match="getpidd"):
        ktrial.compare(["debian:6.1", "debian:6.12"], ["getpidd"], store=tmp_path / "trials.db")
    assert not (tmp_path / "trials.db").exists()


def test_a_search_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text(
        'workloads = ["fork"]\nmachine = "host"\n[search]\nknobs = ["vm.swappiness"]\n'
    )
    with pytest.raises(ktrial.KtrialError, match=r"\[search\]"):
        ktrial.run(ktrial.load_study(tmp_path / "tune.toml"), store=tmp_path / "trials.db")


def test_an_explanation_boots_nothing_where_that_is_not_wanted(result: ktrial.StudyResult) -> None:
    with pytest.raises(ktrial.KtrialError, match="fork"):
        ktrial.explain(result, workload="fork", boot=False)


def test_measurements_of_another_tool_are_read() -> None:
    read = ktrial.load_measurements(ROOT / "tests" / "data" / "foreign" / "hyperfine.json")
    assert (read.format, len(read.families)) == ("hyperfine", 1)


@pytest.mark.nightly  # a minute of CPU time; mypy reads the package in `make test`, too
def test_mypy_has_nothing_to_say_about_a_program_that_uses_it_well(tmp_path: Path) -> None:
    """And an error for each misuse. Without the project's own settings: as for a program outside."""
    misuse = tmp_path / "misuse.py"
    misuse.write_text("\n".join(["import ktrial", *MISUSES]) + "\n")
    cache = ROOT / ".mypy_cache" / "api"
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", "--no-pretty")
    files = (ROOT / "tests" / "unit" / "api" / "example_of_use.py", misuse)
    told = subprocess.run([*mypy, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.stderr == ""
    lines = [line.rpartition("/misuse")[2] for line in told.stdout.splitlines() if ": error: " in line]
    assert [line.partition(": ")[0] for line in lines] == [
        f".py:{number}" for number in range(2, 2 + len(MISUSES))
    ], told.stdout
    assert [line.rpartition("[")[2] for line in lines] == [f"{code}]" for code in MISUSES.values()]
