"""Debian's kernel sources: the packages linux-source-…, fetched as kernels are, unpacked, not installed."""

import lzma
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from debian.debian_support import Version

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, programs, silent
from ktrial.kernels.errors import BuildError, FetchFailed
from ktrial.kernels.files import file_system_errors, require_space, write_atomically
from ktrial.kernels.kernel_cache import Cache, held
from ktrial.kernels.packages import unpack
from ktrial.kernels.packages.apt import APT, SOURCE, Archive, Package, PrivateApt
from ktrial.kernels.packages.deb import DPKG_DEB
from ktrial.kernels.programs import require_tool
from ktrial.kernels.providers.debian import debian_archives, system_sources
from ktrial.system_tools import Tool

XZ = Tool("xz", "xz-utils", "unpacks Debian's source, and packs what a configuration asks for")
_TAR = Tool("tar", "tar", "unpacks Debian's source")
_PACKAGES = r"linux-(source|config)-\d+\.\d+"
_CONFIG = "config.amd64_none_amd64.xz"
"""Of the flavour for real machines, as `debian:6.12:generic` has it."""
UNPACKED_BYTES = 1700 << 20


def debian_source(package: str, progress: Progress = silent) -> Path:
    """The directory with the source in Debian's `package` (`linux-source-6.1`), fetched if it is not there.

    It is the cache's: to be copied, not to be changed. Raises KernelError, FetchFailed, NoDebianSource,
    CacheFull, ToolMissing.
    """
    sources = cache_directory() / "sources"
    with file_system_errors(sources):
        sources.mkdir(parents=True, exist_ok=True)
        with held(sources / f"{package}.lock", progress, "waiting for another ktrial that fetches it"):
            if homes := [makefile.parent for makefile in sources.glob(f"{package}_*/Makefile")]:
                return max(homes, key=lambda home: Version(home.name.rpartition("_")[2]))
            cache = Cache()
            with cache.adding(f"debian:{package}", progress), cache.workspace() as workspace:
                newest = _unpacked(package, workspace, sources, progress)
                untar(workspace / "root/usr/src" / f"{package}.tar.xz", workspace, UNPACKED_BYTES)
                home = sources / f"{package}_{newest.version}"
                (workspace / package).rename(home)
                return home


def package_tools(package: str) -> tuple[Tool, ...]:
    """What fetches and unpacks Debian's `package`; nothing where the cache has its source."""
    is_cached = any((cache_directory() / "sources").glob(f"{package}_*/Makefile"))
    return () if is_cached else (APT, DPKG_DEB, _TAR, XZ)


def config_tools(series: str = "*") -> tuple[Tool, ...]:
    """What fetches Debian's configuration of a series; nothing where the cache has it, or any: `*`."""
    is_cached = any((cache_directory() / "sources").glob(f"linux-config-{series}.config"))
    return () if is_cached else (APT, DPKG_DEB)


def debian_config(series: str, progress: Progress = silent) -> str:
    """Debian's own configuration of a series of kernels (`6.1`), without what builds only at Debian.

    Raises KernelError, FetchFailed, NoDebianSource, CacheFull, ToolMissing.
    """
    package = f"linux-config-{series}"
    sources = cache_directory() / "sources"
    with file_system_errors(sources):
        sources.mkdir(parents=True, exist_ok=True)
        with held(sources / f"{package}.lock", progress, "waiting for another ktrial that fetches it"):
            cached = sources / f"{package}.config"
            if not cached.exists():
                cache = Cache()
                with cache.adding(f"debian:{package}", progress), cache.workspace() as workspace:
                    _unpacked(package, workspace, sources, progress)
                    packed = workspace / "root/usr/src" / package / _CONFIG
                    write_atomically(cached, lzma.decompress(packed.read_bytes()))
            return cached.read_text(encoding="utf-8") + of_distributors()


def of_distributors() -> str:
    """What is set over a distribution's configuration, as only the distributor can build that."""
    return files(__package__).joinpath("debian.config").read_text(encoding="utf-8")


def series_of(version: str) -> str:
    """The series whose configuration fits a source: `6.1` for `6.1.192`, `7.0` for `7.0.0-rc1`."""
    return ".".join(re.findall(r"\d+", version)[:2])


def _unpacked(package: str, workspace: Path, sources: Path, progress: Progress) -> Package:
    """Fetch the newest version of a package, and unpack it into the directory `root` of the workspace."""
    apt = _apt()
    archives = debian_archives(package, system_sources(package))
    newest = chosen(package, apt.packages(archives, package, progress))
    unpacked = UNPACKED_BYTES if package.startswith("linux-source") else 0
    require_space(sources, newest.size + newest.installed + unpacked)
    debs = workspace / "debs"
    debs.mkdir()
    (deb,) = apt.download([newest], debs, package, progress)
    progress(f"unpacking {package}")
    unpack(deb, workspace / "root")
    return newest


def suites_of(package: str, version: str, progress: Progress) -> tuple[Archive, ...]:
    """The suites that hold this version of the package; all where its lists have gone on since.

    Raises FetchFailed, NoDebianSource, ToolMissing.
    """
    archives = debian_archives(package, system_sources(package))
    packages = [entry for entry in _apt().packages(archives, package, progress) if entry.name == package]
    suites = {entry.suite for entry in packages if entry.version == version} or {
        entry.suite for entry in packages
    }
    # The lists of all suites are hundreds of megabytes.
    fewer = (
        replace(entry, suites=tuple(name for name in entry.suites if name in suites)) for entry in archives
    )
    return tuple(entry for entry in fewer if entry.suites)


def _apt() -> PrivateApt:
    return PrivateApt(Cache().root / "providers" / "debian-build", "Debian", "amd64", _PACKAGES)


def chosen(package: str, packages: tuple[Package, ...]) -> Package:
    """The newest version. Raises KernelError."""
    if fitting := [candidate for candidate in packages if candidate.name == package]:
        return max(fitting, key=lambda candidate: Version(candidate.version))
    kind = package.rpartition("-")[0]
    available = sorted(
        {candidate.name for candidate in packages if candidate.name.startswith(kind)}, key=_numbers
    )
    raise BuildError(
        f"Debian has no source package {package}: no suite of the configured mirrors holds it.",
        hint=f"there are: {', '.join(available) or 'none'}",
    )


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def untar(archive: Path, directory: Path, size: int) -> None:
    """Unpack an archive, out of which `size` bytes may come. Raises ToolMissing, KernelError, NoSpace."""
    require_tool(XZ)
    hint = "the package may be damaged: try again"
    programs.run(_TAR, ["tar", "-xJf", archive, "-C", directory], directory, hint, size)


# Debian's own part of a kernel's source package: `debian/`, with the patches that it carries.
#
# The binary package linux-source-6.1 is Linux with the series `debian/patches` applied; other series of the
# same source package, `debian/patches-rt` (PREEMPT_RT), are made to apply on top of that.

_NAME = "linux"
"""Of the source package."""
_UNPACKED_BYTES = 100 << 20
_NOT_THERE = re.compile(r"\b404\b")


@dataclass(frozen=True)
class Packaging:
    """What a source package adds to the source."""

    directory: Path
    """The one that holds `debian/`; the cache's: not to be changed."""
    version: str
    """Of the source package that it was taken from."""
    source_version: str
    """Of the source that it was asked for: another one where the mirror has lost the package of that."""


def debian_packaging(package: str, progress: Progress = silent) -> Packaging:
    """The packaging of the source package that `package` (`linux-source-6.1`) was built from.

    Raises KernelError, FetchFailed, NoDebianSource, CacheFull, ToolMissing.
    """
    version = debian_source(package, progress).name.rpartition("_")[2]
    sources = cache_directory() / "sources"
    with (
        file_system_errors(sources),
        held(sources / f"{_NAME}.lock", progress, "waiting for another ktrial that fetches it"),
    ):
        directory = _cached_packaging(sources, version)
        if directory is None:
            cache = Cache()
            with cache.adding(f"debian:{_NAME}", progress), cache.workspace() as workspace:
                directory = _source_packaging_fetched(package, version, workspace, sources, progress)
        return Packaging(directory, directory.name.rpartition("_")[2], version)


def candidates(packages: tuple[Package, ...], version: str) -> list[Package]:
    """Source packages of the same Linux series that are not newer, the newest first."""
    series = series_of(version)
    newest = Version(version)
    alike = (
        package
        for package in packages
        if series_of(package.version) == series and Version(package.version) <= newest
    )
    return sorted(alike, key=lambda package: Version(package.version), reverse=True)


def _cached_packaging(sources: Path, version: str) -> Path | None:
    """Of that version, or what was taken in its place."""
    exact, stand_in = sources / f"{_NAME}_{version}", _stand_in(sources, version)
    if exact.is_dir():
        return exact
    return sources / stand_in.read_text(encoding="utf-8") if stand_in.exists() else None


def _stand_in(sources: Path, version: str) -> Path:
    """The file that names the directory which stands for a version that the mirror has lost."""
    return sources / f"{_NAME}_{version}.instead"


def _source_packaging_fetched(
    package: str, version: str, workspace: Path, sources: Path, progress: Progress
) -> Path:
    """Mirrors drop the files of source packages that newer ones replace: then an older one has to do."""
    apt = PrivateApt(Cache().root / "providers" / "debian-packaging", "Debian", SOURCE, _NAME)
    packages = candidates(apt.packages(suites_of(package, version, progress), package, progress), version)
    failure: FetchFailed | None = None
    for number, source_package in enumerate(packages):
        into = workspace / str(number)
        into.mkdir()
        require_space(sources, source_package.size + _UNPACKED_BYTES)
        try:
            (file,) = apt.download([source_package], into, package, progress)
        except FetchFailed as error:
            if not _NOT_THERE.search(error.message):
                raise
            failure = failure or error
        else:
            untar(file, file.parent, _UNPACKED_BYTES)
            file.unlink()
            home = sources / f"{_NAME}_{source_package.version}"
            if not home.exists():
                file.parent.rename(home)
            if source_package.version != version:
                write_atomically(_stand_in(sources, version), home.name)
            return home
    raise failure or BuildError(
        f"Debian has no source package {_NAME}: no suite of the configured mirrors holds that "
        f"of {package} {version}.",
        hint="a directory with a series file will do: --quilt DIR",
    )
