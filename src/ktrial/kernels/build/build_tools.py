"""The programs and headers that a build needs here: all that are missing are told at once, before any work.

What a configuration needs follows from its options, as the kernel's Makefiles have it. ktrial's builds make
`vmlinux` and `modules`, no packed image: what only packs that (KERNEL_XZ and its kin) is not asked for.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ktrial.kernels.build.configuration import given_text, shipped_text
from ktrial.kernels.build.errors import BuildToolsMissing
from ktrial.kernels.build.patches import PATCH
from ktrial.kernels.build.recipes import content_kept
from ktrial.kernels.build.source_debian import XZ, config_tools
from ktrial.kernels.build.sources import source_tools
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.modules.depmod import DEPMOD
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, Build
from ktrial.system_tools import Tool, missing_of, packages_of

_BUILDS = "builds kernels"
_ALWAYS = (
    *(Tool(name, name, _BUILDS) for name in ("make", "flex", "bison", "bc", "perl")),
    # objtool needs it, which every kernel with ORC unwinding or return thunks runs.
    Tool("libelf.h", "libelf-dev", _BUILDS),
)
_OPENSSL = (
    Tool("openssl", "openssl", "signs modules"),
    Tool("openssl/opensslv.h", "libssl-dev", "signs modules"),
)
_PACKS = "packs what a kernel's configuration asks for"
_ZSTD, _GZIP, _LZ4, _CPIO = (Tool(name, name, _PACKS) for name in ("zstd", "gzip", "lz4", "cpio"))
_BTF = "CONFIG_DEBUG_INFO_BTF"
_BY_OPTION: Mapping[str, tuple[Tool, ...]] = {
    "CONFIG_MODULE_SIG": _OPENSSL,  # certs/Makefile, scripts/sign-file.c
    "CONFIG_SYSTEM_TRUSTED_KEYRING": _OPENSSL,
    _BTF: (),  # pahole: scripts/link-vmlinux.sh
    "CONFIG_IKCONFIG": (_GZIP,),  # kernel/Makefile: config_data.gz
    "CONFIG_IKHEADERS": (_CPIO, XZ),  # kernel/gen_kheaders.sh
    "CONFIG_MODULE_COMPRESS_GZIP": (_GZIP,),  # scripts/Makefile.modinst
    "CONFIG_MODULE_COMPRESS_XZ": (XZ,),
    "CONFIG_MODULE_COMPRESS_ZSTD": (_ZSTD,),
    "CONFIG_INITRAMFS_COMPRESSION_GZIP": (_GZIP,),  # usr/Makefile
    "CONFIG_INITRAMFS_COMPRESSION_XZ": (XZ,),
    "CONFIG_INITRAMFS_COMPRESSION_ZSTD": (_ZSTD,),
    "CONFIG_INITRAMFS_COMPRESSION_LZ4": (_LZ4,),
    # scripts/generate_builtin_ranges.awk, 6.12
    "CONFIG_BUILTIN_MODULE_RANGES": (Tool("gawk", "gawk", _BUILDS),),
    # drivers/gpu/drm/msm/registers/gen_header.py, 6.10
    "CONFIG_DRM_MSM": (Tool("python3", "python3", _BUILDS),),
    "CONFIG_RUST": (Tool("rustc", "rustc", _BUILDS), Tool("bindgen", "bindgen", _BUILDS)),
}
_LLVM = ("llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-objdump", "llvm-readelf", "llvm-strip")


def tools_of(wanted: Build) -> tuple[Tool, ...]:
    """All that is known to be needed before a source is there: nothing is fetched. Raises BadConfigFile."""
    options = asked_options(wanted.config, wanted.options, wanted.config_digest)
    patching = (PATCH,) if wanted.patches else ()
    configured = (DEPMOD, *config_tools()) if wanted.config == DEBIAN else ()
    return (*build_tools(options, wanted.make), *patching, *source_tools(wanted.source), *configured)


def check_tools_of(wanted: Build) -> None:
    """Raise BuildToolsMissing by what is asked for alone. Raises BadConfigFile, too."""
    _check(wanted.source, tools_of(wanted))


def check_tools(
    called: object,
    options: Mapping[str, str],
    make: Mapping[str, str] | None = None,
    more: tuple[Tool, ...] = (),
) -> None:
    """Raise BuildToolsMissing, which names all programs and headers that are missing, and their packages.

    `called`: what errors call the source. `options`: as a configuration has them, or what is known of it.
    `make`: variables that name programs.
    """
    _check(called, (*build_tools(options, make or {}), *more))


def _check(called: object, needed: tuple[Tool, ...]) -> None:
    if missing := missing_of(needed):
        tools = ", ".join(tool.name for tool in missing)
        raise BuildToolsMissing(name=called, directory=called, tools=tools, packages=packages_of(missing))


def build_tools(options: Mapping[str, str], make: Mapping[str, str]) -> tuple[Tool, ...]:
    """What compiling a kernel of these options runs and includes."""
    headers_for = tuple(make.get("HOSTCC", "").split()) or (_host_compiler(make),)
    needed = (*_compilers(make), *_ALWAYS, *_by_options(options, make))
    return tuple(tool._replace(compiler=headers_for) if tool.name.endswith(".h") else tool for tool in needed)


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
        yield from (Tool(f"{before}{program}{after}", "llvm", _BUILDS) for program in _LLVM)
    else:
        yield _named(make, "CC", "gcc", "gcc")
        yield _named(make, "LD", "ld", "binutils")
        yield _named(make, "OBJCOPY", "objcopy", "binutils")
    host = _host_compiler(make)
    yield Tool(host, host, _BUILDS)


def _host_compiler(make: Mapping[str, str]) -> str:
    """What compiles the source's own tools, as ktrial calls make."""
    named = make.get("HOSTCC", "").split()
    return named[0] if named else "clang" if make.get("LLVM") == "1" else "gcc"


def _named(make: Mapping[str, str], variable: str, program: str, package: str) -> Tool:
    """The program that a variable names, or else is used."""
    named = make.get(variable, "").split()
    return Tool(named[0], named[0], _BUILDS) if named else Tool(program, package, _BUILDS)


def _by_options(options: Mapping[str, str], make: Mapping[str, str]) -> Iterator[Tool]:
    for option, tools in _BY_OPTION.items():
        if options.get(option, "n") != "n":
            yield from tools if option != _BTF else (_named(make, "PAHOLE", "pahole", "dwarves"),)
    if "m" in options.values():
        yield DEPMOD
