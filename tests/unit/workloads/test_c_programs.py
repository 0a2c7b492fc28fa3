"""C files as workloads: compiled here, once, and never run here."""

import subprocess
from pathlib import Path

import pytest

from ktrial.workloads.c_programs import program_of
from ktrial.workloads.errors import BadWorkload, WorkloadError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def a_source(place: Path, text: str = "int main(void) { return 7; }") -> Path:
    file = place / "reproducer.c"
    file.write_text(text)
    return file


def program(source: Path) -> Path:
    use = program_of(source)
    assert use.command is not None
    assert use.command.files == use.command.argv
    return Path(use.command.argv[0])


def test_it_is_one_program_without_shared_libraries_that_runs_once(tmp_path: Path) -> None:
    use = program_of(a_source(tmp_path))
    assert use.name == "reproducer"
    assert use.command is not None
    assert (use.command.repeats, use.command.discarded) == (1, 0)
    assert subprocess.run(use.command.argv, check=False).returncode == 7
    assert b".interp" not in Path(use.command.argv[0]).read_bytes()


def test_it_is_compiled_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    first = program(a_source(tmp_path))
    before = first.stat().st_mtime_ns
    assert program(a_source(tmp_path)) == first
    assert first.stat().st_mtime_ns == before
    assert program(a_source(tmp_path, "int main(void) { return 8; }")) != first


def test_the_same_source_under_two_names_is_two_programs(tmp_path: Path) -> None:
    first = a_source(tmp_path)
    second = first.with_name("second.c")
    second.write_text(first.read_text())
    assert [program(first).name, program(second).name] == ["reproducer", "second"]
    assert program(first).is_file()
    assert program(second).is_file()


def test_nothing_of_it_runs_here(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program_of(a_source(tmp_path, f'#include <stdio.h>\nint main(void) {{ fopen("{mark}", "w"); }}'))
    assert not mark.exists()


def test_files_beside_it_are_no_part_of_it(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "near.h").write_text("int near;")
    with pytest.raises(BadWorkload, match=r"near\.h: No such file"):
        program_of(a_source(tmp_path, '#include "near.h"\nint main(void) { return near; }'))
    assert list((cache / "programs").iterdir()) == [], "nothing is left of what does not compile"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("int main(void) { return nothing; }", r"reproducer.c:1:25: error: .nothing. undeclared"),
        ("#" + " " * (1 << 20), "has more than 1 MiB"),
        (None, "there is no such file"),
    ],
    ids=["error", "large", "none"],
)
def test_what_is_no_c_file_is_refused(text: str | None, problem: str, tmp_path: Path) -> None:
    source = tmp_path / "reproducer.c" if text is None else a_source(tmp_path, text)
    with pytest.raises(BadWorkload, match=problem):
        program_of(source)


def test_without_a_compiler_it_is_said_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ktrial.system_tools.Tool.path", lambda _tool: None)
    with pytest.raises(WorkloadError, match="there is no gcc here"):
        program_of(a_source(tmp_path))
