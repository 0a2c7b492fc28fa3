"""Settings of a system, read and written in place: a tree of files stands for the kernel's."""

import os
from pathlib import Path

import pytest

from ktrial.target import Read, Run, StepResult, Write
from ktrial.target.local import LocalTarget


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`/proc/sys/vm/swappiness` is 60; `/sys/block/vda` is a link, as in a real /sys."""
    for name, text in {
        "proc/sys/vm/swappiness": "60\n",
        "proc/stat": "cpu 1 2\n",
        "sys/devices/vda/queue/read_ahead_kb": "128\n",
        "etc/passwd": "root\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/vda").symlink_to("../devices/vda")
    (tmp_path / "sys/escape").symlink_to("../etc/passwd")
    (tmp_path / "sys/to_proc").symlink_to("../proc/stat")
    (tmp_path / "sys/loop").symlink_to("loop")
    os.mkfifo(tmp_path / "sys/fifo")
    return tmp_path


def read(root: Path, path: str) -> StepResult:
    (result,) = LocalTarget(root).perform((Read(path=path),))
    return result


def write(root: Path, path: str, value: str) -> StepResult:
    (result,) = LocalTarget(root).perform((Write(path=path, value=value),))
    return result


def why(result: StepResult) -> tuple[str, str]:
    assert result.failure is not None
    return result.failure.name, result.failure.text


def test_a_setting_is_read_before_and_after_it_is_written(root: Path) -> None:
    result = write(root, "/proc/sys/vm/swappiness", "99\n")
    assert (result.failure, result.before, result.after) == (None, "60", "99")
    assert read(root, "/proc/sys/vm/swappiness").content == "99\n"


def test_links_inside_sys_are_followed(root: Path) -> None:
    assert write(root, "/sys/block/vda/queue/read_ahead_kb", "256").before == "128"


@pytest.mark.parametrize(
    ("path", "name", "text"),
    [
        ("/proc/sys/vm/absent", "ENOENT", "No such file"),
        ("/sys/escape", "", "which is not below /proc/sys and /sys"),
        ("/sys/../etc/passwd", "", "which is not below"),
        ("/sys/../nothing/there", "", "which is not below"),
        ("/etc/passwd", "", "which is not below"),
        ("/sys/to_proc", "", "which is not below"),
        ("/proc/stat", "", "which is not below"),
        ("/sys/block", "EISDIR", "Is a directory"),
        ("/sys/fifo", "", "not a regular file"),
        ("/sys/a\0b", "", "NUL"),
        ("/sys/" + "a" * 300, "ENAMETOOLONG", "too long"),
    ],
)
def test_what_cannot_be_written_says_why(root: Path, path: str, name: str, text: str) -> None:
    found_name, found_text = why(write(root, path, "1"))
    assert found_name == name
    assert text in found_text
    assert (root / "etc/passwd").read_text() == "root\n"
    assert (root / "proc/stat").read_text() == "cpu 1 2\n"


def test_nothing_outside_proc_and_sys_is_read(root: Path) -> None:
    assert read(root, "/proc/stat").content == "cpu 1 2\n"
    assert read(root, "/sys/to_proc").content == "cpu 1 2\n"
    for path in ("/etc/passwd", "/sys/escape", "/proc/../etc/passwd", "/sys/loop"):
        result = read(root, path)
        assert why(result)
        assert result.content == ""


def test_a_long_file_is_cut_and_said_to_be(root: Path) -> None:
    (root / "sys/long").write_text("a" * (2 << 20))
    result = read(root, "/sys/long")
    assert len(result.content) == 1 << 20
    assert "longer than" in why(result)[1]


def test_any_other_step_fails_and_the_steps_after_it_are_done(root: Path) -> None:
    ran, seen = LocalTarget(root).perform((Run(argv=("true",)), Read(path="/proc/stat")))
    assert why(ran) == ("", "run: only settings are done here")
    assert (seen.step, seen.content) == (1, "cpu 1 2\n")


def test_this_systems_own_files_are_read() -> None:
    (release,) = LocalTarget().perform((Read(path="/proc/sys/kernel/osrelease"),))
    assert release.content.strip() == os.uname().release
