"""Directories and patterns among a workload's files."""

import os
import socket
from pathlib import Path

import pytest

from ktrial.model.machine import CarriedFile
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Command, WorkloadUse
from ktrial.workloads import host_files
from ktrial.workloads.command import WORKLOAD
from ktrial.workloads.errors import BadWorkload, WorkloadError
from ktrial.workloads.host_files import with_all_they_need


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "below" / "empty").mkdir(parents=True)
    (top / "below" / "b.py").write_text("b\n")
    (top / "a.py").write_text("a\n")
    (top / "run").write_text("#!/bin/sh\n")
    (top / "run").chmod(0o755)
    (top / "link").symlink_to("below/b.py")
    (top / "outside").symlink_to("/etc")
    (top / "below").chmod(0o1777)
    return top


def carried(*names: str | Path) -> dict[str, CarriedFile]:
    return {each.guest: each for each in with_all_they_need("mine", tuple(map(str, names)))}


def test_a_directory_brings_all_that_is_below_it(tree: Path) -> None:
    files = carried(tree)
    below = {str(path) for path in (tree, *tree.rglob("*"))}
    assert below <= files.keys()
    assert files[f"{tree}/below/empty"].directory
    assert files[f"{tree}/below"].mode == 0o1777
    assert files[f"{tree}/run"].mode == 0o755
    assert "/bin/sh" in files


def test_links_stay_links_and_are_not_followed(tree: Path) -> None:
    files = carried(tree)
    assert files[f"{tree}/link"].link == "below/b.py"
    assert files[f"{tree}/outside"].link == "/etc"
    assert not [path for path in files if path.startswith(f"{tree}/outside/")]


def test_the_same_directory_twice_is_carried_once(tree: Path) -> None:
    files = with_all_they_need("mine", (str(tree), str(tree / "below"), str(tree)))
    assert len(files) == len({each.guest for each in files})


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", {"a.py"}),
        ("**/*.py", {"a.py", "below/b.py"}),
        ("[ab].py", {"a.py"}),
        ("b*", {"below", "below/b.py", "below/empty"}),
    ],
)
def test_a_pattern_brings_what_it_finds(tree: Path, pattern: str, names: set[str]) -> None:
    assert carried(f"{tree}/{pattern}").keys() == {f"{tree}/{name}" for name in names}


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tree: Path) -> None:
    (tree / "[a].py").write_text("")
    assert carried(tree / "[a].py").keys() == {f"{tree}/[a].py"}


def test_a_pattern_that_finds_nothing_is_an_error(tree: Path) -> None:
    with pytest.raises(WorkloadError, match="no file matches this pattern"):
        carried(f"{tree}/*.nothing")


def test_what_is_no_file_is_left_out_and_told_with_the_result(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        (Path(os.fsdecode(b"\xff"))).write_text("")
        assert not {f"{tree}/pipe", f"{tree}/socket"} & carried(tree).keys()
        use = WorkloadUse(name="mine", command=Command(argv=("/bin/true",), files=(str(tree),)))
        (warning,) = WORKLOAD.warnings(use, ())
    assert warning.kind is WarningKind.FILES
    assert "mine: 3 of what is in its directories is left out: " in warning.text
    for told in (f"{tree}/pipe (a FIFO)", f"{tree}/socket (a socket)", "\\xff (its name is not UTF-8)"):
        assert told in warning.text


def test_data_that_is_a_damaged_or_foreign_program_is_data_in_a_directory(tree: Path) -> None:
    (tree / "cut").write_bytes(Path("/bin/true").read_bytes()[:100])
    (tree / "gone").write_text("#!/no/such/interpreter\n")
    assert {f"{tree}/cut", f"{tree}/gone"} <= carried(tree).keys()


def test_too_many_files_are_refused_before_all_are_looked_at(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_files, "MOST_FILES", 5)
    with pytest.raises(BadWorkload, match="too many or too large for a guest: more than 5 files"):
        carried(tree)


def test_too_much_is_refused_with_where_most_of_it_is(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "below" / "large").write_bytes(bytes(3000))
    monkeypatch.setattr(host_files, "MOST_BYTES", 2000)
    with pytest.raises(BadWorkload) as caught:
        carried(tree)
    assert "too many or too large for a guest: 9 files, 2.9" in str(caught.value).replace("\u00a0", " ")
    assert f"most is in {tree}/below (2.9" in str(caught.value.advice).replace("\u00a0", " ")
