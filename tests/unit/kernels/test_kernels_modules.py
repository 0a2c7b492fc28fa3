"""Which modules are loaded, and in which order; options of the configuration; symbols."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.support import kernel_images as make

from ktrial.kernels import kernel_registry
from ktrial.kernels.config import config_of
from ktrial.kernels.errors import ModulesUnusable, SymbolsUnknown, UnknownModule
from ktrial.kernels.modules import resolve
from ktrial.kernels.symbols import parse_symbols, save_symbols, symbols_in
from ktrial.model.kernel import Kernel, Origin

DEP = """\
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko kernel/fs/mbcache.ko
kernel/fs/jbd2/jbd2.ko:
kernel/fs/mbcache.ko:
kernel/net/virtio-net.ko: kernel/net/net_failover.ko kernel/net/failover.ko
kernel/net/net_failover.ko: kernel/net/failover.ko
kernel/net/failover.ko:
kernel/crypto/crc32c-intel.ko:
kernel/crypto/crc32c_generic.ko:
kernel/a.ko:
kernel/b.ko:
kernel/c.ko:
"""
SOFTDEP = """\
# Soft dependencies extracted from modules themselves.
softdep ext4 pre: crc32c
softdep a pre: b
softdep b pre: a
softdep c pre: b post: failover missing-module
softdep c post: mbcache
"""
ALIAS = """\
# Aliases extracted from modules themselves.
alias fs-ext4 ext4
alias crc32c crc32c_intel
alias crc32c crc32c_generic
alias virtio:d00000001v* virtio_net
"""
BUILTIN = "kernel/lib/libcrc32c.ko\nkernel/drivers/virtio/virtio.ko\n"
BUILTIN_MODINFO = b"virtio.license=GPL\0libcrc32c.alias=crypto-libcrc32c\0"

RESOLVED = [
    # wanted, loaded in this order
    ([], []),
    (["jbd2"], ["jbd2"]),
    (["virtio-net"], ["failover", "net_failover", "virtio-net"]),
    (["virtio_net"], ["failover", "net_failover", "virtio-net"]),
    (["virtio_net.ko.xz"], ["failover", "net_failover", "virtio-net"]),
    (["ext4"], ["mbcache", "jbd2", "crc32c-intel", "crc32c_generic", "ext4"]),
    (["fs-ext4"], ["mbcache", "jbd2", "crc32c-intel", "crc32c_generic", "ext4"]),
    (["virtio:d00000001v00001AF4"], ["failover", "net_failover", "virtio-net"]),
    (["mbcache", "ext4", "jbd2"], ["mbcache", "jbd2", "crc32c-intel", "crc32c_generic", "ext4"]),
    (["virtio"], []),
    (["libcrc32c", "failover"], ["failover"]),
    (["crypto-libcrc32c"], []),
    (["a"], ["b", "a"]),
    (["c"], ["a", "b", "c", "failover", "mbcache"]),
]


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel whose modules are of the layout that depmod leaves; the files say their own names."""
    modules = tmp_path / "lib" / "modules" / make.RELEASE
    modules.mkdir(parents=True)
    for line in DEP.splitlines():
        file = modules / line.partition(":")[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    (modules / "modules.dep").write_text(DEP)
    (modules / "modules.softdep").write_text(SOFTDEP)
    (modules / "modules.alias").write_text(ALIAS)
    (modules / "modules.builtin").write_text(BUILTIN)
    (modules / "modules.builtin.modinfo").write_bytes(BUILTIN_MODINFO)
    (tmp_path / "config").write_text('CONFIG_SMP=y\nCONFIG_CC="gcc-12 (Debian)"\n# CONFIG_KASAN is not set\n')
    return Kernel(
        name="debian:6.1",
        release=make.RELEASE,
        origin=Origin(provider="debian", source="linux-image"),
        digest="0" * 64,
        image=tmp_path / "vmlinuz",
        modules=modules,
        config=tmp_path / "config",
    )


@pytest.mark.parametrize(
    ("expected", "order"), RESOLVED, ids=[" ".join(row[0]) or "nothing" for row in RESOLVED]
)
def test_modules_come_after_what_they_need(kernel: Kernel, expected: list[str], order: list[str]) -> None:
    files = resolve(kernel, expected)
    assert [file.name.removesuffix(".ko") for file in files] == order
    assert all(file.is_absolute() and file.read_text() == file.name for file in files)


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_modules_come_unpacked(kernel: Kernel, suffix: str, tmp_path: Path) -> None:
    assert kernel.modules is not None
    plain = kernel.modules / "kernel" / "a.ko"
    packed = plain.with_name(f"packed.ko{suffix}")
    packed.write_bytes(PACK[suffix](make.module()))
    with (kernel.modules / "modules.dep").open("a") as file:
        file.write(f"kernel/packed.ko{suffix}:\n")
    for _ in range(2):
        (module,) = resolve(kernel, ["packed"])
        assert module.name == "packed.ko"
        assert module.read_bytes() == make.module()
        assert module.is_relative_to(tmp_path)
    assert packed.exists(), "the packed one stays as it is"


@pytest.mark.parametrize("suffix", PACK)
def test_a_damaged_module_is_named(kernel: Kernel, suffix: str) -> None:
    assert kernel.modules is not None
    (kernel.modules / "kernel" / f"bad.ko{suffix}").write_bytes(PACK[suffix](make.module())[:-10])
    with (kernel.modules / "modules.dep").open("a") as file:
        file.write(f"kernel/bad.ko{suffix}:\n")
    with pytest.raises(ModulesUnusable, match=rf"bad\.ko\{suffix} is damaged"):
        resolve(kernel, ["bad"])


def test_an_unknown_module_brings_near_names(kernel: Kernel) -> None:
    with pytest.raises(UnknownModule) as caught:
        resolve(kernel, ["ext4", "virtio-nett"])
    assert caught.value.message == (
        "Kernel debian:6.1 has no module virtio-nett (did you mean virtio_net or virtio?)."
    )


def test_a_kernel_without_modules_says_so(kernel: Kernel) -> None:
    bare = kernel.model_copy(update={"modules": None})
    assert resolve(bare, []) == ()
    with pytest.raises(UnknownModule, match="has no module ext4, because it came without modules"):
        resolve(bare, ["ext4"])


def test_options_of_the_configuration(kernel: Kernel) -> None:
    options = config_of(kernel)
    assert (options["CONFIG_SMP"], options["CONFIG_CC"]) == ("y", "gcc-12 (Debian)")
    assert "CONFIG_KASAN" not in options
    assert config_of(kernel.model_copy(update={"config": None})) == {}


KALLSYMS = "".join(f"{0xFFFFFFFF81000000 + 16 * number:016x} T function_{number}\n" for number in range(1500))


def test_symbols_come_from_the_guest_once_it_has_told_them(kernel: Kernel) -> None:
    with pytest.raises(SymbolsUnknown, match="not known yet"):
        symbols_in(kernel)
    save_symbols(kernel, KALLSYMS + "ffffffffc0001000 t ext4_init\t[ext4]\n")
    symbols = symbols_in(kernel)
    assert symbols.source == "kallsyms"
    assert len(symbols.all) == 1501
    inside = symbols.at(0xFFFFFFFF81000018)
    assert inside is not None
    assert (inside.name, inside.kind, inside.module) == ("function_1", "T", "")
    last = symbols.at(0xFFFFFFFFC0001234)
    assert last is not None
    assert (last.name, last.module) == ("ext4_init", "ext4")
    assert symbols.at(0x1000) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "only 0 symbols"),
        (KALLSYMS[:4000], "symbols: not the whole"),
        ("0000000000000000 T hidden\n" * 2000, "the kernel hides them"),
    ],
)
def test_useless_symbols_are_not_kept(kernel: Kernel, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        save_symbols(kernel, text)
    with pytest.raises(SymbolsUnknown):
        symbols_in(kernel)


def test_a_real_system_map_serves_and_the_guests_word_goes_before_it(kernel: Kernel) -> None:
    (kernel.image.parent / "System.map").write_text(KALLSYMS)
    assert symbols_in(kernel).source == "System.map"
    save_symbols(kernel, KALLSYMS)
    assert symbols_in(kernel).source == "kallsyms"


def test_an_unstripped_vmlinux_brings_its_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "vmlinux").write_bytes(make.elf_with_symbols(1200))
    symbols = symbols_in(kernel_registry.add(f"path:{tmp_path}/vmlinux"))
    assert symbols.source == "vmlinux"
    assert len(symbols.all) == 1200
    second = symbols.at(0xFFFFFFFF8100001F)
    assert second is not None
    assert (second.name, second.kind) == ("f1", "t")
    assert symbols.all[0].kind == "T"


def test_symbols_are_sorted_by_address() -> None:
    text = "ffffffff81000010 t second\nffffffff81000000 T first\nnot a symbol\n"
    assert [symbol.name for symbol in parse_symbols(text)] == ["first", "second"]
