"""Builds that were stopped, failed, or run twice at once: what is kept of them. No compiler runs."""

import fcntl
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import a_buildable_source, compiled, has_what_builds_need

from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.kernels.build.build_trees import kept_trees
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildCutShort, BuildFailed
from ktrial.model.kernel import Build


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


def asked(source: Path | str, **parts: object) -> Build:
    return requested(str(source), directory=Path("/"), **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_stops_a_build_is_told_how_it_goes_on(
    number: signal.Signals,
    status: int,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(*_: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)

    monkeypatch.setattr("ktrial.kernels.build.builds.build", stopped)
    result = CommandLine(monkeypatch, capsys)("kernel", "build", source)
    assert result.status == status
    assert "Interrupted: what was compiled is kept" in result.messages
    assert "hint: run the same command again: it goes on from there" in result.messages


def interrupted(cache: Path, monkeypatch: pytest.MonkeyPatch, spec: Build) -> None:
    """Begin to build it; what compiles is ended when it has come to zz."""

    def progress(step: str, finished: int = 0, total: int = 0) -> None:
        if re.fullmatch(r"building(: about .*)?", step):
            threading.Thread(target=_stop_make, args=(cache,)).start()

    with monkeypatch.context() as context:
        context.setenv("LC_MESSAGES", "zz")
        with pytest.raises(BuildFailed):
            build(spec, progress)


def test_an_interrupted_build_goes_on_where_it_was(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "kernel/zz.c").write_text("int zz;\n")
    interrupted(cache, monkeypatch, asked(source))
    assert compiled(cache) == ["fork", "sched"]
    build(asked(source))
    assert compiled(cache) == ["fork", "sched", "zz"]


def test_what_was_being_written_when_a_build_was_killed_is_made_anew(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "kernel/zz.c").write_text("int zz;\n")
    interrupted(cache, monkeypatch, asked(source))
    (kernel,) = (cache / "trees").glob("*/source/build/kernel")
    (kernel / ".sched.o.cmd").write_text("cmd_kernel/sched.o := gcc -Wp,-MMD,kernel/.sched.o.d -c -o ke")
    build(asked(source))
    assert compiled(cache) == ["fork", "sched", "sched", "zz"]


def test_what_an_interrupted_build_has_left_is_taken_by_no_other_build(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "kernel/zz.c").write_text("int zz;\n")
    spec = asked(source)
    interrupted(cache, monkeypatch, spec)
    build(asked(source, options=["HZ_1000=y"]))
    assert {tree.kernel for tree in kept_trees()} >= {spec.name}
    before = compiled(cache)
    build(spec)
    assert compiled(cache) == sorted([*before, "zz"]), "it went on where it was"


def test_by_command_too_an_interrupted_build_goes_on_behind_another_one(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "kernel/zz.c").write_text("int zz;\n")
    interrupted(cache, monkeypatch, asked(source))
    run = CommandLine(monkeypatch, capsys)
    assert run("kernel", "build", source, "--option", "HZ_1000=y").status == 0
    assert len(kept_trees()) == 2
    before = compiled(cache)
    assert run("kernel", "build", source).status == 0
    assert compiled(cache) == sorted([*before, "zz"])


def test_a_tree_whose_build_failed_serves_the_next(source: Path, cache: Path) -> None:
    (source / "kernel/zz.c").write_text("kernel/zz.c:1:1: ERROR error: oh\n")
    with pytest.raises(BuildFailed, match="ERROR error: oh"):
        build(asked(source))
    (source / "kernel/zz.c").write_text("int zz;\n")
    build(asked(source))
    assert sorted(set(compiled(cache))) == compiled(cache), "nothing was compiled twice"
    assert len(kept_trees()) == 1


def test_a_build_whose_compiler_was_killed_says_nothing_about_its_source(source: Path, cache: Path) -> None:
    """Bisections, series and searches took it for a kernel that does not build."""
    (source / "kernel/zz.c").write_text("gcc: fatal error: Killed signal terminated program cc1 ERROR\n")
    with pytest.raises(BuildCutShort, match="ended from outside") as raised:
        build(asked(source))
    assert isinstance(raised.value, HOST_PROBLEMS)
    assert "dmesg" in raised.value.advice


@pytest.mark.parametrize("words", ["sh: 1: Cannot fork", "make: fork: Resource temporarily unavailable"])
def test_a_build_that_could_start_no_process_says_nothing_about_its_source(
    words: str, source: Path, cache: Path
) -> None:
    """Builds of root are one user's: another build may have all processes that this user may have."""
    makefile = source / "Makefile"
    makefile.write_text(makefile.read_text().replace("\nvmlinux: ", f"\n$(info {words})\nvmlinux: ", 1))
    (source / "kernel/zz.c").write_text("ERROR\n")
    with pytest.raises(BuildCutShort, match="no more processes could be started"):
        build(asked(source))


@pytest.mark.parametrize("name", ["TERM", "KILL", "HUP"])
def test_a_make_that_a_signal_ended_before_it_said_a_word_was_cut_short(
    name: str, source: Path, cache: Path
) -> None:
    makefile = source / "Makefile"
    makefile.write_text(
        makefile.read_text().replace("vmlinux:", f"$(shell kill -{name} $$PPID)\nvmlinux:", 1)
    )
    with pytest.raises(BuildCutShort):
        build(asked(source))


def test_make_is_stopped_at_the_first_error(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other directories that make has begun would go on to their end."""
    makefile = source / "Makefile"
    rule = "vmlinux: other\nother:\n\t@sleep 30; echo other >> $(O)/compiled\n"
    makefile.write_text(makefile.read_text() + rule)
    (source / "kernel/fork.c").write_text("kernel/fork.c:7:1: ERROR error: oh\n")
    monkeypatch.setattr("ktrial.kernels.build.builds.jobs", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)))
    with pytest.raises(BuildFailed, match=r"kernel/fork\.c:7:1: ERROR error: oh"):
        build(asked(source))
    assert "other" not in compiled(cache)


def _stop_make(cache: Path) -> None:
    """As the system does when it is shut down: the process that compiles ends."""
    while len(compiled(cache)) < 2:
        time.sleep(0.01)
    time.sleep(0.2)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            if words.startswith(b"make\0-C\0" + str(cache).encode()):
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:
            continue


def test_two_builds_of_one_kernel_at_once_compile_it_once(source: Path, cache: Path) -> None:
    spec, built = asked(source), []
    threads = [threading.Thread(target=lambda: built.append(build(spec))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [kernel.name for kernel in built] == [spec.name] * 2
    assert compiled(cache) == ["fork", "sched"]


def test_what_is_left_of_a_killed_build_is_waited_for(source: Path, cache: Path, tmp_path: Path) -> None:
    """Compilers whose make was killed go on for a while: nobody else may write where they write."""
    build(asked(source))
    (home,) = (path.parent for path in (cache / "trees").glob("*/tree.json"))
    messages: list[str] = []

    def progress(step: str, finished: int = 0, total: int = 0) -> None:
        messages.append(step)
        if step == "waiting for what is left of an interrupted build":
            left.terminate()

    with (home / "make.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        left = subprocess.Popen(["sleep", "600"], pass_fds=(file.fileno(),))
    assert left.poll() is None
    build(asked(source, options=["HZ_1000=y"]), progress)
    assert left.wait() == -signal.SIGTERM, "it had ended before make began"
    assert messages.index("waiting for what is left of an interrupted build") < messages.index("building")
