"""Small kernel images, modules and configurations, real in every byte that ktrial reads."""

import bz2
import gzip
import hashlib
import lzma
import random
import struct
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import lz4.block
import zstandard

from ktrial.model.kernel import Build, Kernel, NewOption, Origin

RELEASE = "6.1.0-test"


VERSION = f"{RELEASE} (someone@somewhere) #1 SMP PREEMPT_DYNAMIC"


CONFIG = "# Linux/x86 6.1.190 Kernel Configuration\nCONFIG_HZ=250\nCONFIG_SMP=y\nCONFIG_EXT4_FS=m\n"


X86_64, I386, ARM64 = 62, 3, 183


EXECUTABLE, RELOCATABLE, SHARED = 2, 1, 3


XEN_PHYS32_ENTRY = 18


def elf(
    note: int | None = XEN_PHYS32_ENTRY,
    machine: int = X86_64,
    kind: int = EXECUTABLE,
    release: str = RELEASE,
    extra: bytes = b"",
) -> bytes:
    """An ELF file of one PT_NOTE segment with a Xen note, and a text that says which Linux it is."""
    text = f"Linux version {release} (someone) #1\n\0".encode() + random.Random(1).randbytes(40_000) + extra
    words = b"" if note is None else struct.pack("<III4sQ", 4, 8, note, b"Xen\0", 0x1000000)
    header = _elf_header(kind, machine, segments=1)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 64 + 56, 0, 0, len(words), len(words), 4)
    return header + segment + words + text


def _elf_header(kind: int, machine: int, segments: int = 0, sections: int = 0, table: int = 0) -> bytes:
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    fields = (kind, machine, 1, 0, 64 if segments else 0, table, 0, 64, 56, segments, 64, sections)
    return identity + struct.pack("<HHIQQQIHHHHHH", *fields, sections - 1 if sections else 0)


def elf_with_symbols(count: int) -> bytes:
    """A vmlinux that kept its symbol table: functions `f0`, `f1`, … 16 bytes apart, the odd ones local."""
    names = b"\0" + b"".join(b"f%d\0" % number for number in range(count))
    symbols, offset = [bytes(24)], 1
    for number in range(count):
        info = (0 if number % 2 else 1) << 4 | 2
        symbols.append(struct.pack("<IBBHQQ", offset, info, 0, 1, 0xFFFFFFFF81000000 + 16 * number, 16))
        offset += len(b"f%d\0" % number)
    table, sections = b"".join(symbols), b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    plain = elf()
    starts = [len(plain), len(plain) + len(table), len(plain) + len(table) + len(names)]
    headers = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0xFFFFFFFF81000000, 0, 0, 0, 0, 16, 0),
        struct.pack("<IIQQQQIIQQ", 7, 2, 0, 0, starts[0], len(table), 3, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 15, 3, 0, 0, starts[1], len(names), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 23, 3, 0, 0, starts[2], len(sections), 0, 0, 1, 0),
    ]
    head = _elf_header(EXECUTABLE, X86_64, segments=1, sections=5, table=starts[2] + len(sections))
    return head + plain[64:] + table + names + sections + b"".join(headers)


def module(release: str = RELEASE) -> bytes:
    """A kernel module with nothing in it but `.modinfo`: enough for depmod."""
    info = f"license=GPL\0vermagic={release} SMP preempt mod_unload \0".encode()
    names = b"\0.modinfo\0.shstrtab\0"
    table = -(-(64 + len(info) + len(names)) // 8) * 8
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 64, len(info), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 10, 3, 0, 0, 64 + len(info), len(names), 0, 0, 1, 0),
    ]
    head = _elf_header(RELOCATABLE, X86_64, sections=3, table=table) + info + names
    return head.ljust(table, b"\0") + b"".join(sections)


def bzimage(payload: bytes, version: str = VERSION, protocol: int = 0x20F, xloadflags: int = 1) -> bytes:
    """A boot sector, four sectors of set-up code with the version string, and the payload behind 64 bytes."""
    head = bytearray(5 * 512)
    head[0x1F1] = 4
    head[0x1FE:0x206] = b"\x55\xaa\xeb\x6aHdrS"
    struct.pack_into("<H", head, 0x206, protocol)
    struct.pack_into("<H", head, 0x20E, 0x400)
    struct.pack_into("<H", head, 0x236, xloadflags)
    struct.pack_into("<II", head, 0x248, 64, len(payload))
    head[0x600 : 0x600 + len(version)] = version.encode()
    return bytes(head) + bytes(64) + payload + bytes(100)


def with_checksum(image: bytes) -> bytes:
    """The image as tools/build finishes it: its length in the header, and CRC-32 at its end."""
    padded = bytearray(image.ljust(-(-(len(image) + 4) // 16) * 16 - 4, b"\0"))
    struct.pack_into("<I", padded, 0x1F4, (len(padded) + 4 - 5 * 512) // 16)
    return bytes(padded) + struct.pack("<I", zlib.crc32(padded) ^ 0xFFFFFFFF)


def flipped(data: bytes, at: int) -> bytes:
    """With one bit another."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _sized(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """As scripts/Makefile.lib does: the unpacked size behind the packed data."""
    return lambda data: pack(data) + struct.pack("<I", len(data))


def _lz4_legacy(data: bytes) -> bytes:
    blocks = [data[at : at + (8 << 20)] for at in range(0, len(data), 8 << 20)]
    packed = [lz4.block.compress(block, store_size=False) for block in blocks]
    return b"\x02\x21\x4c\x18" + b"".join(struct.pack("<I", len(one)) + one for one in packed)


def _xz_kernel(data: bytes) -> bytes:
    """With the x86 filter, as scripts/xz_wrap.sh uses it."""
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": _sized(_xz_kernel),
    "lzma": _sized(lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE)),
    "bzip2": _sized(bz2.compress),
    "zstd": _sized(zstandard.ZstdCompressor(level=3, write_checksum=True).compress),
    "lz4": _sized(_lz4_legacy),
    "none": lambda data: data,
}


def vmlinuz(
    directory: Path, name: str = "vmlinuz", compression: str = "zstd", version: str = VERSION
) -> Path:
    """Write a whole good image."""
    path = directory / name
    path.write_bytes(bzimage(COMPRESSIONS[compression](elf()), version))
    return path


def module_tree(directory: Path, release: str = RELEASE, names: tuple[str, ...] = ("one", "two")) -> Path:
    """Write lib/modules/RELEASE below `directory` and return it."""
    modules = directory / "lib" / "modules" / release
    (modules / "kernel").mkdir(parents=True)
    for name in names:
        (modules / "kernel" / f"{name}.ko").write_bytes(module(release))
    (modules / "modules.order").write_text("".join(f"kernel/{name}.ko\n" for name in names))
    (modules / "modules.builtin").write_text("kernel/fs/builtin-fs.ko\n")
    return modules


# Kernel-like images of a few C functions: linked where kernels lie, with the symbols that linkers write.

_FLAGS = (
    "-O2",
    "-mcmodel=kernel",
    "-fno-pie",
    "-fno-pic",
    "-ffreestanding",
    "-fno-asynchronous-unwind-tables",
)


_LINK = (
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,-Ttext=0xffffffff81000000",
    "-Wl,--build-id=0x{id}",
    "-Wl,-e,0",
)


CODE = """\
const char linux_banner[] = "Linux version 6.1.7 (a@b) #1 SMP Mon Jan 1 00:00:00 UTC 2026";
__attribute__((section(".note.Xen"), used, aligned(4)))
static const struct {{ int name_size, size, type; char name[4]; unsigned long long page; }} xen = {{
    4, 8, 3, "Xen", 1
}};
int slice = 3;
static const char *volatile said;
__attribute__((noinline)) int pick(int task) {{ return task * slice; }}
__attribute__((noinline)) int wake(int task) {{ said = "woken"; return pick(task) + {waking}; }}
{inserted}
__attribute__((noinline)) int fork_one(int task) {{ said = "forked"; return wake(task) ^ pick(task + 1); }}
int (*const table[])(int) = {{ pick, wake, fork_one }};
int _start(int number) {{ said = linux_banner; return table[number](slice); }}
"""


def image(
    directory: Path, code: str, build_id: str = "aa", beside: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """Compile and link it, with the C files beside it, from their paths to their code; the file."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "image.c").write_text(code)
    for name, content in beside.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(content)
    link = [word.format(id=build_id) for word in _LINK]
    made = directory / "vmlinux"
    subprocess.run(["gcc", *_FLAGS, *link, "-o", made, "image.c", *beside], check=True, cwd=directory)
    return made


def a_kernel_of(
    directory: Path,
    name: str,
    *,
    waking: int = 1,
    inserted: str = "",
    slice_: int = 3,
    build_id: str = "aa",
    stamp: str = "Jan 1 00:00:00 UTC 2026",
    options: tuple[NewOption, ...] = (),
    release: str = "6.1.7",
    build: Build | None = None,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """As a study builds it, with its image."""
    code = CODE.format(waking=waking, inserted=inserted)
    code = code.replace("slice = 3", f"slice = {slice_}").replace("Jan 1 00:00:00 UTC 2026", stamp)
    code = code.replace("Linux version 6.1.7 ", f"Linux version {release} ")
    vmlinux = image(directory / name, code, build_id, beside)
    build = build or Build(source="/linux", options={"CONFIG_NAME": name})
    return Kernel(
        name=build.name,
        release=release,
        origin=Origin(provider="build", source="/linux", build=build, new_options=options),
        digest=hashlib.sha256(vmlinux.read_bytes() + name.encode()).hexdigest(),
        image=vmlinux,
        vmlinux=vmlinux,
    )


def with_module(kernel: Kernel, directory: Path, code: str, name: str = "demo") -> Kernel:
    """The kernel with one module of that C code, as `make modules_install` would place it."""
    place = directory / "lib" / "modules" / kernel.release / "kernel" / "drivers"
    place.mkdir(parents=True)
    source = place / f"{name}.c"
    mark = (
        f'__attribute__((section(".modinfo"), used)) static const char m[] = "vermagic={kernel.release} SMP";'
    )
    source.write_text(f"{code}\n{mark}\n")
    subprocess.run(["gcc", *_FLAGS, "-c", "-o", source.with_suffix(".ko"), source], check=True)
    source.unlink()
    digest = hashlib.sha256(source.with_suffix(".ko").read_bytes() + kernel.digest.encode()).hexdigest()
    return kernel.model_copy(update={"modules": place.parents[1], "digest": digest})


# RPM packages as rpmbuild makes them, of files that a test lays out.

_SPEC = """\
Name: {name}
Version: {version}
Release: {release}
Summary: a package of a test
License: GPL-2.0
BuildArch: {architecture}
AutoReqProv: no
%define _binary_payload {payload}
%define __os_install_post %{{nil}}
%define _build_id_links none
%description
Made by a test.
%install
mkdir -p %{{buildroot}}
cp -a {files}/. %{{buildroot}}/
%files
/*
"""


def package(
    directory: Path,
    name: str,
    files: Path,
    build: str = "6.11.4-301.fc41",
    architecture: str = "x86_64",
    payload: str = "w3.zstdio",
) -> Path:
    """A package of everything below `files`, in the directory. `payload`: rpm's name for a compression."""
    version, _, release = build.partition("-")
    work = directory / f".{name}-{build}.{architecture}"
    work.mkdir(parents=True)
    facts = {"name": name, "version": version, "release": release, "files": files}
    (work / "a.spec").write_text(_SPEC.format(**facts, architecture=architecture, payload=payload))
    # Format 6, which rpm 6 makes, no other reader knows.
    options = (
        "--define",
        "_rpmformat 4",
        "--define",
        f"_topdir {work}",
        "--define",
        f"_rpmdir {work}/out",
        "--target",
        architecture,
    )
    command = ["rpmbuild", "-bb", "--quiet", *options, str(work / "a.spec")]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = (work / "out").rglob("*.rpm")
    return made.rename(directory / made.name)
