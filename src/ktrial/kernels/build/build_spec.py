"""A Build from what a user writes: names and paths in one form, files read, mistakes found first."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.errors import BadBuildOption, BadConfigFile, BadMakeVariable, SourceUnusable
from ktrial.kernels.build.patch_reader import bad
from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.build.sources import DEBIAN_PREFIX, GIT_PREFIX, git_parts
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, Build, Patch
from ktrial.model.notation import nearest

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
    `defconfig`, `debian`, or a file. `options`: `{"SLAB": "y"}` or `["SLAB=y"]`. `fuzz`: how many lines at
    the edges of a patch's hunk may differ from the source's.
    Raises SourceUnusable, BadConfigFile, BadBuildOption, BadPatch, BadMakeVariable.
    """
    texts = (
        [f"{name}={value}" for name, value in options.items()] if isinstance(options, Mapping) else options
    )
    config, digest = _config(config, directory)
    return Build(
        source=_source(source, directory),
        config=config,
        config_digest=digest,
        options=dict(option_of(text) for text in texts),
        patches=tuple(_patch(patch, directory) for patch in patches),
        fuzz=fuzz,
        make={name: _variable(name, value) for name, value in sorted((make or {}).items())},
    )


def variable_of(text: str) -> tuple[str, str]:
    """`KCFLAGS=-O3` as name and value. Raises BadMakeVariable."""
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
    path = _absolute(Path(config), directory)
    if _may_have_no_end(path):
        raise BadConfigFile(name=path, directory="", path=path, problem="it is no file")
    try:
        return str(path), hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        similar = "" if set("/.") & set(config) else nearest(config, [GUEST, DEFCONFIG, DEBIAN])
        raise BadConfigFile(
            name=path, directory="", path=path, problem=f"{error.strerror}{similar}"
        ) from None


def _patch(patch: str, directory: Path) -> Patch:
    path = _absolute(Path(patch), directory)
    if _may_have_no_end(path):
        raise bad(path, "it is no file", "give the path of a file")
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


def _bad_variable(text: str, problem: str) -> BadMakeVariable:
    allowed = ", ".join(MAKE_VARIABLES)
    return BadMakeVariable(name=text, directory="", text=text, problem=problem, allowed=allowed)


def _unusable(source: str, problem: str, advice: str) -> SourceUnusable:
    return SourceUnusable(name=source, directory=source, source=source, problem=problem, advice=advice)


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
        raise BadBuildOption(name=text, directory="", text=text, problem=problem)
    value = match["value"].strip()
    if not value:
        raise BadBuildOption(name=text, directory="", text=text, problem="there is no value")
    if not _PLAIN.fullmatch(value):
        inside = _TEXT.fullmatch(value)
        if inside is None:
            problem = "a text has no quotes, backslashes or line ends in it"
            raise BadBuildOption(name=text, directory="", text=text, problem=problem)
        value = f'"{inside[1]}"'
    return f"CONFIG_{match['name']}", value
