"""What `ktrial show` keeps of what it printed: it prints it again at once, and never what is outdated."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from rich.console import Console
from tests.support import report_records
from tests.support.command_line import CommandLine
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile

from ktrial.analysis.result import record
from ktrial.cli import output_cache, show_cache
from ktrial.cli.render.recorded import Recorder, recorded, replay
from ktrial.cli.render.study_result import print_result
from ktrial.experiment.explain import stored_explanations
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings, Study, StudyRecord
from ktrial.model.workload import Command, Mode, WorkloadUse
from ktrial.report import whys
from ktrial.store.store import open_store

FORMS = [(), ("--json",)]
COMPUTING = ("numpy", "scipy", "sqlalchemy")
PROGRAM = f"""\
import sys
from ktrial.cli.main import main
try:
    main()
finally:
    sys.stderr.write(" ".join(name for name in {COMPUTING} if name in sys.modules))
"""
COUNTS = {"debian:6.1": {("fork", ""): 3000, ("map", "ext4"): 500}, "debian:6.12": {("clone", ""): 7001}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("KTRIAL_CACHE", str(directory))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one study of two kernels, each with the profile of one trial of three."""
    return a_store(tmp_path, a_study(workloads=("fork",)))


def a_store(directory: Path, study: Study) -> Path:
    path = directory / "trials.db"
    with open_store(path) as opened:
        number = opened.study(study)
        for kernel, counts in COUNTS.items():
            profile = a_profile(counts, kernel=kernel).model_copy(
                update={"workload": study.workloads[0].label}
            )
            trial = a_trial(planned(kernel), {"fork": float(sum(counts.values()))}, profiles=(profile,))
            counted = tuple(
                one.model_copy(update={"mode": Mode.EXACT_PLUGIN, "workload": profile.workload})
                for one in trial.samples
            )
            opened.add_trial(number, trial.model_copy(update={"samples": counted}))
    return path


Show = Callable[..., str]


@pytest.fixture
def show(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """`ktrial show` with more options: what it prints."""
    cli = CommandLine(monkeypatch, capsys)
    return lambda *options: cli("show", "--store", str(store), *options).output


def forget(cache: Path) -> None:
    """Take away what is kept."""
    for file in (cache / "shown").iterdir():
        file.unlink()


def shown(store: Path, *arguments: str) -> tuple[str, str]:
    """What `ktrial show` prints, and which packages that compute it imports for it."""
    command = [sys.executable, "-c", PROGRAM, "show", "--store", str(store), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=True, timeout=120)
    return done.stdout, done.stderr


@pytest.mark.parametrize("form", FORMS, ids=["text", "json"])
def test_what_was_printed_is_printed_again_without_computing(form: tuple[str, ...], store: Path) -> None:
    first, imported = shown(store, *form)
    assert ("clone" in first, "sqlalchemy" in imported) == (True, True)
    assert shown(store, *form) == (first, "")
    assert shown(store, "quick", *form) == (first, "")
    assert shown(store, "1", *form) == (first, "")


def test_explanations_are_kept_to_the_last_digit(store: Path, cache: Path, show: Show) -> None:
    computed = json.loads(show("--json"))["why"]
    kept = json.loads(show("--json"))["why"]
    assert [function["difference"] for function in kept[0]["functions"]]
    assert kept == computed
    forget(cache)
    assert json.loads(show("--json"))["why"] == computed


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE samples SET value = value + 1 WHERE id = 2",
        "UPDATE studies SET spec = json_set(spec, '$.question', 'Why?')",
        "UPDATE trials SET outcome = 'panicked' WHERE id = 2",
        "DELETE FROM profiles WHERE id = 2",
    ],
)
def test_what_is_stored_now_is_shown(change: str, store: Path, cache: Path, show: Show) -> None:
    before = show("--json")
    with closing(sqlite3.connect(store)) as raw:
        raw.execute(change)
        raw.commit()
    after = show("--json")
    assert after != before
    forget(cache)
    assert show("--json") == after


@pytest.mark.parametrize("damage", [b"", b"{}", b"0\n{}"])
def test_what_was_damaged_is_worked_out_again(damage: bytes, cache: Path, show: Show) -> None:
    first = show()
    (file,) = (cache / "shown").iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage or whole[:-1])
    assert show() == first
    assert file.read_bytes() == whole


def key_of(store: Path, study: str | None = None) -> str:
    key = show_cache.key_of(str(store), study, "text")
    assert key
    return key


def test_the_key_is_another_when_the_kernels_are(store: Path, cache: Path) -> None:
    before = key_of(store)
    assert key_of(store) == before
    values = cache / "kernels" / "by-digest" / "ab" / "values"
    values.mkdir(parents=True)
    (values / "1.json").write_text("{}")
    read = key_of(store)
    (values / "1.json").write_text("[]")
    written = key_of(store)
    names = cache / "kernels" / "names"
    names.mkdir()
    (names / "debian:6.1.json").write_text("{}")
    assert len({before, read, written, key_of(store)}) == 4


def test_the_key_is_another_when_the_program_is(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "stats").mkdir(parents=True)
    (package / "_guest" / "x86_64").mkdir(parents=True)
    (package / "_guest" / "x86_64" / "workloads.json").write_text('[{"name": "fork"}]')
    for module in (show_cache, output_cache):
        monkeypatch.setattr(module, "package_directory", lambda: package)
    keys = {key_of(store)}
    for text in ("A = 1\n", "A = 2\n"):
        (package / "stats" / "welch.py").write_text(text)
        keys.add(key_of(store))
    beside = tmp_path / "site-packages"
    (beside / "scipy-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(beside))
    keys.add(key_of(store))
    assert len(keys) == 4
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "welch.pyc").write_text("")
    assert key_of(store) in keys


SCHEDULER = Factor(name="s", kind=FactorKind.SCHEDULER, levels=("", "/usr/bin/scx"), baseline="")
USES = {
    "a command": WorkloadUse(name="fork", command=Command(argv=("true",))),
    "an installed program": WorkloadUse(name="fio"),
}


@pytest.mark.parametrize(
    "study",
    [
        *(a_study().model_copy(update={"workloads": (use,)}) for use in USES.values()),
        a_study(machine=MachineSettings(kernel="debian:6.1", files=("/usr/bin/env",))),
        a_study(factors=(SCHEDULER,)),
        a_study(kernels=("path:/boot/vmlinuz", "debian:6.1")),
        a_study(kernels=("./vmlinuz", "debian:6.1")),
    ],
    ids=[*USES, "a file", "a scheduler", "a kernel's path", "a kernel's file"],
)
def test_what_rests_on_this_system_is_not_kept(study: Study, tmp_path: Path) -> None:
    assert show_cache.key_of(str(a_store(tmp_path, study)), None, "text") is None


def test_what_is_not_explained_rests_on_the_store_alone(tmp_path: Path) -> None:
    study = a_study().model_copy(update={"workloads": (USES["an installed program"],)})
    path = a_store(tmp_path, study)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DELETE FROM profiles")
        raw.commit()
    assert key_of(path)


@pytest.mark.parametrize("study", ["quick.toml", "nothing", "7"])
def test_what_is_not_found_by_name_or_number_is_not_kept(study: str, store: Path) -> None:
    assert show_cache.key_of(str(store), study, "text") is None


def test_nothing_is_kept_beside_a_plugin(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output_cache.put("a", "kept")
    assert output_cache.get("a") == "kept"
    plugin = EntryPoint("mine", "plugin:KNOBS", "ktrial.knobs")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: EntryPoints([plugin]))
    output_cache.put("b", "kept")
    assert output_cache.get("b") is None


def test_what_is_warned_of_is_told_each_time(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def damaged(*_record: object, **_options: object) -> tuple[()]:
        warnings.warn("the symbols are damaged", stacklevel=1)
        return ()

    monkeypatch.setattr("ktrial.report.whys", damaged)
    cli = CommandLine(monkeypatch, capsys)
    for _ in range(2):
        said = cli("show", "--store", str(store))
        assert (said.status, "the symbols are damaged" in said.messages) == (0, True)


def test_only_the_last_hundred_are_kept(cache: Path) -> None:
    for number in range(100):
        output_cache.put(f"{number}", "kept")
        os.utime(cache / "shown" / f"{number}", (number, number))
    assert output_cache.get("0") == "kept"  # and is the one used last
    output_cache.put("100", "kept")
    assert [output_cache.get(name) for name in ("0", "1", "2", "100")] == ["kept", None, "kept", "kept"]


@pytest.fixture
def result(store: Path) -> StudyRecord:
    with open_store(store) as opened:
        return record(opened, 1)


def test_a_result_that_was_just_printed_is_shown_at_once(
    store: Path, result: StudyRecord, show: Show, cache: Path
) -> None:
    first = show()
    forget(cache)
    with open_store(store) as opened:
        reasons = whys(opened, result, stored_explanations)
    show_cache.keep_result(str(store), result, recorded(result, reasons))
    assert shown(store) == (first, "")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM trials WHERE id = 2",
        "UPDATE trials SET started = '2020-01-01 00:00:00.000000' WHERE id = 2",
        "UPDATE trials SET outcome = 'hung' WHERE id = 2",
    ],
)
def test_a_result_is_not_kept_for_other_trials(
    change: str, store: Path, result: StudyRecord, cache: Path
) -> None:
    with closing(sqlite3.connect(store)) as raw:
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute(change)
        raw.commit()
    show_cache.keep_result(str(store), result, "outdated")
    assert not cache.exists()


def test_where_nothing_can_be_kept_all_the_same_is_shown(cache: Path, show: Show) -> None:
    cache.write_text("a file is in the way")
    assert "clone" in show()
    assert show() == show()


RECORDS = {
    "a matrix": report_records.a_matrix,
    "a single comparison": report_records.a_single_comparison,
    "failures": report_records.a_study_with_failures,
    "no comparison": report_records.a_study_without_comparisons,
    "no trial": report_records.an_empty_study,
    "two factors": report_records.a_factorial,
    "hostile names": report_records.a_hostile_record,
}


def printed(made: StudyRecord, columns: int, *, by_record: bool) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=columns, force_terminal=True, markup=False, emoji=False, highlight=False
    )
    if by_record:
        recorder = Recorder()
        print_result(made, recorder)
        replay(recorder.text(), console)
    else:
        print_result(made, console)
    return file.getvalue()


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("make", RECORDS.values(), ids=RECORDS)
def test_a_record_prints_what_would_have_been_printed(make: Callable[[], StudyRecord], columns: int) -> None:
    direct = printed(make(), columns, by_record=False)
    assert printed(make(), columns, by_record=True) == direct
    assert "\x1b[1m" in direct


def test_only_lines_and_tables_are_recorded() -> None:
    with pytest.raises(TypeError, match="a dict cannot be recorded"):
        Recorder().print({})
