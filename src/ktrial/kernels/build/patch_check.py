"""Whether the patches of a series apply, one after the other; nothing is configured or compiled."""

from collections.abc import Iterable

from ktrial.kernels.build.errors import BadPatch, PatchNotApplied
from ktrial.kernels.build.patched_source import source_of
from ktrial.kernels.build.patches import patched
from ktrial.kernels.build.sources import DEBIAN_PREFIX
from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.disk_space import file_system_errors
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.progress import Progress, silent
from ktrial.model.kernel import Build, Patch

Refused = dict[int, PatchNotApplied | BadPatch]
"""A patch's number → why it does not apply."""


def not_applying(
    plain: Build, patches: Iterable[tuple[int, tuple[Patch, ...]]], progress: Progress = silent
) -> Refused:
    """The patches that do not apply on top of those before them; each is left out of those that follow.

    `plain`: of the base; `patches`: a number and its files. Where the base would have to be fetched first,
    that is told, and none is named. Raises what looking at the base raises.
    """
    if plain.source.startswith(DEBIAN_PREFIX):
        package = plain.source.removeprefix(DEBIAN_PREFIX)
        if not any((cache_directory() / "sources").glob(f"{package}_*/Makefile")):
            progress(f"{plain.source} is not fetched yet: whether the patches apply is not known")
            return {}
    cache, refused = Cache(), Refused()
    with file_system_errors(cache.root):
        (cache.root / "work").mkdir(parents=True, exist_ok=True)
        with cache.workspace() as scratch:
            (scratch / "base").mkdir()
            source = source_of(plain, scratch / "base", progress)
            overlay = source.overlay
            for number, files in patches:
                place = scratch / str(number)
                place.mkdir()
                try:
                    overlay = patched(source.snapshot, files, place, plain.fuzz, overlay)
                except (PatchNotApplied, BadPatch) as error:
                    refused[number] = error
    return refused
