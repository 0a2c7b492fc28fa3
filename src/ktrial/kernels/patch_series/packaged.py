"""A series that a distribution's source package carries: `debian:linux-source-6.1/patches-rt`."""

import re
from pathlib import Path

from ktrial.kernels.build import debian_packaging
from ktrial.kernels.patch_series.errors import BadQuiltSeries
from ktrial.kernels.patch_series.quilt import series_in_quilt
from ktrial.kernels.progress import Progress, silent
from ktrial.model.kernel import PatchSeries

_PACKAGED = re.compile(r"debian:(?P<package>linux-source-\d+\.\d+)(?:/(?P<name>[\w.-]+))?")
_ADVICE = "write debian:linux-source-6.1/patches-rt: a package, and a directory of its source's debian/"


def is_packaged(path: Path) -> bool:
    """Whether a distribution's package is meant, no directory."""
    return str(path).startswith("debian:") and not path.exists()


def series_in_package(path: Path, base: str, progress: Progress = silent) -> PatchSeries:
    """The series in the source package that a package was built from, fetched if it is not there.

    Raises as `series_in_quilt` and `debian_packaging`.
    """
    asked = str(path)
    match = _PACKAGED.fullmatch(asked)
    if match is None:
        raise BadQuiltSeries(name=asked, path=asked, problem="it names no package's patches", advice=_ADVICE)
    packaging = debian_packaging(match["package"], progress)
    there = sorted(one.parent.name for one in packaging.directory.glob("debian/*/series"))
    if match["name"] not in there:
        problem = f"the source package has no debian/{match['name'] or '…'}/series"
        advice = "there are: " + ", ".join(f"debian:{match['package']}/{one}" for one in there)
        raise BadQuiltSeries(name=asked, path=asked, problem=problem, advice=advice)
    series = series_in_quilt(packaging.directory / "debian" / match["name"], base)
    lost = packaging.version != packaging.wanted
    words = f"they are those of {packaging.version}: the mirror has lost those of {packaging.wanted}"
    return series.model_copy(update={"origin": asked, "notes": (*series.notes, *((words,) if lost else ()))})
