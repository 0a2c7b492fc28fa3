"""Files of workloads, by themselves and in studies."""

import re
from pathlib import Path

import pytest

from ktrial.cli.studies import registry
from ktrial.model.study import Study
from ktrial.studyfile.errors import StudyError, StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.workloads import workload_from_file
from ktrial.studyfile.writer import study_toml

MINE = """
[workload]
name = "mine"
command = ["/bin/cat", "data"]
files = ["data", "lib/*.py"]
directories = ["/var/lib/mine"]
directory = "/srv/mine"
environment = { LANG = "C.UTF-8", EMPTY = "" }
repeats = 5
"""
STUDY = """
workloads = [{workloads}]
[factors.kernel]
levels = ["debian:6.1", "debian:6.12"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("")
    (tmp_path / "data").write_text("")
    (tmp_path / "mine.toml").write_text(MINE)
    return tmp_path / "mine.toml"


def study(directory: Path, workloads: str) -> Study:
    place = directory / "study.toml"
    place.write_text(STUDY.format(workloads=workloads))
    return load(place, registry())


def test_a_file_is_a_workload_with_all_its_keys(mine: Path) -> None:
    use = workload_from_file(mine, registry())
    assert (use.name, use.command and use.command.repeats) == ("mine", 5)
    assert use.command is not None
    assert use.command.argv == ("/bin/cat", f"{mine.parent}/data")
    assert use.command.files == (f"{mine.parent}/data", f"{mine.parent}/lib/*.py")
    assert use.command.directories == ("/var/lib/mine",)
    assert use.command.directory == "/srv/mine"
    assert use.command.environment == {"LANG": "C.UTF-8", "EMPTY": ""}


@pytest.mark.parametrize("named", ['"./mine.toml"', '{ file = "mine.toml" }'])
def test_a_study_names_it(mine: Path, named: str) -> None:
    assert study(mine.parent, named).workloads == (workload_from_file(mine, registry()),)


def test_a_study_may_rename_it_and_say_how_often(mine: Path) -> None:
    (use,) = study(
        mine.parent, '{ file = "mine.toml", name = "other", repeats = 1, discarded = 0 }'
    ).workloads
    assert use.command is not None
    assert (use.name, use.command.repeats, use.command.discarded) == ("other", 1, 0)


def test_the_study_that_repeats_it_needs_no_file_of_it(mine: Path) -> None:
    once = study(mine.parent, '"mine.toml"')
    mine.unlink()
    again = mine.parent / "again.toml"
    again.write_text(study_toml(once))
    assert load(again, registry()).workloads == once.workloads


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("directory =", "folder ="), 7, 'workload.folder: there is no key "folder"'),
        (('"/srv/mine"', '"srv"'), 7, 'workload.directory: found "srv": it is a path in the guest'),
        (('"C.UTF-8"', "1"), 8, "workload.environment: found a table: it is a table of texts"),
        (("repeats = 5", 'repeats = "5"'), 9, 'workload.repeats: found "5"; allowed: a whole number'),
        (('["data", ', '["gone", '), 5, 'workload.files[0]: there is no file "gone"'),
        (("*.py", "*.c"), 5, 'workload.files[1]: no file matches "lib/*.c"'),
        (('command = ["/bin/cat", "data"]', ""), 2, 'workload: the key "command" is missing'),
        (("repeats = 5", "repeats = 5\n[other]"), 10, "other: the file of a workload has one table"),
    ],
)
def test_a_mistake_is_told_with_the_file_s_own_line(
    mine: Path, change: tuple[str, str], line: int, problem: str
) -> None:
    mine.write_text(MINE.replace(*change))
    with pytest.raises(StudyMistake, match=re.escape(f"mine.toml:{line}: {problem}")):
        study(mine.parent, '"mine.toml"')


def test_a_study_file_is_no_workload_file(mine: Path) -> None:
    study(mine.parent, '"syscall"')
    with pytest.raises(StudyMistake, match=r"there is no table \[workload\]"):
        study(mine.parent, '"study.toml"')


def test_a_study_cannot_say_what_stands_in_the_file(mine: Path) -> None:
    with pytest.raises(
        StudyMistake, match=r'workloads\[0\].files: "files" stands in the file of the workload'
    ):
        study(mine.parent, '{ file = "mine.toml", files = ["data"] }')


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"The file of a workload .*gone.toml cannot be read"):
        study(tmp_path, '"gone.toml"')
