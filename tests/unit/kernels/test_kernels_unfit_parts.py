"""What is no kernel, no modules or no configuration of one is refused, and leaves nothing behind."""

from pathlib import Path

import pytest
from tests.support import kernel_images as make
from tests.support.kernel_caches import left_over

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import ImageError, KernelError, ModulesUnusable, NotAKernel, ToolMissing
from ktrial.kernels.modules import module_names
from ktrial.package_names import INSTALL

pytestmark = pytest.mark.filterwarnings("ignore:kernel provider broken")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("KTRIAL_CACHE", str(directory))
    return directory


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return make.vmlinuz(tmp_path)


def test_a_bad_image_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "text").write_text("hello\n" * 1000)
    with pytest.raises(NotAKernel, match="text file"):
        kernel_registry.add(f"path:{tmp_path}/text")
    with pytest.raises(ImageError, match="there is no such file"):
        kernel_registry.add(f"path:{tmp_path}/nothing")
    assert kernel_registry.all_kernels() == ()
    assert left_over(cache) == []


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda directory: None, "there is no such directory"),
        (lambda directory: directory.write_text("x"), "it is not a directory"),
        (lambda directory: directory.mkdir(), "there is no module"),
        (
            lambda directory: make.module_tree(directory, "6.6.6"),
            "its modules are of 6.6.6, the image is 6.1.0-test",
        ),
    ],
    ids=["missing", "a file", "empty", "of another kernel"],
)
def test_unfit_modules_are_refused(tmp_path: Path, image: Path, prepare: object, problem: str) -> None:
    assert callable(prepare)
    prepare(tmp_path / "modules")
    with pytest.raises(ModulesUnusable) as caught:
        kernel_registry.add(f"path:{image}", modules=tmp_path / "modules")
    assert problem in caught.value.message
    assert caught.value.advice.endswith(f"lib/modules/{make.RELEASE}")


@pytest.mark.parametrize("below", ["", "lib", "lib/modules", f"lib/modules/{make.RELEASE}"])
def test_modules_are_found_from_any_directory_above_them(tmp_path: Path, image: Path, below: str) -> None:
    make.module_tree(tmp_path / "out")
    arguments = tmp_path / "out" / below
    assert module_names(kernel_registry.add(f"path:{image}", modules=arguments)) == ("one", "two")


def test_damaged_modules_are_refused(tmp_path: Path, image: Path) -> None:
    modules = make.module_tree(tmp_path)
    (modules / "kernel" / "a.ko.xz").write_bytes(b"\xfd7zXZ\0 and no more")
    with pytest.raises(ModulesUnusable, match=r"a\.ko\.xz is damaged"):
        kernel_registry.add(f"path:{image}", modules=modules)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello\n", "it has no line like CONFIG_SMP=y"),
        (make.CONFIG.replace("6.1.190", "5.10.1"), "it is of Linux 5.10.1, the image is 6.1.0-test"),
    ],
)
def test_an_unfit_configuration_is_refused(tmp_path: Path, image: Path, text: str, problem: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KernelError, match=problem):
        kernel_registry.add(f"path:{image}", config=tmp_path / "config")


def test_a_missing_configuration_is_refused(tmp_path: Path, image: Path) -> None:
    with pytest.raises(KernelError, match="No such file"):
        kernel_registry.add(f"path:{image}", config=tmp_path / "config")


def test_without_kmod_the_package_is_named(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.system_tools.SBIN", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing) as caught:
        kernel_registry.add(f"path:{image}", modules=make.module_tree(tmp_path))
    assert caught.value.advice == f"{INSTALL} kmod"
