"""Kernels built from source: what is asked of make, what is kept, and what goes wrong. No compiler runs."""

import os
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from tests.support.fake_builds import a_source_tree
from tests.support.kernel_images import CONFIG

from ktrial.errors import KtrialError
from ktrial.kernels import kernel_registry
from ktrial.kernels.build import debian_sources, make
from ktrial.kernels.build.builds import add, build_directory, built, name_of
from ktrial.kernels.build.requests import build_request, option_of
from ktrial.kernels.config import config_of
from ktrial.kernels.errors import (
    BadBuildOption,
    BadConfigFile,
    BuildError,
    BuildFailed,
    CacheFull,
    NotASource,
    OptionNotTaken,
)
from ktrial.kernels.packages.apt import Package


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_source_tree(tmp_path / "linux")


def failure(kind: type[KtrialError], source: Path, config: str = "guest", *options: str) -> KtrialError:
    with pytest.raises(kind) as caught:
        add(build_request(source, config, options))
    return caught.value


def test_a_built_kernel_is_in_the_cache_under_the_name_of_its_source(source: Path) -> None:
    kernel = add(build_request(source, options=("HZ_1000=y",)))
    assert kernel.name == name_of(source) == f"source:{source}"
    assert kernel_registry.get(kernel.name) == kernel
    assert kernel.vmlinux is not None
    assert kernel.origin.version == "6.1.7 (guest CONFIG_HZ_1000=y)"
    options = config_of(kernel)
    assert (options["CONFIG_HZ_1000"], options["CONFIG_PVH"], options["CONFIG_SLUB"]) == ("y", "y", "y")


def test_nothing_is_written_into_the_source(source: Path) -> None:
    before = sorted(source.rglob("*"))
    add(build_request(source))
    assert sorted(source.rglob("*")) == before


def test_the_build_directory_is_kept_and_the_same_source_gives_the_same_kernel(source: Path) -> None:
    first = add(build_request(source))
    mark = build_directory(source) / "build" / "kernel.o"
    mark.write_text("compiled before")
    assert add(build_request(source)).digest == first.digest
    assert mark.exists()
    a_source_tree(source, extra=b"another")
    assert add(build_request(source)).digest != first.digest


@pytest.mark.parametrize(
    ("config", "remote", "absent"),
    [
        ("defconfig", "CONFIG_HZ", "CONFIG_PVH"),
        ("file", "CONFIG_EXT4_FS", "CONFIG_PVH"),
        ("guest", "CONFIG_PVH", "CONFIG_HZ"),
    ],
)
def test_a_configuration_is_ktrials_own_the_architectures_or_a_file(
    config: str, remote: str, absent: str, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(CONFIG)
    kernel = add(build_request(source, str(tmp_path / "config") if config == "file" else config, ("SMP=y",)))
    options = config_of(kernel)
    assert remote in options
    assert absent not in options


def test_what_the_caller_has_set_for_other_builds_does_not_reach_make(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAKEFLAGS", "KBUILD_OUTPUT", "KCFLAGS", "ARCH", "LOCALVERSION"):
        monkeypatch.setenv(name, "mine")
    add(build_request(source))
    build = build_directory(source) / "build"
    set_for_make = dict(line.split("=", 1) for line in (build / "environment").read_text().splitlines())
    assert set_for_make["KBUILD_BUILD_USER"] == set_for_make["KBUILD_BUILD_HOST"] == "ktrial"
    assert set_for_make["KBUILD_BUILD_TIMESTAMP"] == "1970-01-01"
    assert (set_for_make["LOCALVERSION"], set_for_make["ARCH"]) == ("", "x86_64")
    assert {"KBUILD_OUTPUT", "KCFLAGS"}.isdisjoint(set_for_make)
    assert "mine" not in (build / "flags").read_text()


def test_what_a_killed_build_left_half_written_is_mended_before_the_next(source: Path) -> None:
    add(build_request(source))
    home = build_directory(source)
    assert not (home / "unfinished").exists()
    noted = home / "build/kernel/.fork.o.cmd"
    noted.parent.mkdir(exist_ok=True)
    noted.write_text("cmd_kernel/fork.o := gcc -Wp,-MM")
    add(build_request(source))
    assert noted.exists(), "a build that was whole is trusted"
    (home / "unfinished").touch()
    add(build_request(source))
    assert not noted.exists()


def test_a_failed_build_shows_the_first_real_error_and_where_the_log_is(source: Path) -> None:
    (source / "broken").touch()
    error = failure(BuildFailed, source)
    assert error.message.endswith("does not build: kernel/fork.c:12:3: error: 'naem' undeclared")
    log = Path(str(error.facts["log"]))
    assert "and another" in log.read_text()
    (source / "broken").unlink()
    assert add(build_request(source)).release == "6.1.7"
    assert "naem" not in log.read_text(), "the log is that of the last build"


def test_a_full_disk_is_told_from_a_broken_source(source: Path) -> None:
    (source / "full").touch()
    failure(CacheFull, source)


@pytest.mark.parametrize(
    ("option", "message", "advice"),
    [
        ("UNKNOWN_TO_ALL=y", "Linux 6.1.7 has no such option", "menuconfig"),
        (
            "NEEDS_BROKEN=y",
            "it became n",
            "init/Kconfig:4; it depends on BROKEN [not defined] && SMP [=y]; not met: BROKEN",
        ),
    ],
)
def test_an_option_that_did_not_take_is_an_error_that_names_it(
    option: str, message: str, advice: str, source: Path
) -> None:
    error = failure(OptionNotTaken, source, "guest", option)
    assert f"CONFIG_{option}" in error.message
    assert "could not be set" in error.message
    assert message in error.message
    assert advice in error.advice


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SMP=y", ("CONFIG_SMP", "y")),
        ("CONFIG_SMP=n", ("CONFIG_SMP", "n")),
        (" HZ=1000 ", ("CONFIG_HZ", "1000")),
        ("PHYSICAL_START=0x1000000", ("CONFIG_PHYSICAL_START", "0x1000000")),
        ("LOCALVERSION=-mine", ("CONFIG_LOCALVERSION", '"-mine"')),
        ('LOCALVERSION="-mine"', ("CONFIG_LOCALVERSION", '"-mine"')),
    ],
)
def test_options_are_written_with_or_without_their_prefix(text: str, meant: tuple[str, str]) -> None:
    assert option_of(text) == meant


@pytest.mark.parametrize("text", ["SMP", "=y", "SMP=", "A B=y", 'X="a"b"', "X=a\nCONFIG_Y=y", "-j=2"])
def test_what_is_no_option_is_refused(text: str) -> None:
    with pytest.raises(BadBuildOption) as caught:
        option_of(text)
    assert caught.value.exit_code == 2


def test_a_directory_that_is_no_source_says_what_it_lacks(tmp_path: Path, source: Path) -> None:
    assert "no such directory" in failure(NotASource, tmp_path / "nowhere").message
    assert "it lacks Makefile" in failure(NotASource, tmp_path).message
    assert "not a directory" in failure(NotASource, source / "Makefile").message


def test_a_source_that_was_built_in_place_is_refused_before_make_refuses_it(source: Path) -> None:
    (source / ".config").touch()
    assert "mrproper" in failure(BuildError, source).advice


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"no option\n"])
def test_a_configuration_file_that_is_none_is_refused(
    content: bytes | None, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_bytes(content)
    assert str(path) in failure(BadConfigFile, source, str(path)).message


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("  CC a.o\na.c:1:2: error: oh\nmake[1]: *** [a.o] Error 1\n", "a.c:1:2: error: oh"),
        ("a.c:1:2: fatal error: b.h: No such file\n", "a.c:1:2: fatal error: b.h: No such file"),
        (
            "ld: x.o: in function `f':\nx.c:(.text+0x1): undefined reference to `g'\n",
            "x.c:(.text+0x1): undef",
        ),
        ("scripts/x: Error: no openssl\nmake: *** [x] Error 2\n", "scripts/x: Error: no openssl"),
        ("make[3]: *** No rule to make target 'a.o'.  Stop.\n", "make[3]: *** No rule to make target 'a.o'."),
        ("  CC      lib/error-inject.o\n", ""),
    ],
)
def test_the_first_real_error_is_found_in_what_make_printed(output: str, error: str) -> None:
    first = make.first_error(output)
    assert first.startswith(error)
    assert bool(first) == bool(error)


def test_there_are_no_more_jobs_than_cores_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    monkeypatch.setattr(make, "free_memory", lambda: 2 << 30)
    assert make.jobs() == 3
    monkeypatch.setattr(make, "free_memory", lambda: 0)
    assert make.jobs() == 1


def test_debians_newest_source_is_chosen_and_an_unknown_one_names_those_that_are_there() -> None:
    def package(name: str, version: str) -> Package:
        return Package(name, version, "suite", "", 1, 1, "", "")

    newer = (package("linux-source-6.1", f"6.1.{number}-1") for number in (9, 100, 20))
    remote = (*newer, package("linux-source-5.10", "5.10.1-1"))
    assert debian_sources.chosen("linux-source-6.1", remote).version == "6.1.100-1"
    with pytest.raises(BuildError, match="has no source package") as caught:
        debian_sources.chosen("linux-source-6.2", remote)
    assert caught.value.advice == "there are: linux-source-5.10, linux-source-6.1"


def test_a_source_is_a_kernels_name_like_any_other(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source)
    kernel = kernel_registry.add("source:.")
    assert (kernel.name, kernel_registry.get("source:.")) == (f"source:{source}", kernel)
    a_source_tree(source, extra=b"another")
    assert kernel_registry.add(f"source:{source}").digest != kernel.digest, (
        "it is built anew each time it is added"
    )
    with pytest.raises(KtrialError, match="a directory is missing"):
        kernel_registry.add("source:")


def test_a_removed_kernel_takes_its_build_directory_along(source: Path) -> None:
    kernel = add(build_request(source))
    home = build_directory(source)
    with FileLock(home / "lock"):
        kernel_registry.remove(kernel.name)
        assert (home / "build" / "vmlinux").exists(), "a build that is under way keeps it"
    kernel = add(build_request(source))
    name, freed = kernel_registry.remove(kernel.name)
    assert name == kernel.name
    assert freed > 1000
    assert [path.name for path in home.iterdir()] == ["lock"]
    assert add(build_request(source)).digest == kernel.digest


def test_two_builds_of_one_source_wait_for_each_other(source: Path, tmp_path: Path) -> None:
    messages: list[str] = []
    first, second = (tmp_path / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()

    def progress(step: str, finished: int = 0, total: int = 0) -> None:
        if step.startswith("building") and "nested" not in messages:
            messages.append("nested")
            with pytest.raises(Timeout), FileLock(build_directory(source) / "lock", timeout=0):
                messages.append("another ktrial builds at the same time")

    assert built(build_request(source), first, progress).image == first / "vmlinux"
    assert messages == ["nested"]
    built(build_request(source), second, progress)
