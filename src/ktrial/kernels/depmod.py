"""Put a kernel's modules into the cache, and let depmod (kmod) write down how they depend on each other."""

import os
import shutil
import subprocess
from pathlib import Path

from ktrial.errors import ModulesUnusable, ToolFailed, ToolMissing

SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
GENERATED = frozenset(
    "modules." + name
    for name in (
        "alias", "alias.bin", "builtin.alias.bin", "builtin.bin", "dep", "dep.bin", "devname", "softdep",
        "symbols", "symbols.bin", "weakdep",
    )
)  # fmt: skip
"""What depmod writes."""


def place_modules(name: str, given: Path, release: str, made: Path, workspace: Path) -> None:
    """Move or copy the modules below `given` to `made`/lib/modules/`release`. Raises ModulesUnusable."""
    source = find_modules(name, given, release)
    target = made / "lib" / "modules" / release
    if source.is_relative_to(workspace):
        target.parent.mkdir(parents=True)
        source.rename(target)
    else:
        _copy(source, target)
    for link in ("build", "source"):
        (target / link).unlink(missing_ok=True)


def find_modules(name: str, given: Path, release: str) -> Path:
    """Return `given` itself, or the lib/modules/`release` below it. Raises ModulesUnusable."""

    def unusable(problem: str) -> ModulesUnusable:
        return ModulesUnusable(name=name, directory=given, release=release, problem=problem)

    if not given.is_dir():
        raise unusable("it is not a directory" if given.exists() else "there is no such directory")
    for place in (given, *(given / base / release for base in ("lib/modules", "usr/lib/modules", ""))):
        if place.is_dir() and module_files(place) and place.resolve().name == release:
            return place
    if found := next(iter(module_files(given)), None):
        other = _release_in(given, found)
        raise unusable(f"its modules are of {other}, the image is {release}")
    raise unusable("there is no module (*.ko, *.ko.xz, *.ko.zst, *.ko.gz) in it")


def module_files(directory: Path) -> list[Path]:
    """All module files below `directory`, sorted."""
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(directory)
        for name in names
        if name.endswith(SUFFIXES)
    )


def run_depmod(name: str, base: Path, release: str) -> None:
    """Write modules.dep and its kin below `base`/lib/modules/`release`. Raises ToolMissing, ToolFailed."""
    program = shutil.which("depmod", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if program is None:
        raise ToolMissing(name=name, tool="depmod", purpose="resolve modules' dependencies", package="kmod")
    done = subprocess.run(
        [program, "-b", str(base), release], capture_output=True, text=True, check=False, errors="replace"
    )
    if done.returncode:
        raise ToolFailed(
            name=name,
            tool="depmod",
            status=done.returncode,
            output=done.stderr.strip(),
            advice="its modules may be damaged",
        )


def _copy(source: Path, target: Path) -> None:
    for parent, directories, names in os.walk(source):
        directories[:] = [one for one in directories if not Path(parent, one).is_symlink()]
        into = target / Path(parent).relative_to(source)
        into.mkdir(parents=True)
        for one in names:
            if not Path(parent, one).is_symlink():
                shutil.copyfile(Path(parent, one), into / one)


def _release_in(given: Path, module: Path) -> str:
    """The directory named like a release on the way from `given` to one of its modules."""
    parts = [given.resolve().name, *module.relative_to(given).parts]
    inside = [part for part in parts if part[:1].isdigit()]
    return inside[0] if inside else f"unknown release (directory {given.resolve().name})"
