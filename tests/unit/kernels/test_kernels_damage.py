"""Kernels whose files were damaged in the cache: made whole before they are booted, or refused."""

import json
import lzma
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import kernel_caches
from tests.support import kernel_images as make
from typer.testing import CliRunner, Result

from ktrial.cli.commands.kernel import app
from ktrial.file_digests import digest_of_file, sealed
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import KernelDamaged, SymbolsUnknown
from ktrial.kernels.modules import resolve
from ktrial.kernels.symbols import save_symbols, symbols_in
from ktrial.model.kernel import Kernel

pytestmark = pytest.mark.filterwarnings("ignore:the kernel provider broken")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A distribution's kernel, whose packages can be fetched again."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    kernel_caches.install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "fetches"))
    monkeypatch.setenv("SLOW_PACKAGES", "slow-image=1.0")
    return kernel_registry.add("slow:one")


def flip(path: Path) -> None:
    """One bit becomes another; size and modification time stay."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def digests(kernel: Kernel) -> dict[str, str]:
    home = kernel.image.parent
    return {str(path.relative_to(home)): digest_of_file(path) for path in home.rglob("*") if path.is_file()}


MODULES = f"lib/modules/{make.RELEASE.replace('test', 'one')}"
FROM_ITSELF = ["vmlinux", "kernel.json", f"{MODULES}/modules.dep", "manifest.json"]
FROM_PACKAGE = ["vmlinuz", f"{MODULES}/modules.builtin"]


@pytest.mark.parametrize("damage", [flip, shorten, Path.unlink])
@pytest.mark.parametrize("name", [*FROM_ITSELF, *FROM_PACKAGE])
def test_what_is_damaged_is_made_again_before_it_is_used(
    name: str, damage: Callable[[Path], None], kernel: Kernel, tmp_path: Path
) -> None:
    before = digests(kernel)
    damage(kernel.image.parent / name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kernel_registry.obtain("slow:one") == kernel
    assert digests(kernel) == before
    expected = f"kernel slow:one was damaged in the cache ({name})"
    # The manifest only tells of other files: without it they are made again too, and found to be the same.
    assert any(expected in str(entry.message) for entry in caught) is (name != "manifest.json")
    fetches = (tmp_path / "fetches").read_text().splitlines()
    assert len(fetches) == (2 if name in FROM_PACKAGE else 1)


def flipped_at(place: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(make.flipped(data, place % len(data)))

    return damage


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("damage", [flipped_at(0x400), flipped_at(-1), append], ids=["setup", "tail", "more"])
def test_an_image_is_its_packages_in_what_is_never_run_too(
    damage: Callable[[Path], None], kernel: Kernel
) -> None:
    before = digests(kernel)
    damage(kernel.image)
    with pytest.warns(UserWarning, match=r"cache \(vmlinuz\): made again from slow-image=1\.0"):
        assert kernel_registry.obtain("slow:one") == kernel
    assert digests(kernel) == before


@pytest.mark.parametrize("damage", [flipped_at(0x400), flipped_at(-1), append], ids=["setup", "tail", "more"])
def test_a_file_of_the_users_is_known_by_all_of_it_and_booted_by_what_it_unpacks_to(
    damage: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no package to compare it with: its kernel has another digest, and runs the same code."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = f"path:{make.vmlinuz(tmp_path)}"
    before = kernel_registry.obtain(name)
    damage(tmp_path / "vmlinuz")
    after = kernel_registry.obtain(name)
    assert after.digest != before.digest
    assert after.vmlinux
    assert after.boot_image == before.boot_image, "with the digest of what is booted"
    assert after.vmlinux.read_bytes() == make.elf()


def test_a_module_that_nobody_looked_at_does_not_keep_the_rest_from_being_made_again(
    kernel: Kernel, tmp_path: Path
) -> None:
    """vmlinux follows from the image; but with the damaged module the kernel would be another one."""
    before = digests(kernel)
    assert kernel.modules
    flip(kernel.modules / "kernel" / "two.ko")
    flip(kernel.image.parent / "vmlinux")
    with pytest.warns(UserWarning, match=r"cache \(.*vmlinux.*\): made again from slow-image=1\.0"):
        assert kernel_registry.obtain("slow:one") == kernel
    assert digests(kernel) == before
    assert len((tmp_path / "fetches").read_text().splitlines()) == 2


@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_a_module_is_looked_at_when_it_is_loaded(damage: Callable[[Path], None], kernel: Kernel) -> None:
    assert kernel.modules
    module = kernel.modules / "kernel" / "two.ko"
    damage(module)
    with pytest.warns(UserWarning, match=r"cache \(.*two\.ko\): made again from slow-image=1\.0"):
        assert resolve(kernel, ["two"]) == (module,)
    assert module.read_bytes() == make.module(kernel.release)


def test_an_unpacked_module_is_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    tree = make.module_tree(tmp_path, names=("packed",))
    (tree / "kernel" / "packed.ko.xz").write_bytes(lzma.compress(make.module()))
    (tree / "kernel" / "packed.ko").unlink()
    kernel = kernel_registry.add(f"path:{make.vmlinuz(tmp_path)}", modules=tree)
    (unpacked,) = resolve(kernel, ["packed"])
    flip(unpacked)
    with pytest.warns(UserWarning, match=r"packed\.ko was damaged: unpacked again from .*packed\.ko\.xz"):
        assert resolve(kernel, ["packed"]) == (unpacked,)
    assert unpacked.read_bytes() == make.module()


def test_what_the_package_no_longer_holds_is_refused(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(kernel.image)
    second = make.elf(extra=b"another build")
    monkeypatch.setattr(make, "elf", lambda: second)
    with pytest.raises(KernelDamaged) as caught:
        kernel_registry.obtain("slow:one")
    assert "slow:one is damaged in the cache (vmlinuz)" in caught.value.message
    assert caught.value.advice == "nothing was booted from it; add it again: ktrial kernel add slow:one"


def test_files_of_the_users_own_are_refused_and_can_be_added_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    image, modules = make.vmlinuz(tmp_path), make.module_tree(tmp_path)
    kernel = kernel_registry.add(f"path:{image}", modules=modules)
    before = digests(kernel)
    flip(kernel.image)
    with pytest.raises(KernelDamaged, match=rf"\(vmlinuz\).*it came from {image}, and from no package"):
        kernel_registry.obtain(kernel.name)
    with pytest.warns(UserWarning, match=rf"\(vmlinuz\): made again from {image}"):
        assert kernel_registry.add(kernel.name, modules=modules) == kernel
    assert digests(kernel) == before


def test_a_kernel_whose_manifest_is_gone_is_looked_through(kernel: Kernel) -> None:
    before = digests(kernel)
    (kernel.image.parent / "manifest.json").unlink()
    assert kernel_registry.verify("slow:one").damaged == ("manifest.json",)
    assert kernel.vmlinux
    flip(kernel.vmlinux)
    with pytest.warns(UserWarning, match=r"\(vmlinux\): made again from its image and modules"):
        assert kernel_registry.obtain("slow:one") == kernel
    assert digests(kernel) == before
    (kernel.image.parent / "manifest.json").unlink()
    flip(kernel.image)
    with pytest.warns(UserWarning, match=r"\(vmlinuz\): made again from slow-image=1\.0"):
        assert kernel_registry.obtain("slow:one") == kernel
    assert digests(kernel) == before


def test_what_a_damaged_kernel_has_told_goes_with_it(kernel: Kernel) -> None:
    save_symbols(kernel, KALLSYMS)
    assert kernel.vmlinux
    flip(kernel.vmlinux)
    with pytest.warns(UserWarning, match="vmlinux"):
        kernel_registry.obtain("slow:one")
    with pytest.raises(SymbolsUnknown):
        symbols_in(kernel)


KALLSYMS = "".join(f"{0xFFFFFFFF81000000 + 16 * number:016x} T function_{number}\n" for number in range(1500))


@pytest.mark.parametrize("damage", [flip, shorten, lambda path: path.write_bytes(b"")])
def test_damaged_symbols_are_told_and_not_used(damage: Callable[[Path], None], kernel: Kernel) -> None:
    path = save_symbols(kernel, KALLSYMS)
    assert len(symbols_in(kernel).all) == 1500
    damage(path)
    with (
        pytest.warns(UserWarning, match="symbols of kernel slow:one are damaged .*asked for them again"),
        pytest.raises(SymbolsUnknown),
    ):
        symbols_in(kernel)


def test_whole_files_are_left_alone(kernel: Kernel, recwarn: pytest.WarningsRecorder) -> None:
    shutil.rmtree(kernel.image.parents[2] / "work")
    assert kernel_registry.obtain("slow:one") == kernel
    assert [warning for warning in recwarn if "damaged" in str(warning.message)] == []
    assert not (kernel.image.parents[2] / "work").exists(), "nothing was put together"


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_verify_reads_everything_and_names_what_is_damaged(kernel: Kernel) -> None:
    assert kernel.modules
    save_symbols(kernel, KALLSYMS)
    told_by_a_guest = kernel.image.parent / "values" / "0.sealed"
    told_by_a_guest.parent.mkdir()
    told_by_a_guest.write_bytes(sealed(b'{"values": {}}'))
    assert ran("verify").exit_code == 0
    assert kernel_registry.verify("slow:one").damaged == ()
    for path in (kernel.image, kernel.modules / "kernel" / "one.ko", kernel.image.parent / "kallsyms"):
        flip(path)
    flip(told_by_a_guest)
    message = ran("verify", "slow:one", "--json")
    assert message.exit_code == 1
    assert "ktrial kernel add slow:one" in message.stderr
    (told,) = json.loads(message.stdout)
    assert told["name"] == "slow:one"
    assert told["damaged"] == ["vmlinuz", f"{MODULES}/kernel/one.ko", "kallsyms", "values/0.sealed"]
    with pytest.warns(UserWarning, match="slow:one was damaged"):
        assert ran("add", "slow:one").exit_code == 0
    assert ran("verify", "slow:one").exit_code == 0
