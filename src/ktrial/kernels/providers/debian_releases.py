"""Which releases of a distribution's kernel can be had, between two of them."""

from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.errors import BadRange
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.providers.debian import Available, available

_PREFIX = "debian:"
_FLAVOURS = ("cloud", "generic", "rt")


def releases(flavour: str = "cloud", progress: Progress = silent) -> tuple[Available, ...]:
    """Debian's kernels of one flavour that the configured mirrors hold, oldest first.

    Raises NoDebianSource, FetchFailed, ToolMissing.
    """
    cache = Cache()
    with cache.adding("debian:releases", progress):
        return available("debian:releases", cache.root / "providers" / "debian", flavour, progress)


def releases_between(text: str, progress: Progress = silent) -> tuple[Available, ...]:
    """The releases from A to B in `debian:6.1..6.12` or `6.1..6.12:generic`: the newest that each names.

    Raises BadRange, and as `releases`.
    """
    first, dots, last = text.removeprefix(_PREFIX).partition("..")
    last, _, flavour = last.removeprefix(_PREFIX).partition(":")
    first, _, other_flavour = first.partition(":")
    flavour = flavour or other_flavour or "cloud"
    if not (dots and first and last):
        raise BadRange(text=text, problem="write A..B", advice="such as debian:5.10..6.1")
    if flavour not in _FLAVOURS or other_flavour not in ("", flavour):
        problem = "both ends have to be of one flavour"
        raise BadRange(text=text, problem=problem, advice=f"one of {', '.join(_FLAVOURS)}")
    known = releases(flavour, progress)
    ends = [_newest(text, version, known) for version in (first, last)]
    if ends[0] >= ends[1]:
        problem = f"{known[ends[1]].release} is no newer than {known[ends[0]].release}"
        raise BadRange(text=text, problem=problem, advice="write the older one first")
    return known[ends[0] : ends[1] + 1]


def _newest(text: str, version: str, known: tuple[Available, ...]) -> int:
    """The place of the newest release that a version means."""
    fitting = [at for at, one in enumerate(known) if _is_meant(version, one)]
    if not fitting:
        there = ", ".join(dict.fromkeys(".".join(one.version.split(".")[:2]) for one in known))
        problem = f"no suite of the configured mirrors holds {version}"
        raise BadRange(text=text, problem=problem, advice=f"there are {there}")
    return fitting[-1]


def _is_meant(version: str, one: Available) -> bool:
    longer = one.version.startswith((f"{version}.", f"{version}-", f"{version}~"))
    return longer or one.version == version or one.release == version or one.release.startswith(f"{version}-")
