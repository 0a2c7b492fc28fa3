"""`5.10..7.2`: which kernels a range of versions stands for, of those that are here or can be had."""

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ktrial.analysis.errors import AnalysisError, AnalysisUsageError
from ktrial.errors import KtrialError
from ktrial.kernels import Progress, kernel_registry, stored_names
from ktrial.kernels.build.sources import GIT_PREFIX
from ktrial.kernels.errors import KernelError
from ktrial.kernels.kernel_cache import Cache
from ktrial.kernels.kernel_registry import canonical_name, get
from ktrial.kernels.providers.debian import available
from ktrial.kernels.providers.git import pinned
from ktrial.model.kernel import Kernel, measured_order, series, version_order

_BETWEEN = ".."
_FLAVOURS = {"cloud": "", "generic": ":generic", "rt": ":rt"}
Named = Callable[[str], str]
"""A kernel's name in the way the cache writes it. Raises BadKernelName."""


@dataclass(frozen=True)
class Range:
    """Versions from one series to another, both with all that belongs to them."""

    first: tuple[int, int]
    last: tuple[int, int]

    @classmethod
    def of(cls, text: str) -> "Range":
        """`5.10..7.2`; `..6.1` and `6.1..` are open. Raises AnalysisUsageError."""
        begin, _, end = text.partition(_BETWEEN)
        ends = []
        for part, default in ((begin, (0, 0)), (end, (10**6, 0))):
            part_series = series(part) if part.strip() else default
            if part_series is None:
                raise AnalysisUsageError(
                    f"Kernels {text}: {part.strip()} is not a version.",
                    hint="5.10..7.2, or names with commas between them: debian:6.1,debian:6.12",
                )
            ends.append(part_series)
        if ends[0] > ends[1]:
            raise AnalysisUsageError(
                f"Kernels {text}: it ends before it begins.",
                hint="5.10..7.2, or names with commas between them: debian:6.1,debian:6.12",
            )
        return cls(*ends)

    def holds(self, version: str) -> bool:
        """Whether a release, or a kernel's name, lies in it."""
        version_series = series(version)
        return version_series is not None and self.first <= version_series <= self.last


def is_range(text: str) -> bool:
    """Whether this is a range, and no name."""
    return _BETWEEN in text and "/" not in text


def chosen(texts: Iterable[str], versions: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Of kernels (name, release) all that are named, measured or not, and those that ranges choose.

    Names stay where they are given, a range's kernels are in the order of their versions. Raises
    BadKernelRange.
    """
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    releases = dict(versions)
    names: dict[str, None] = {}
    for part in parts:
        if is_range(part):
            limits = Range.of(part)
            held = [(name, release) for name, release in releases.items() if limits.holds(release or name)]
            names |= dict.fromkeys(name for name, _ in sorted(held, key=lambda named: measured_order(*named)))
        else:
            names[part if part in releases else _stored_name(canonical_name(part), releases)] = None
    return tuple(names)


def _stored_name(name: str, stored: Container[str]) -> str:
    """A commit's kernel is stored under what its branch or tag was called then, as git describes it."""
    if name not in stored and name.startswith(GIT_PREFIX):
        with suppress(KernelError):
            current = pinned(name)
            return current if current in stored else name
    return name


def expanded(
    texts: Iterable[str], named: Named, progress: Progress, *, fetch: bool = False, flavour: str = "cloud"
) -> tuple[str, ...]:
    """The kernels that ranges and names stand for, in the order of their versions; names stay where they are
    given. With `fetch` one of each series that Debian has is taken too, else those in the cache.

    Raises AnalysisUsageError, AnalysisError where no kernel lies in a range, KernelError.
    """
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    names: dict[str, None] = {}
    for part in parts:
        if is_range(part):
            names |= dict.fromkeys(_in_range(part, progress, fetch=fetch, flavour=flavour))
        else:
            names[named(part)] = None
    return tuple(names)


def _in_range(text: str, progress: Progress, *, fetch: bool, flavour: str) -> Sequence[str]:
    limits, ending = Range.of(text), _FLAVOURS[flavour]
    names = {kernel.name for kernel in kernel_registry.all_kernels() if _is_series(kernel.name, ending)}
    if fetch:
        lists = Cache().root / "providers" / "debian"
        available_kernels = available(f"debian:{text}", lists, flavour, progress)
        numbers = [series(kernel.release) for kernel in available_kernels]
        names |= {f"debian:{number[0]}.{number[1]}{ending}" for number in numbers if number}
    fitting = sorted((name for name in names if limits.holds(name)), key=version_order)
    if not fitting:
        raise AnalysisError(
            f"Kernels {text}: {('Debian' if fetch else 'the cache')} holds no kernel in this range.",
            hint=(
                "with --fetch, Debian's kernels are taken too; or fetch one: ktrial kernel add debian:6.12"
            ),
        )
    return fitting


def _is_series(name: str, ending: str) -> bool:
    """Whether it is a name like `debian:6.12`, which stands for a series, in this flavour."""
    version = name.removeprefix("debian:").removesuffix(ending)
    return name == f"debian:{version}{ending}" and version.replace(".", "", 1).isdigit()


# Which two kernels are compared where nobody names them: the oldest and the newest that are here.

FETCHED = ("debian:6.1", "debian:6.12")
"""Where fewer than two are in the cache: those of Debian 12 and 13."""
_OF_ONE_S_OWN = ("path:", "build:")


def two_kernels(named: Sequence[str] = ()) -> tuple[str, str]:
    """The baseline, and what is compared with it. `named`: at most two names, as the user gave them.

    One that is named is compared with the newest of the others.
    """
    if len(named) > 1:
        return named[0], named[1]
    cached = _by_version(cached_kernels())
    if not named:
        return (cached[0].name, cached[-1].name) if len(cached) > 1 else FETCHED
    first = canonical_name(named[0])
    names = [kernel.name for kernel in cached] or [canonical_name(name) for name in FETCHED]
    remaining = [name for name in names if name != first]
    return (remaining[-1] if remaining else FETCHED[0]), named[0]


def cached_kernels() -> list[Kernel]:
    """The kernels in the cache that can be read; `ktrial kernel list` tells of the others."""
    kernels = []
    for name in stored_names():
        with suppress(KtrialError):
            kernels.append(get(name))
    return kernels


def _by_version(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The oldest first, each content once, and of one flavour where two kernels of one are there.

    A kernel for clouds and one for all machines differ in thousands of options. Files and builds
    are left out where two others are there: they may be what a bisection or a series has made.
    """
    once = {kernel.digest: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.name, reverse=True)}
    named = {key: kernel for key, kernel in once.items() if not kernel.name.startswith(_OF_ONE_S_OWN)}
    once = named if len(named) > 1 else once
    flavours: dict[str, list[Kernel]] = {}
    for one in once.values():
        flavours.setdefault(one.flavour, []).append(one)
    most = max(flavours.values(), key=len, default=[])
    alike = most if len(most) > 1 else list(once.values())
    return sorted(alike, key=lambda kernel: version_order(kernel.release))
