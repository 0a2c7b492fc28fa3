"""The final configuration of a build, by the kernel's own kconfig, without a compilation.

<cache>/configs/<key>.config                what was resolved before
<cache>/configs/sources/<digest>/source/    the files that Kconfig reads, and what make needs to run it
                                 menus.json what kconfiglib said of them
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ktrial.kernels.build.compiler import Compiler, check_compiler
from ktrial.kernels.build.configuration import configure, given_text, shipped_text
from ktrial.kernels.build.make import Make
from ktrial.kernels.build.manifest import Manifest
from ktrial.kernels.build.patched_source import Source
from ktrial.kernels.build.recipes import content_kept
from ktrial.kernels.build.source_debian import debian_config, series_of
from ktrial.kernels.build.source_tree import tree_in
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.cache import cache_directory
from ktrial.kernels.cache.locks import held, held_if_free
from ktrial.kernels.kconfig.menus import menus_in
from ktrial.kernels.progress import Progress, silent
from ktrial.model.base import digest
from ktrial.model.kconfig import Menus
from ktrial.model.kernel_build import DEBIAN, DEFCONFIG, GUEST, Build

FORMAT = 1
"""Part of every key: raised when what is resolved changes in another way than by its inputs."""
_READ = re.compile(
    r"(?:.*/)?(?:Kconfig|Makefile|Kbuild)[^/]*|scripts/.*|(?:arch/x86|kernel)/configs/.*|tools/(?:build|scripts)/.*"
    r"|.*\.sh|arch/x86/[^/]*"
)
"""Of some 80000 files, those that configuring reads."""
_KEPT_SOURCES = 12


def resolved(source: Source, wanted: Build, compiler: Compiler, progress: Progress) -> str:
    """The text of the final .config.

    Raises NotASource, BadConfigFile, OptionNotTaken, CompilerUnsuitable, BuildToolsMissing, BuildFailed.
    """
    subset = _subset(source)
    given = _given(source, wanted, progress)
    asked = [FORMAT, subset.digest, given or wanted.config, shipped_text(wanted.config)]
    key = digest([*asked, wanted.options, wanted.make, compiler.shown])
    kept = cache_directory() / "configs" / f"{key}.config"
    if not kept.exists():
        with _directory(source, subset, progress) as home:
            make = _make(home, wanted, progress)
            make.beside(make.log.name, "")
            check_compiler(make.tree, wanted.source, compiler)
            shutil.rmtree(make.build, ignore_errors=True)
            make.build.mkdir()
            configure(make, wanted.config, wanted.options, given)
            write_atomically(kept, (make.build / ".config").read_bytes())
    return kept.read_text(encoding="utf-8")


def menus(source: Source, wanted: Build, progress: Progress = silent) -> Menus:
    """What the source says about its options. Raises NotASource."""
    with _directory(source, _subset(source), progress) as home:
        make = _make(home, wanted, progress)
        said = digest([FORMAT, compiler_words(wanted.make)])[:12]
        return menus_in(make.tree, wanted.make, home / f"menus-{said}.json")


def compiler_words(make: Mapping[str, str]) -> list[str]:
    """The variables that Kconfig's answers can depend on."""
    return [f"{name}={make[name]}" for name in ("CC", "LD", "LLVM") if name in make]


def _given(source: Source, wanted: Build, progress: Progress) -> str:
    if wanted.config in {GUEST, DEFCONFIG}:
        return ""
    if wanted.config == DEBIAN:
        return debian_config(series_of(source.version()), progress)
    kept = content_kept(wanted.config_digest)
    return given_text(kept or Path(wanted.config))


def _subset(source: Source) -> Manifest:
    return Manifest({path: one for path, one in source.manifest.files.items() if _READ.fullmatch(path)})


def _make(home: Path, wanted: Build, progress: Progress) -> Make:
    tree = tree_in(home / "source")
    return Make(tree, home, progress, variables=wanted.make, called=wanted.source)


@contextmanager
def _directory(source: Source, subset: Manifest, progress: Progress) -> Iterator[Path]:
    """A directory with the files that configuring reads, held."""
    sources = cache_directory() / "configs" / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    home = sources / subset.digest[:24]
    with held(sources / f"{home.name}.lock", progress, "waiting for another ktrial that configures"):
        if not (home / "complete").exists():
            _sweep(sources)
            shutil.rmtree(home, ignore_errors=True)
            (home / "source").mkdir(parents=True)
            source.write(home / "source", subset.files, anew=False)
            (home / "complete").touch()
        (home / "complete").touch()
        yield home


def _sweep(sources: Path) -> None:
    """Keep the ones that were used last."""
    marks = sorted(sources.glob("*/complete"), key=lambda path: path.stat().st_mtime)
    for mark in marks[: max(0, len(marks) + 1 - _KEPT_SOURCES)]:
        with held_if_free(sources / f"{mark.parent.name}.lock") as free:
            if free:
                shutil.rmtree(mark.parent, ignore_errors=True)
