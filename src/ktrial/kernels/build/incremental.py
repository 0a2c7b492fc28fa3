"""How many files a build tree compiles again, by the dependencies that kbuild wrote beside each object.

`.fork.o.cmd` names every file that the object was made from (`../include/linux/slab.h`), and every option
that one of them asks for (`include/config/SLAB`, before 5.16 `.../slab.h`): scripts/basic/fixdep.c.
"""

from collections.abc import Collection
from pathlib import Path

from ktrial.kernels.kconfig.config import parse_config

_OBJECTS = ".*.o.cmd"


def files_compiled(build: Path) -> int:
    """How many objects the build directory holds."""
    return sum(1 for _ in build.rglob(_OBJECTS))


def files_touched(build: Path, before: str, after: str, paths: Collection[str] = ()) -> int:
    """How many lines make prints after a change, about: objects, and the archives that hold them.

    `before`, `after`: the texts of the two configurations; `paths`: files of the source that changed. What
    an option adds that was never compiled here is not known before make has looked.
    """
    wanted = _marks(before, after, paths)
    if not wanted:
        return 0
    found = [path for path in build.rglob(_OBJECTS) if not wanted.isdisjoint(path.read_bytes().split())]
    archives = {above for path in found for above in path.relative_to(build).parents}
    return len(found) + len(archives)


def _marks(before: str, after: str, paths: Collection[str]) -> set[bytes]:
    changed = {name for name, _ in set(parse_config(before).items()) ^ set(parse_config(after).items())}
    names = [name.removeprefix("CONFIG_") for name in changed]
    marks = {f"include/config/{name})" for name in names}
    marks |= {f"include/config/{name.lower().replace('_', '/')}.h)" for name in names}
    return {mark.encode() for mark in marks | {f"../{path}" for path in paths}}
