"""A Build from what a user writes: names and paths in one form, files read, mistakes found first."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.configuration import given_text, shipped_text
from ktrial.kernels.build.debian_sources import XZ, config_tools
from ktrial.kernels.build.patches import PATCH, bad, paths_in, text_of
from ktrial.kernels.build.reached import COMPILED
from ktrial.kernels.build.recipes import content_kept
from ktrial.kernels.build.sources import DEBIAN_PREFIX, GIT_PREFIX, git_parts, release_commit, source_tools
from ktrial.kernels.config import parse_config
from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import (
    BadBuildOption,
    BadConfigFile,
    BuildToolsMissing,
    KernelUsageError,
    SourceUnusable,
)
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, REACHED, Build, Patch
from ktrial.model.notation import nearest
from ktrial.system_tools import Tool, missing_of, packages_of

MAKE_VARIABLES = (
    *("KCFLAGS", "KAFLAGS", "KCPPFLAGS", "KRUSTFLAGS", "HOSTCFLAGS", "HOSTLDFLAGS"),
    *(
        "CC",
        "HOSTCC",
        "LD",
        "AR",
        "NM",
        "OBJCOPY",
        "OBJDUMP",
        "READELF",
        "STRIP",
        "LLVM",
        "LLVM_IAS",
        "PAHOLE",
    ),
)
"""Flags and programs of the compilation (Documentation/kbuild/kbuild.rst, llvm.rst). Nothing that says where
things are written, and nothing that ktrial fixes to make builds reproducible."""
_UNSAFE = re.compile(r"[$`\n\r\0#]")
"""make would expand or cut these."""
_SOURCES = "debian:linux-source-6.1, a directory, a tarball, git:DIRECTORY@REVISION"
_PACKAGE = re.compile(r"linux-source-\d+\.\d+")
_SERIES = re.compile(r"\d+\.\d+")


def requested(
    source: str,
    *,
    config: str = GUEST,
    options: Mapping[str, str] | Sequence[str] = (),
    patches: Sequence[str] = (),
    make: Mapping[str, str] | None = None,
    fuzz: int = 0,
    directory: Path,
) -> Build:
    """What to build. Relative paths are below `directory`; nothing is fetched or compiled.

    `source`: `debian:linux-source-6.1`, a directory, a tarball, `git:DIRECTORY@REVISION`. `config`: `guest`,
    `defconfig`, `debian`, `debian:6.12`, a file, or `reached:` and a file. `options`: `{"SLAB": "y"}` or
    `["SLAB=y"]`. `fuzz`: how many lines at the edges of a patch's hunk may differ from the source's.
    Raises SourceUnusable, BadConfigFile, BadBuildOption, BadPatch, KernelUsageError.
    """
    texts = (
        [f"{name}={value}" for name, value in options.items()] if isinstance(options, Mapping) else options
    )
    config, digest = _config(config, directory)
    place = _source(source, directory)
    series_patches = tuple(_patch(patch, directory) for patch in patches)
    spec = Build(
        source=place,
        config=config,
        config_digest=digest,
        options=dict(option_of(text) for text in texts),
        patches=series_patches,
        fuzz=fuzz,
        make={name: _variable(name, value) for name, value in sorted((make or {}).items())},
        since="" if place.startswith(DEBIAN_PREFIX) else release_commit(place),
    )
    return reaching(spec, (path for patch in series_patches for path in paths_in(patch.path, text_of(patch))))


def reaching(spec: Build, paths: Iterable[str]) -> Build:
    """The same, with these files of the source compiled, too, where it builds only what can be reached."""
    if not spec.is_reached:
        return spec
    compiled = {path for path in paths if path.endswith(COMPILED)}
    return spec.model_copy(update={"touched": tuple(sorted(compiled.union(spec.touched)))})


def variable_of(text: str) -> tuple[str, str]:
    """`KCFLAGS=-O3` as name and value. Raises KernelUsageError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise _bad_variable(text, "there is no '='")
    return name.strip(), _variable(name.strip(), value)


def _source(source: str, directory: Path) -> str:
    if source.startswith(DEBIAN_PREFIX):
        package = source.removeprefix(DEBIAN_PREFIX)
        if not _PACKAGE.fullmatch(package):
            raise _unusable(
                source, "Debian's sources are called linux-source-X.Y", "write debian:linux-source-6.1"
            )
        return source
    if source.startswith(GIT_PREFIX):
        repository, revision = git_parts(source)
        git_directory = _absolute(repository, directory)
        if not git_directory.is_dir():
            raise _unusable(source, f"there is no directory {git_directory}", f"give one of: {_SOURCES}")
        return f"{GIT_PREFIX}{git_directory}@{revision}"
    path = _absolute(Path(source), directory)
    if not source.strip() or not path.exists():
        kind, colon, _ = source.partition(":")
        problem = f"there is no {path}" if source.strip() else "it is empty"
        if colon and "/" not in kind:
            problem = f"there is no such kind of source{nearest(kind, ['debian', 'git'])}"
        raise _unusable(source or "''", problem, f"give one of: {_SOURCES}")
    return str(path)


def _config(config: str, directory: Path) -> tuple[str, str]:
    if config in {GUEST, DEFCONFIG, DEBIAN}:
        return config, ""
    if config.startswith(DEBIAN_PREFIX):
        if not _SERIES.fullmatch(config.removeprefix(DEBIAN_PREFIX)):
            problem = "Debian's configurations are called by a series of kernels, debian:6.12"
            raise BadConfigFile(path=config, problem=problem)
        return config, ""
    reached = REACHED if config.startswith(REACHED) else ""
    path = _absolute(Path(config.removeprefix(REACHED)), directory)
    if _may_have_no_end(path):
        raise BadConfigFile(path=path, problem="it is not a file")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        similar = "" if set("/.") & set(config) else nearest(config, [GUEST, DEFCONFIG, DEBIAN])
        raise BadConfigFile(path=path, problem=f"{error.strerror}{similar}") from None
    if reached:
        given_text(path)
    return f"{reached}{path}", digest


def _patch(patch: str, directory: Path) -> Patch:
    path = _absolute(Path(patch), directory)
    if _may_have_no_end(path):
        raise bad(path, "it is not a file", "give the path of a file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise bad(path, f"it cannot be read: {error.strerror}", "give the path of a file") from None
    series_patch = Patch(path=str(path), digest=hashlib.sha256(content).hexdigest())
    paths_in(series_patch.path, text_of(series_patch))
    return series_patch


def _may_have_no_end(path: Path) -> bool:
    """Whether it is a pipe or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _variable(name: str, value: str) -> str:
    if name not in MAKE_VARIABLES:
        raise _bad_variable(f"{name}={value}", f"{name} is none of those{nearest(name, MAKE_VARIABLES)}")
    if _UNSAFE.search(value):
        raise _bad_variable(f"{name}={value}", "make would expand what is in it ($, `, #, a line's end)")
    if not value.strip():
        raise _bad_variable(f"{name}=", "there is no value")
    return value.strip()


def _absolute(path: Path, directory: Path) -> Path:
    return (directory / path.expanduser()).absolute().resolve()


def _bad_variable(text: str, problem: str) -> KernelUsageError:
    return KernelUsageError(
        f"The make variable {text} cannot be set: {problem}.", hint=f"allowed: {', '.join(MAKE_VARIABLES)}"
    )


def _unusable(source: str, problem: str, advice: str) -> SourceUnusable:
    return SourceUnusable(source=source, problem=problem, advice=advice)


_OPTION = re.compile(r"(?:CONFIG_)?(?P<name>[A-Za-z0-9_]+)=(?P<value>.*)")
_PLAIN = re.compile(r"[ymn]|-?[0-9]+|0x[0-9a-fA-F]+")
_TEXT = re.compile(r'"?([^"\\\n]*)"?')


@dataclass(frozen=True)
class BuildRequest:
    """One kernel to build: which source, which configuration."""

    source: Path
    config: str = GUEST
    """`guest`, `defconfig`, or the path of a file."""
    options: tuple[tuple[str, str], ...] = ()
    """Options that are set over that: (`CONFIG_SLUB_DEBUG_ON`, `y`)."""


def build_request(source: Path, config: str = GUEST, options: tuple[str, ...] = ()) -> BuildRequest:
    """What to build, with the options as a user writes them. Raises BadBuildOption."""
    return BuildRequest(source, config, tuple(option_of(text) for text in options))


def option_of(text: str) -> tuple[str, str]:
    """`SLAB=y` or `CONFIG_SLAB=y` as name and value, as a configuration has them. Raises BadBuildOption."""
    match = _OPTION.fullmatch(text.strip())
    if match is None:
        problem = "there is no '='" if "=" not in text else "a name has letters, digits and underscores only"
        raise BadBuildOption(text=text, problem=problem)
    value = match["value"].strip()
    if not value:
        raise BadBuildOption(text=text, problem="there is no value")
    if not _PLAIN.fullmatch(value):
        inside = _TEXT.fullmatch(value)
        if inside is None:
            problem = "text may not contain quotes, backslashes or line ends"
            raise BadBuildOption(text=text, problem=problem)
        value = f'"{inside[1]}"'
    return f"CONFIG_{match['name']}", value


# The programs and headers that a build needs here: all that are missing are told at once, before any work.
#
# What a configuration needs follows from its options, as the kernel's Makefiles have it. ktrial's builds
# make `vmlinux` and `modules`, no packed image: what only packs that (KERNEL_XZ and its kin) is not asked
# for.

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


def tools_of(spec: Build) -> tuple[Tool, ...]:
    """All that is known to be needed before a source is there: nothing is fetched. Raises BadConfigFile."""
    options = asked_options(spec.config, spec.options, spec.config_digest)
    patching = (PATCH,) if spec.patches else ()
    configured = (DEPMOD, *config_tools()) if spec.config == DEBIAN else ()
    if spec.config.startswith(DEBIAN_PREFIX):
        configured = config_tools(spec.config.removeprefix(DEBIAN_PREFIX))
    return (*build_tools(options, spec.make), *patching, *source_tools(spec.source), *configured)


def check_tools_of(spec: Build) -> None:
    """Raise BuildToolsMissing by what is asked for alone. Raises BadConfigFile, too."""
    _check(spec.source, tools_of(spec))


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
        raise BuildToolsMissing(directory=called, tools=tools, packages=packages_of(missing))


def build_tools(options: Mapping[str, str], make: Mapping[str, str]) -> tuple[Tool, ...]:
    """What compiling a kernel of these options runs and includes."""
    headers_for = tuple(make.get("HOSTCC", "").split()) or (_host_compiler(make),)
    needed = (*_compilers(make), *_ALWAYS, *_by_options(options, make))
    return tuple(tool._replace(compiler=headers_for) if tool.name.endswith(".h") else tool for tool in needed)


def asked_options(config: str, options: Mapping[str, str], digest: str = "") -> Mapping[str, str]:
    """The options that are known before a source is there. Raises BadConfigFile."""
    text = shipped_text(config)
    # Of what is reached only, neither modules nor keys are built.
    if config not in {GUEST, DEFCONFIG, DEBIAN} and not config.startswith((DEBIAN_PREFIX, REACHED)):
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
