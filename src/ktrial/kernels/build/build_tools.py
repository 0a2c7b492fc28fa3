"""The programs and headers that a build needs here: all that are missing are told at once, before any work.

What a configuration needs follows from its options, as the kernel's Makefiles have it. ktrial's builds make
`vmlinux` and `modules`, no packed image: what only packs that (KERNEL_XZ and its kin) is not asked for.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ktrial.kernels.build.configuration import given_text, shipped_text
from ktrial.kernels.build.errors import BuildToolsMissing
from ktrial.kernels.build.recipes import content_kept
from ktrial.kernels.build.sources import DEBIAN_PREFIX, GIT_PREFIX
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.modules.depmod import SBIN
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, Build


class Tool(NamedTuple):
    """A program, or a header (`libelf.h`), and Debian's package that has it."""

    name: str
    package: str


_ALWAYS = (
    *(Tool("make", "make"), Tool("flex", "flex"), Tool("bison", "bison"), Tool("bc", "bc")),
    Tool("perl", "perl"),
    # objtool needs it, which every kernel with ORC unwinding or return thunks runs.
    Tool("libelf.h", "libelf-dev"),
)
_DEPMOD = Tool("depmod", "kmod")
_OPENSSL = (Tool("openssl", "openssl"), Tool("openssl/opensslv.h", "libssl-dev"))
_XZ, _ZSTD, _GZIP = Tool("xz", "xz-utils"), Tool("zstd", "zstd"), Tool("gzip", "gzip")
_LZ4, _CPIO = Tool("lz4", "lz4"), Tool("cpio", "cpio")
_BTF = "CONFIG_DEBUG_INFO_BTF"
_BY_OPTION: Mapping[str, tuple[Tool, ...]] = {
    "CONFIG_MODULE_SIG": _OPENSSL,  # certs/Makefile, scripts/sign-file.c
    "CONFIG_SYSTEM_TRUSTED_KEYRING": _OPENSSL,
    _BTF: (),  # pahole: scripts/link-vmlinux.sh
    "CONFIG_IKCONFIG": (_GZIP,),  # kernel/Makefile: config_data.gz
    "CONFIG_IKHEADERS": (_CPIO, _XZ),  # kernel/gen_kheaders.sh
    "CONFIG_MODULE_COMPRESS_GZIP": (_GZIP,),  # scripts/Makefile.modinst
    "CONFIG_MODULE_COMPRESS_XZ": (_XZ,),
    "CONFIG_MODULE_COMPRESS_ZSTD": (_ZSTD,),
    "CONFIG_INITRAMFS_COMPRESSION_GZIP": (_GZIP,),  # usr/Makefile
    "CONFIG_INITRAMFS_COMPRESSION_XZ": (_XZ,),
    "CONFIG_INITRAMFS_COMPRESSION_ZSTD": (_ZSTD,),
    "CONFIG_INITRAMFS_COMPRESSION_LZ4": (_LZ4,),
    "CONFIG_BUILTIN_MODULE_RANGES": (Tool("gawk", "gawk"),),  # scripts/generate_builtin_ranges.awk, 6.12
    "CONFIG_DRM_MSM": (Tool("python3", "python3"),),  # drivers/gpu/drm/msm/registers/gen_header.py, 6.10
    "CONFIG_RUST": (Tool("rustc", "rustc"), Tool("bindgen", "bindgen")),
}
_LLVM = ("llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-readelf", "llvm-strip")


def check_tools_of(wanted: Build) -> None:
    """As `check_tools`, by what is asked for alone: nothing is fetched.

    Raises BuildToolsMissing, BadConfigFile.
    """
    needed = [*_of_source(wanted), *([_DEPMOD] if wanted.config == DEBIAN else [])]
    check_tools(
        wanted.source, asked_options(wanted.config, wanted.options, wanted.config_digest), wanted.make, needed
    )


def check_tools(
    called: object,
    options: Mapping[str, str],
    make: Mapping[str, str] | None = None,
    more: list[Tool] | None = None,
) -> None:
    """Raise BuildToolsMissing, which names all programs and headers that are missing, and their packages.

    `called`: what errors call the source. `options`: as a configuration has them, or what is known of it.
    `make`: variables that name programs.
    """
    needed = dict.fromkeys(
        [*_compilers(make or {}), *_ALWAYS, *_by_options(options, make or {}), *(more or ())]
    )
    missing = [tool for tool in needed if not _is_here(tool, make or {})]
    if missing:
        tools = ", ".join(tool.name for tool in missing)
        packages = " ".join(dict.fromkeys(tool.package for tool in missing))
        raise BuildToolsMissing(name=called, directory=called, tools=tools, packages=packages)


def asked_options(config: str, options: Mapping[str, str], digest: str = "") -> Mapping[str, str]:
    """The options that are known before a source is there. Raises BadConfigFile."""
    text = shipped_text(config)
    if config not in {GUEST, DEFCONFIG, DEBIAN}:
        text = given_text(content_kept(digest) or Path(config).expanduser())
    return parse_config(text) | dict(options)


def _compilers(make: Mapping[str, str]) -> Iterator[Tool]:
    """Documentation/kbuild/llvm.rst: LLVM=1, LLVM=-19 and LLVM=/opt/llvm/bin/ name all of LLVM's programs."""
    llvm = make.get("LLVM", "")
    before, after = llvm if llvm.endswith("/") else "", llvm if llvm.startswith("-") else ""
    if llvm:
        yield _named(make, "CC", f"{before}clang{after}", "clang")
        yield _named(make, "LD", f"{before}ld.lld{after}", "lld")
        yield from (Tool(f"{before}{program}{after}", "llvm") for program in _LLVM)
    else:
        yield _named(make, "CC", "gcc", "gcc")
        yield _named(make, "LD", "ld", "binutils")
        yield _named(make, "OBJCOPY", "objcopy", "binutils")
    host = _host_compiler(make)
    yield Tool(host, host)


def _host_compiler(make: Mapping[str, str]) -> str:
    """What compiles the source's own tools, as ktrial calls make."""
    named = make.get("HOSTCC", "").split()
    return named[0] if named else "clang" if make.get("LLVM") == "1" else "gcc"


def _named(make: Mapping[str, str], variable: str, program: str, package: str) -> Tool:
    """The program that a variable names, or else is used."""
    named = make.get(variable, "").split()
    return Tool(named[0], named[0]) if named else Tool(program, package)


def _by_options(options: Mapping[str, str], make: Mapping[str, str]) -> Iterator[Tool]:
    for option, tools in _BY_OPTION.items():
        if options.get(option, "n") != "n":
            yield from tools if option != _BTF else (_named(make, "PAHOLE", "pahole", "dwarves"),)
    if "m" in options.values():
        yield _DEPMOD


def _of_source(wanted: Build) -> Iterator[Tool]:
    if wanted.patches:
        yield Tool("patch", "patch")
    if wanted.source.startswith(GIT_PREFIX):
        yield Tool("git", "git")
    if wanted.source.startswith(DEBIAN_PREFIX):
        yield from (Tool("tar", "tar"), _XZ)


def _is_here(tool: Tool, make: Mapping[str, str]) -> bool:
    if not tool.name.endswith(".h"):
        return shutil.which(tool.name, path=os.pathsep.join((os.environ.get("PATH", ""), *SBIN))) is not None
    compiler = make.get("HOSTCC", "").split() or [_host_compiler(make)]
    if shutil.which(compiler[0]) is None:
        return True  # without a compiler nobody can say
    done = subprocess.run(
        [*compiler, "-E", "-x", "c", "-o", "/dev/null", "-"],
        input=f"#include <{tool.name}>\n".encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0
