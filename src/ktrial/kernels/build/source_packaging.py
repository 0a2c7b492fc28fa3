"""Debian's own part of a kernel's source package: `debian/`, with the patches that it carries.

The binary package linux-source-6.1 is Linux with the series `debian/patches` applied; other series of the
same source package, `debian/patches-rt` (PREEMPT_RT), are made to apply on top of that.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from debian.debian_support import Version

from ktrial.kernels.build.errors import NoSuchSource
from ktrial.kernels.build.source_debian import debian_source, series_of, suites_of, untar
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.disk_space import file_system_errors, require_space
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held
from ktrial.kernels.errors import FetchFailed
from ktrial.kernels.packages.apt import PrivateApt
from ktrial.kernels.packages.apt_lists import Package
from ktrial.kernels.packages.apt_sources import SOURCE
from ktrial.kernels.progress import Progress, silent

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
    wanted: str
    """Of the source that it was asked for: another one where the mirror has lost the package of that."""


def debian_packaging(package: str, progress: Progress = silent) -> Packaging:
    """The packaging of the source package that `package` (`linux-source-6.1`) was built from.

    Raises NoSuchSource, FetchFailed, NoDebianSource, CacheFull, ToolMissing, ToolFailed.
    """
    wanted = debian_source(package, progress).name.rpartition("_")[2]
    sources = cache_directory() / "sources"
    with (
        file_system_errors(sources),
        held(sources / f"{_NAME}.lock", progress, "waiting for another ktrial that fetches it"),
    ):
        kept = _kept(sources, wanted)
        if kept is None:
            cache = Cache()
            with cache.adding(f"debian:{_NAME}", progress), cache.workspace() as workspace:
                kept = _fetched(package, wanted, workspace, sources, progress)
        return Packaging(kept, kept.name.rpartition("_")[2], wanted)


def candidates(packages: tuple[Package, ...], wanted: str) -> list[Package]:
    """Source packages of the same Linux series that are not newer, the newest first."""
    series = series_of(wanted)
    newest = Version(wanted)
    alike = (one for one in packages if series_of(one.version) == series and Version(one.version) <= newest)
    return sorted(alike, key=lambda one: Version(one.version), reverse=True)


def _kept(sources: Path, wanted: str) -> Path | None:
    """Of that version, or what was taken in its place."""
    exact, stand_in = sources / f"{_NAME}_{wanted}", _stand_in(sources, wanted)
    if exact.is_dir():
        return exact
    return sources / stand_in.read_text(encoding="utf-8") if stand_in.exists() else None


def _stand_in(sources: Path, wanted: str) -> Path:
    """The file that names the directory which stands for a version that the mirror has lost."""
    return sources / f"{_NAME}_{wanted}.instead"


def _fetched(package: str, wanted: str, workspace: Path, sources: Path, progress: Progress) -> Path:
    """Mirrors drop the files of source packages that newer ones replace: then an older one has to do."""
    apt = PrivateApt(Cache().root / "providers" / "debian-packaging", "Debian", SOURCE, _NAME)
    known = candidates(apt.packages(suites_of(package, wanted, progress), package, progress), wanted)
    failure: FetchFailed | None = None
    for number, one in enumerate(known):
        into = workspace / str(number)
        into.mkdir()
        require_space(sources, one.size + _UNPACKED_BYTES)
        try:
            (file,) = apt.download([one], into, package, progress)
        except FetchFailed as error:
            if not _NOT_THERE.search(error.message):
                raise
            failure = failure or error
        else:
            return _unpacked(package, file, one, wanted, sources)
    raise failure or NoSuchSource(
        name=_NAME,
        directory="",
        distribution="Debian",
        problem=f"no suite of the configured mirrors holds that of {package} {wanted}",
        available="a directory with a series file will do: --quilt DIR",
    )


def _unpacked(package: str, file: Path, source_package: Package, wanted: str, sources: Path) -> Path:
    untar(package, file, file.parent, _UNPACKED_BYTES)
    file.unlink()
    home = sources / f"{_NAME}_{source_package.version}"
    if not home.exists():
        file.parent.rename(home)
    if source_package.version != wanted:
        write_atomically(_stand_in(sources, wanted), home.name)
    return home
