"""Which two kernels are compared where nobody names them: the oldest and the newest that are here."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from ktrial.errors import KtrialError
from ktrial.kernels import canonical_name, get
from ktrial.kernels.cache.location import stored_names
from ktrial.model.kernel import Kernel, version_order

FETCHED = ("debian:6.1", "debian:6.12")
"""Where fewer than two are in the cache: those of Debian 12 and 13."""
_OF_ONE_S_OWN = ("path:", "build:")


def two_kernels(named: Sequence[str] = ()) -> tuple[str, str]:
    """The baseline, and what is compared with it. `named`: at most two names, as the user gave them.

    One that is named is compared with the newest of the others.
    """
    if len(named) > 1:
        return named[0], named[1]
    here = _by_version(cached_kernels())
    if not named:
        return (here[0].name, here[-1].name) if len(here) > 1 else FETCHED
    given = canonical_name(named[0])
    names = [one.name for one in here] or [canonical_name(name) for name in FETCHED]
    others = [name for name in names if name != given]
    return (others[-1] if others else FETCHED[0]), named[0]


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
    once = {one.digest: one for one in sorted(kernels, key=lambda one: one.name, reverse=True)}
    named = {key: one for key, one in once.items() if not one.name.startswith(_OF_ONE_S_OWN)}
    once = named if len(named) > 1 else once
    flavours: dict[str, list[Kernel]] = {}
    for one in once.values():
        flavours.setdefault(one.flavour, []).append(one)
    most = max(flavours.values(), key=len, default=[])
    alike = most if len(most) > 1 else list(once.values())
    return sorted(alike, key=lambda one: version_order(one.release))
