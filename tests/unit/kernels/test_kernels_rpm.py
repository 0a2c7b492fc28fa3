"""Kernels from a directory of RPM packages, as Fedora and openSUSE lay them out; hostile ones among them."""

import shutil
from pathlib import Path

import pytest
from tests.support import kernel_images as make
from tests.support.kernel_images import package

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import BadKernelName, KernelError, NoSuchRelease
from ktrial.kernels.packages import rpm
from ktrial.model.kernel import Kernel

BUILD = "6.11.4-301.fc41"
RELEASE = make.RELEASE


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def fedora(directory: Path, build: str = BUILD, up: str = "lib", payload: str = "w3.zstdio") -> None:
    """kernel-core has the image and what tells about it, kernel-modules-core the modules."""
    core, modules = directory / f"core-{build}", directory / f"modules-{build}"
    tree = core / up / "modules" / RELEASE
    tree.mkdir(parents=True)
    make.vmlinuz(tree)
    (tree / "config").write_text(make.CONFIG)
    complete = make.module_tree(modules / "made").parent.parent
    target = modules / "root" / up
    target.mkdir(parents=True)
    shutil.move(str(complete / "modules"), target / "modules")
    package(directory, "kernel-core", core, build, payload=payload)
    package(directory, "kernel-modules-core", modules / "root", build, payload=payload)


def added(name: str) -> Kernel:
    return kernel_registry.add(name)


@pytest.mark.parametrize("payload", ["w3.zstdio", "w2.xzdio", "w6.gzdio"])
@pytest.mark.parametrize("up", ["lib", "usr/lib"])
def test_a_kernel_of_several_packages_is_whole(tmp_path: Path, up: str, payload: str) -> None:
    fedora(tmp_path, up=up, payload=payload)
    kernel = added(f"rpm:{tmp_path}")
    assert kernel.release == RELEASE
    assert kernel.config is not None
    assert kernel.config.read_text() == make.CONFIG
    assert kernel.modules is not None
    assert sorted(path.name for path in kernel.modules.rglob("*.ko*")) == ["one.ko", "two.ko"]
    assert kernel.origin.packages == (f"kernel-core={BUILD}", f"kernel-modules-core={BUILD}")


def test_of_several_kernels_one_is_named(tmp_path: Path) -> None:
    fedora(tmp_path)
    fedora(tmp_path, "6.12.0-1.fc41")
    with pytest.raises(NoSuchRelease, match="several kernels") as several:
        added(f"rpm:{tmp_path}")
    assert f"rpm:{tmp_path}@6.12.0-1.fc41" in several.value.advice
    assert added(f"rpm:{tmp_path}@6.12.0-1.fc41").origin.version == "6.12.0-1.fc41"
    assert added(f"rpm:{tmp_path}@6.12.0-1.fc41.x86_64").origin.version == "6.12.0-1.fc41"
    with pytest.raises(NoSuchRelease, match=r"no 6\.13.*"):
        added(f"rpm:{tmp_path}@6.13.0-1.fc41")


def test_what_is_not_a_kernel_of_this_architecture_is_passed_by(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "etc").mkdir(parents=True)
    (files / "etc/a").write_text("a")
    package(tmp_path, "kernel-headers", files)
    package(tmp_path, "kernel-core", files, architecture="noarch")
    with pytest.raises(NoSuchRelease, match="no kernel package for x86_64") as error:
        added(f"rpm:{tmp_path}")
    assert "dnf download" in error.value.advice
    package(tmp_path, "kernel-core", files)
    with pytest.raises(NoSuchRelease, match="hold no image"):
        added(f"rpm:{tmp_path}")
    with pytest.raises(BadKernelName, match="a directory is missing"):
        added("rpm:")


def test_links_and_files_elsewhere_do_not_leave_the_package(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(make.vmlinuz(tmp_path).read_bytes())
    tree = tmp_path / "core" / "lib/modules" / RELEASE
    tree.mkdir(parents=True)
    (tree / "vmlinuz").symlink_to(secret)
    (tmp_path / "core/etc").mkdir()
    (tmp_path / "core/etc/passwd").write_text("mine")
    package(tmp_path, "kernel-core", tmp_path / "core")
    with pytest.raises(NoSuchRelease, match="hold no image"):
        added(f"rpm:{tmp_path}")
    rpm.unpack(next(tmp_path.glob("kernel-core-*.rpm")), tmp_path / "root")
    assert not (tmp_path / "root/etc").exists()


def test_a_damaged_package_and_one_that_is_too_large_are_refused(tmp_path: Path) -> None:
    fedora(tmp_path)
    core = next(tmp_path.glob("kernel-core-*.rpm"))
    content = core.read_bytes()
    core.write_bytes(content[: len(content) // 2])
    with pytest.raises(KernelError, match="bsdtar failed") as error:
        added(f"rpm:{tmp_path}")
    assert "damaged" in error.value.advice
    assert "_rpmformat 4" in error.value.advice
    modules = next(tmp_path.glob("kernel-modules-core-*.rpm"))
    with pytest.raises(KernelError, match="a kernel's package may have 100 at most"):
        rpm.unpack(modules, tmp_path / "root", most=100)
    assert not (tmp_path / "root").exists()


def test_bytes_that_are_no_package_are_an_error_and_no_traceback(tmp_path: Path) -> None:
    for number, content in enumerate((b"", b"not a package", bytes(range(256)) * 40)):
        (tmp_path / f"kernel-core-6.{number}-1.fc41.x86_64.rpm").write_bytes(content)
        with pytest.raises(KernelError):
            added(f"rpm:{tmp_path}@6.{number}-1.fc41")
