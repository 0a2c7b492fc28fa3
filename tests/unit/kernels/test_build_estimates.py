"""How long a build takes, and what is left of it: from what kbuild wrote down, and from past builds."""

import os
import re
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import FakeBuilder, a_buildable_source

from ktrial.cli import progress
from ktrial.kernels import Progress
from ktrial.kernels.build import make
from ktrial.kernels.build.build_trees import files_compiled, files_touched
from ktrial.kernels.build.make import (
    Teller,
    build_seconds,
    expected_files,
    lines_and_silences,
    remember_build,
)
from ktrial.model.kernel import Build, Kernel

SYSTEM_CALLS = "arch/x86/include/generated/uapi/asm/unistd_64.h"
CONFIG = "CONFIG_SMP=y\nCONFIG_SLUB=y\nCONFIG_HZ=250\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiled(build: Path, path: str, *made_from: str) -> None:
    """As kbuild leaves it beside an object: the command, then what it was made from."""
    target = build / path
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = " \\\n".join(
        f"    $(wildcard {entry})" if "config/" in entry else f"  {entry}" for entry in made_from
    )
    text = f"cmd_{path} := gcc -O2 -c ../{path}\n\nsource_{path} := ../{path[:-2]}.c\n\n"
    (target.parent / f".{target.name}.cmd").write_text(f"{text}deps_{path} := \\\n{lines} \\\n")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    home = tmp_path / "build"
    compiled(home, "mm/slub.o", "include/config/SLUB", "include/config/SMP", "../include/linux/slab.h")
    compiled(home, "mm/old.o", "include/config/slub/cpu/partial.h", "../include/linux/slab.h")
    compiled(home, "kernel/sched/fair.o", "include/config/SMP", "include/config/HZ_250")
    compiled(home, "kernel/fork.o", "../include/linux/mm.h", SYSTEM_CALLS)
    (home / "vmlinux").write_text("")
    return home


@pytest.mark.parametrize(
    ("after", "paths", "lines"),
    [
        (CONFIG, (), 0),
        (CONFIG.replace("SLUB=y", "SLUB=n"), (), 1 + 2),  # one object, and the archives of mm/ and the top
        (f"{CONFIG}CONFIG_SLUB_CPU_PARTIAL=y\n", (), 1 + 2),  # as kernels before 5.16 name it
        (CONFIG.replace("CONFIG_SMP=y\n", ""), (), 2 + 4),
        (CONFIG.replace("250", "1000"), (), 0),  # HZ_250 is another option than HZ
        (CONFIG, ("include/linux/slab.h",), 2 + 2),
        (CONFIG, ("kernel/nowhere.c",), 0),
        (CONFIG, ("arch/x86/entry/syscalls/syscall_64.tbl",), 1 + 2),  # by the header that is made of it
        (CONFIG, ("mm/slub.c", "kernel/fork.c"), 2 + 3),
        (CONFIG, ("mm/slub.h",), 0),  # what is called like a file that is compiled
    ],
)
def test_what_a_change_touches_is_counted(
    build: Path, after: str, paths: tuple[str, ...], lines: int
) -> None:
    assert files_touched(build, CONFIG, after, paths) == lines
    assert files_compiled(build) == 4


def told(expected: int, lines: Iterable[str], monkeypatch: pytest.MonkeyPatch, jobs: int = 1) -> list[str]:
    """What is said where make prints a line each ten seconds; an empty one: it prints nothing."""
    messages: list[str] = []
    moments = iter(range(0, 100_000, 10))
    # Only the build's own clock: other threads of this process read the time, too.
    clock = SimpleNamespace(monotonic=lambda: next(moments), sleep=time.sleep)
    monkeypatch.setattr("ktrial.kernels.build.make.time", clock)
    teller = Teller(lambda step, finished=0, total=0: messages.append(step), "building", expected, jobs)
    for line in lines:
        teller(line)
    return messages


def files(count: int) -> list[str]:
    return [f"  CC      kernel/{number}.o\n" for number in range(count)]


def test_a_rebuild_says_how_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    message = told(30, files(31), monkeypatch)
    assert message[3] == "building: 3 of about 30 files, about 4 min left"
    assert message[29].endswith("less than a minute left")
    assert message[-1] == "building: 31 files", "more than was expected: nothing is pretended"


def test_the_first_line_of_a_build_has_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the last build from nothing; before there is one, by what is usual."""
    assert told(1440, (), monkeypatch) == ["building: about 1,440 files, about 10 min left"]
    assert told(1440, (), monkeypatch, jobs=4) == ["building: about 1,440 files, about 3 min left"]
    make.remember_files(CONFIG, 100, 200.0)
    assert told(1440, (), monkeypatch) == ["building: about 1,440 files, about 48 min left"]
    assert told(0, (), monkeypatch) == ["building"]


def test_a_link_that_takes_long_is_named_while_make_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    message = told(
        2, [*files(1), "  LD      vmlinux.o\n", "", "", "  BTF     .btf.vmlinux.bin.o\n"], monkeypatch
    )
    assert message[1:] == [
        "building: 1 of about 2 files, less than a minute left",
        "building: 2 files",
        "building: 2 files; LD vmlinux.o has taken 10 s",
        "building: 2 files; LD vmlinux.o has taken 20 s",
    ]


def test_lines_come_as_they_are_written_and_silences_between_them() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as stream:  # noqa: PTH123 - a descriptor
        coming = lines_and_silences(stream, 0.001)
        assert next(coming) == ""
        os.write(writing, "  CC      a.o\n  CC      \xff".encode("latin-1"))
        assert next(line for line in coming if line) == "  CC      a.o\n"
        assert next(coming) == "", "half a line is none yet"
        os.write(writing, b".o\nmake: ***")
        os.close(writing)
        assert [line for line in coming if line] == ["  CC      \ufffd.o\n", "make: ***"]


def test_builds_that_begin_with_anothers_tree_tell_how_long_the_next_takes() -> None:
    assert build_seconds() is None
    remember_build(600.0, from_nothing=True)
    assert build_seconds() == 600.0
    for seconds in (20.0, 50.0, 30.0):
        remember_build(seconds, from_nothing=False)
    assert build_seconds() == 30.0
    make.remember_files(CONFIG, 20, 9.0)
    assert expected_files(CONFIG) == 20
    assert build_seconds() == 30.0, "the one does not forget the other"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"builds": 3}', '{"builds": [{}]}', '{"files_an_option": "x"}']
)
def test_a_memory_that_cannot_be_read_is_none(text: str, cache: Path) -> None:
    remember_build(1.0, from_nothing=True)
    (cache / "trees/rate.json").write_text(text)
    assert build_seconds() is None
    assert expected_files(CONFIG) > 0
    remember_build(2.0, from_nothing=False)
    assert build_seconds() == 2.0


def test_kernel_build_writes_a_line_to_a_log_each_half_minute_with_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve minutes of a build that ends with an error; standard error is no terminal."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now

    def slow_build(spec: Build, progress: Progress) -> Kernel:
        teller = Teller(progress, "building", 1440, jobs=2)
        for line in files(1440):
            clock.now += 0.5
            teller(line)
        raise FakeBuilder.failed()

    monkeypatch.setattr("ktrial.kernels.build.builds.build", slow_build)
    for module in (make, progress):
        monkeypatch.setattr(module, "time", clock)
    result = CommandLine(monkeypatch, capsys)("kernel", "build", a_buildable_source(tmp_path / "linux"))
    lines = [line for line in result.messages.splitlines() if " s: " in line]
    assert lines[0] == "0 s: building: about 1,440 files, about 5 min left"
    assert re.fullmatch(r"30 s: building: 60 of about 1,440 files, about 1\d min left", lines[1])
    seconds = [int(line.partition(" ")[0]) for line in lines]
    assert seconds[-1] > 680
    assert max(later - earlier for earlier, later in pairwise(seconds)) <= 32
