"""What building needs of this machine: all that is missing is told at once, before anything is fetched."""

import os
import shutil
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, has_what_builds_need

from ktrial.kernels.build.builds import build, configured, job_of
from ktrial.kernels.build.requests import check_tools, check_tools_of, requested
from ktrial.kernels.errors import BuildToolsMissing
from ktrial.package_names import INSTALL


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but a compiler."""
    programs = tmp_path / "bin"
    programs.mkdir()
    gcc = shutil.which("gcc")
    assert gcc
    (programs / "gcc").symlink_to(gcc)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("ktrial.system_tools.SBIN", ())
    return programs


def missing(options: dict[str, str], make: dict[str, str] | None = None) -> tuple[list[str], str]:
    with pytest.raises(BuildToolsMissing) as caught:
        check_tools("linux", options, make)
    return str(caught.value.facts["tools"]).split(", "), caught.value.advice


def test_everything_that_is_missing_is_told_at_once_before_anything_is_fetched(
    bare: Path, cache: Path
) -> None:
    spec = requested(
        "debian:linux-source-6.1",
        options=["DEBUG_INFO_BTF=y", "MODULE_SIG=y", "MODULE_COMPRESS_ZSTD=y", "XFS_FS=m"],
        directory=Path("/"),
    )
    for ask in (build, configured):
        with pytest.raises(BuildToolsMissing) as caught:
            ask(spec)
        tools = str(caught.value.facts["tools"]).split(", ")
        assert {"make", "flex", "bison", "bc", "perl", "ld"} < set(tools)
        assert {"pahole", "openssl", "zstd", "depmod", "xz", "tar"} < set(tools)
        for package in ("binutils", "flex", "dwarves", "openssl", "zstd", "kmod", "xz-utils"):
            assert package in caught.value.advice.removeprefix(INSTALL).split()
    assert not list(cache.glob("sources/*"))


@pytest.mark.parametrize(
    ("option", "tool", "package"),
    [
        ("CONFIG_DEBUG_INFO_BTF", "pahole", "dwarves"),
        ("CONFIG_SYSTEM_TRUSTED_KEYRING", "openssl", "openssl"),
        ("CONFIG_IKHEADERS", "cpio", "cpio"),
        ("CONFIG_MODULE_COMPRESS_XZ", "xz", "xz-utils"),
        ("CONFIG_MODULE_COMPRESS_ZSTD", "zstd", "zstd"),
        ("CONFIG_INITRAMFS_COMPRESSION_LZ4", "lz4", "lz4"),
        ("CONFIG_RUST", "bindgen", "bindgen"),
    ],
)
def test_an_option_needs_what_its_makefile_runs(option: str, tool: str, package: str, bare: Path) -> None:
    tools, advice = missing({option: "y"})
    assert tool in tools
    assert package in advice.split()
    assert tool not in missing({option: "n"})[0]


def test_the_programs_that_variables_of_make_name_are_asked_for(bare: Path) -> None:
    assert "gcc-14" in missing({}, {"CC": "gcc-14"})[0]
    tools, advice = missing({}, {"LLVM": "-19"})
    assert {"clang-19", "ld.lld-19", "llvm-ar-19"} < set(tools)
    assert "ld" not in tools
    assert "clang" in advice.split()
    tools, _ = missing({"CONFIG_DEBUG_INFO_BTF": "y"}, {"PAHOLE": "/opt/pahole"})
    assert ("pahole" in tools, "/opt/pahole" in tools) == (False, True)


def test_headers_are_looked_for_with_the_compiler(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPATH", str(tmp_path))
    compiler = {"HOSTCC": "gcc -nostdinc"}
    assert {"libelf.h", "openssl/opensslv.h"} < set(missing({"CONFIG_MODULE_SIG": "y"}, compiler)[0])
    (tmp_path / "libelf.h").touch()
    assert "libelf.h" not in missing({}, compiler)[0]


def test_what_the_final_configuration_needs_is_told_before_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = a_buildable_source(tmp_path / "linux")
    makefile = source / "Makefile"
    makefile.write_text(makefile.read_text().replace("CONFIG_HZ=250", "CONFIG_RUST=y\\nCONFIG_HZ=250"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_: None)
    with pytest.raises(BuildToolsMissing, match="bindgen"):
        build(requested(str(source), config="defconfig", directory=tmp_path))
    assert not list((tmp_path / "cache/trees").glob("*/source"))


LLVM = ("clang", "ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-readelf", "llvm-strip")


@pytest.fixture
def llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that say that they are LLVM's, before all others."""
    place = tmp_path / "llvm"
    place.mkdir()
    for name in LLVM:
        (place / name).write_text(f"#!/bin/sh\necho {name} version 16.0.6\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


def test_a_kernel_of_llvm_is_another_one_and_says_so(
    llvm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    source = str(a_buildable_source(tmp_path / "linux"))
    plain = requested(source, directory=tmp_path)
    other = requested(source, make={"LLVM": "1"}, directory=tmp_path)
    assert plain.key != other.key
    assert "LLVM=1" in other.name
    jobs = [job_of(spec, lambda *_: None) for spec in (plain, other)]
    assert jobs[0].content != jobs[1].content
    kernel = build(other)
    assert kernel.origin.compiler == "clang version 16.0.6, ld.lld version 16.0.6"
    (flags,) = (tmp_path / "cache/trees").glob("*/source/build/flags")
    assert {"LLVM=1", "CC=clang"} <= set(flags.read_text().split())


def test_commands_are_those_without_ccache_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else kbuild compiles all of a tree anew once ccache is installed, or is gone."""
    ccache = tmp_path / "bin/ccache"
    ccache.parent.mkdir()
    ccache.write_text("#!/bin/sh\n")
    ccache.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ccache.parent}:{os.environ['PATH']}")
    has_what_builds_need(monkeypatch, tmp_path / "host")
    build(requested(str(a_buildable_source(tmp_path / "linux")), directory=tmp_path))
    (tree,) = (tmp_path / "cache/trees").glob("*/source/build")
    assert "CC=gcc" in (tree / "flags").read_text().split()
    (path,) = [line for line in (tree / "environment").read_text().splitlines() if line.startswith("PATH=")]
    first = Path(path.removeprefix("PATH=").partition(":")[0])
    assert (first / "gcc").readlink() == ccache


def test_llvm_that_is_not_here_is_named_with_its_packages_before_anything(bare: Path, tmp_path: Path) -> None:
    spec = requested(str(a_buildable_source(tmp_path / "linux")), make={"LLVM": "1"}, directory=tmp_path)
    with pytest.raises(BuildToolsMissing) as caught:
        check_tools_of(spec)
    assert set(LLVM) < set(str(caught.value.facts["tools"]).split(", "))
    assert {"clang", "lld", "llvm"} < set(caught.value.advice.split())
