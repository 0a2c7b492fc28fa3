"""Build kernels by content: the same source, patches, configuration, flags and compiler are built once."""

import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.kernels.build import configuration as resolving
from ktrial.kernels.build.build_tools import check_tools, check_tools_of
from ktrial.kernels.build.build_trees import (
    BuildTree,
    Need,
    builds_of,
    files_compiled,
    files_touched,
    held_tree_of,
    taken,
)
from ktrial.kernels.build.compiled_paths import are_compiled
from ktrial.kernels.build.compiler import Compiler, compiler_of
from ktrial.kernels.build.configuration import shipped_text
from ktrial.kernels.build.errors import BuildError, BuildFailed, NoRecipe
from ktrial.kernels.build.interrupted_build import mend
from ktrial.kernels.build.make import Make, check_products, jobs, slot
from ktrial.kernels.build.new_options import became, brought_by_patches
from ktrial.kernels.build.own_objects import FEW_FILES, OwnObjects
from ktrial.kernels.build.patched_source import BuildSource, source_of
from ktrial.kernels.build.recipes import PREFIX, Recipe, keep, kept_manifest, recipe_of, recipes
from ktrial.kernels.build.source_tree import tree_in
from ktrial.kernels.build.sources import Snapshot, snapshot_of
from ktrial.kernels.build.time_estimate import expected_files, remember_build, remember_files
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.disk_space import file_system_errors
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held
from ktrial.kernels.cache.manifest import SYSTEM_MAP, is_whole
from ktrial.kernels.errors import CacheDamaged, KernelNotFound
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.providers.protocol import Parts
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Menus, Origin

_FORMAT = 1
"""Part of every key: raised when ktrial builds in another way, so that another kernel comes out."""
ROOM_WITHOUT_MODULES = 500 << 20
_BYTES_AN_OPTION = 3 << 20
"""About what an option takes that is set, in a distribution's configuration without debugging information."""
_FEW_OPTIONS = 1800


@dataclass(frozen=True)
class BuildJob:
    """One build, with all that decides what comes out."""

    wanted: Build
    source: BuildSource
    compiler: Compiler
    config: str
    fingerprint: str

    @property
    def content(self) -> str:
        """Key of what is compiled."""
        asked = [_FORMAT, self.source.manifest.digest, self.config, self.wanted.make, self.compiler.shown]
        return digest(asked)

    @property
    def options(self) -> dict[str, str]:
        """The final configuration."""
        return parse_config(self.config)


def build(wanted: Build, progress: Progress = silent) -> Kernel:
    """The kernel that is wanted, under its name in the cache; compiled where it is not there.

    Raises BuildError and other KernelErrors: NotASource, SourceUnusable, BadPatch, PatchNotApplied,
    OptionNotTaken, BuildToolsMissing, CompilerUnsuitable, BuildFailed, CacheFull.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        if kernel := cached(wanted):
            return kernel
        with cache.adding(wanted.name, progress), cache.workspace() as workspace:
            # Another process may have built it while this one waited.
            if kernel := cached(wanted):
                return kernel
            parts = made(wanted, workspace, progress)
            return as_asked(cache.store(wanted.name, parts, workspace, progress), wanted)


def cached(wanted: Build) -> Kernel | None:
    """The kernel, where it was built from just this source with this compiler; else None.

    Raises what looking at the source raises.
    """
    recipe = recipe_of(wanted.name)
    if recipe is None:
        return None
    with suppress(KernelNotFound, CacheDamaged):
        kernel = Cache().kernel(wanted.name)
        if _fingerprint(wanted, snapshot_of(wanted.source), compiler_of(wanted.make)) == recipe.fingerprint:
            return as_asked(kernel, wanted)
    return None


def configured(wanted: Build, progress: Progress = silent) -> Mapping[str, str]:
    """The final configuration, option → value; nothing is compiled. Raises as `build` does until then."""
    with job_of(wanted, progress) as job:
        return job.options


def menu_of(wanted: Build, progress: Progress = silent) -> Menus:
    """What the source says about its options. Raises what looking at the source and its patches raises."""
    with scratch_directory() as scratch:
        return resolving.menus(source_of(wanted, scratch, progress), wanted, progress)


def check_applies(wanted: Build, progress: Progress = silent) -> None:
    """Raise PatchNotApplied and BadPatch where the patches do not fit; nothing is configured or compiled."""
    with scratch_directory() as scratch:
        source_of(wanted, scratch, progress)


def compiles_the_same(before: Build, wanted: Build, progress: Progress = silent) -> bool:
    """Whether `wanted` differs from `before` only in files that nothing of that build has read.

    False where nobody can say: its build tree is gone, or in use. Raises as `check_applies`.
    """
    recipe = recipe_of(before.name)
    with scratch_directory() as scratch:
        after = source_of(wanted, scratch, progress).manifest
    if recipe is None or (before.config, before.options, before.make) != (
        wanted.config,
        wanted.options,
        wanted.make,
    ):
        return False
    known = cache_directory() / "series" / "same" / digest([recipe.content, after.digest])
    if known.exists():  # the tree goes on to other kernels, and could not tell it again
        return True
    with held_tree_of(recipe.content) as tree:
        there = kept_manifest(tree.home / "manifest.json") if tree else None
        if tree is None or there is None:
            return False
        changed = {path: path in there.files and path in after.files for path in after.differing(there)}
        if same := not are_compiled(tree, changed):
            known.parent.mkdir(parents=True, exist_ok=True)
            known.touch()
        return same


def built_again(name: str, workspace: Path, progress: Progress) -> Parts:
    """Build a kernel by the recipe that was kept of it. Raises NoRecipe, and as `build`."""
    recipe = recipe_of(name)
    if recipe is None:
        raise NoRecipe(name=name, directory=name)
    return made(recipe.build, workspace, progress)


def made(wanted: Build, workspace: Path, progress: Progress) -> Parts:
    """Build the kernel that is wanted; its parts are copied into `workspace`. Raises as `build`."""
    with job_of(wanted, progress) as job:
        return made_of(job, workspace, progress)


def made_of(job: BuildJob, workspace: Path, progress: Progress) -> Parts:
    """The same of what was worked out already; its recipe is kept. Raises BuildError."""
    keys = cache_directory() / "trees" / "keys"
    keys.mkdir(parents=True, exist_ok=True)
    with held(keys / f"{job.content[:32]}.lock", progress, "waiting for another ktrial that builds the same"):
        parts = same_kernel(job) or _compiled(job, workspace, progress)
        keep(Recipe(build=job.wanted, fingerprint=job.fingerprint, content=job.content))
    return parts


@contextmanager
def job_of(wanted: Build, progress: Progress) -> Iterator[BuildJob]:
    """Look at the source and resolve the configuration. Raises as `build` does before it compiles."""
    check_tools_of(wanted)
    with scratch_directory() as scratch:
        source = source_of(wanted, scratch, progress)
        compiler = compiler_of(wanted.make)
        config = resolving.resolved(source, wanted, compiler, progress)
        check_tools(wanted.source, parse_config(config), wanted.make)
        yield BuildJob(wanted, source, compiler, config, _fingerprint(wanted, source.snapshot, compiler))


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory below the cache, for as long as the block. Raises CacheFull."""
    cache = Cache()
    with file_system_errors(cache.root):
        (cache.root / "work").mkdir(parents=True, exist_ok=True)
        with cache.workspace() as scratch:
            yield scratch


def _fingerprint(wanted: Build, snapshot: Snapshot, compiler: Compiler) -> str:
    """Of everything that decides what comes out, as far as it is known without work."""
    said = [_FORMAT, resolving.FORMAT, shipped_text(wanted.config), compiler.shown, snapshot.manifest.digest]
    return digest([*said, wanted.key])


def as_asked(kernel: Kernel, wanted: Build) -> Kernel:
    """The kernel with the paths of this request: those of the first may be gone."""
    return kernel.model_copy(update={"origin": kernel.origin.model_copy(update={"build": wanted})})


def same_kernel(job: BuildJob) -> Parts | None:
    """The parts of a kernel that was asked for in other words, and is the same."""
    for recipe in recipes():
        if recipe.content == job.content:
            with suppress(KernelNotFound, CacheDamaged):
                kernel = Cache().kernel(recipe.build.name)
                if not is_whole(kernel.image.parent):
                    continue
                system_map = kernel.image.with_name(SYSTEM_MAP)
                return Parts(
                    image=kernel.image,
                    config=kernel.config,
                    modules=kernel.modules,
                    system_map=system_map if system_map.exists() else None,
                    origin=origin_of(job),
                )
    return None


def _compiled(job: BuildJob, workspace: Path, progress: Progress) -> Parts:
    need = Need(
        source=job.source,
        config=job.config,
        compiler=job.compiler.shown,
        make=dict(job.wanted.make),
        content=job.content,
        kernel=job.wanted.name,
    )
    # The slot first: who waits for it keeps no tree from others.
    with slot(progress) as most, taken(need, _room(job), progress) as (tree, near):
        progress("changing the build tree's source" if near else "making a build tree")
        record, before = tree.record(), tree.config()
        changed = tree.fill(job.source)
        expected = files_touched(tree.build, before, job.config, changed) if near else 0
        patched: Collection[str] = ()
        if not (record and record.finished):
            # Nothing, or what a build has left that was interrupted, or failed in one of its own files.
            patched = job.source.overlay.files
            mend(tree.build)
            expected = max(expected, expected_files(job.config) - files_compiled(tree.build))
        tree.write_record(need, finished=False)
        own = OwnObjects.of(tree.build, changed if near else (), patched, builds_of(need))
        # What configuring reads is as it was, and so is what came out of it.
        settled = bool(record and record.finished) and before == job.config and not resolving.read_of(changed)
        make = _make(job, tree, min(most, jobs()), progress)
        make.write_file(make.log.name, "")
        try:
            begin = time.monotonic()
            if not settled:
                _configure(job, tree, make)
            files = _compile(job, make, own, expected)
            _check_same(job, parse_config(tree.config()), make)
            seconds = time.monotonic() - begin
            remember_build(seconds, anew=not near)
            if not near:
                remember_files(job.config, files, seconds * make.most_jobs)
            parts = _parts(job, tree, workspace, progress)
        except BuildFailed as error:
            tree.write_record(need, finished=False, failed=not error.facts.get("killed"))
            raise own.explained(error) from error
        except BuildError as error:
            tree.write_record(need, finished=False, failed=not error.facts.get("killed"))
            raise
        tree.write_record(need, finished=True)
        return parts


def _configure(job: BuildJob, tree: BuildTree, make: Make) -> None:
    """Give the tree its configuration. Raises BuildFailed where the whole source makes another one of it."""
    if tree.config() != job.config:
        # By a rename: what a build left there may be a link to somewhere else.
        write_atomically(tree.build / ".config", job.config)
    make.run("configuring", "olddefconfig")
    _check_same(job, parse_config(tree.config()), make)


def _compile(job: BuildJob, make: Make, own: OwnObjects, expected: int) -> int:
    """Compile; return how many files that were. `expected`: how many that may be. Raises BuildFailed."""
    targets = ["vmlinux", "modules"] if _has_modules(job) else ["vmlinux"]
    first = own.compile_first(make) if expected > FEW_FILES else 0
    return first + make.run("building", *targets, expected=expected - first)


def _check_same(job: BuildJob, options: Mapping[str, str], make: Make) -> None:
    """Raise BuildFailed where the whole source makes another configuration than its Kconfig files made."""
    if different := sorted(dict(job.options.items() ^ options.items())):
        problem = f"its configuration came out otherwise than resolved: {', '.join(different[:6])}"
        source = job.wanted.source
        raise BuildFailed(name=source, directory=source, problem=problem, log=make.log)


def _make(job: BuildJob, tree: BuildTree, most: int, progress: Progress) -> Make:
    variables = dict(job.wanted.make)
    if job.options.get("CONFIG_DEBUG_INFO") == "y":
        # Debugging information holds the directories' names.
        mapped = f"-fdebug-prefix-map={tree.build}=/build -fdebug-prefix-map={tree.source}=/source"
        for name in ("KCFLAGS", "KAFLAGS"):
            variables[name] = f"{variables.get(name, '')} {mapped}".strip()
    return Make(
        tree_in(tree.source),
        tree.home,
        progress,
        products=tree.build,
        variables=variables,
        called=job.wanted.source,
        jobs=most,
    )


def _parts(job: BuildJob, tree: BuildTree, workspace: Path, progress: Progress) -> Parts:
    names = ("vmlinux", ".config", "System.map")
    check_products(_make(job, tree, 1, progress), names)
    image, config, system_map = (Path(shutil.copy(tree.build / name, workspace / name)) for name in names)
    modules = None
    if _has_modules(job):
        modules = workspace / "modules"
        modules.mkdir()
        make = replace(_make(job, tree, 1, progress), also_writable=(modules,))
        # ktrial runs depmod itself, when it puts them into the cache.
        install = [f"INSTALL_MOD_PATH={modules}", "INSTALL_MOD_STRIP=1", "DEPMOD=true"]
        make.run("collecting the modules", *install, "modules_install")
    return Parts(image=image, config=config, system_map=system_map, modules=modules, origin=origin_of(job))


def origin_of(job: BuildJob) -> Origin:
    """Where the kernel comes from."""
    return Origin(
        provider=PREFIX.removesuffix(":"),
        source=job.wanted.source,
        version=job.source.snapshot.described(),
        build=job.wanted,
        compiler=job.compiler.shown,
        inexact_patches=tuple(job.source.overlay.inexact),
        new_options=became(brought_by_patches(job.source), job.config),
    )


def _has_modules(job: BuildJob) -> bool:
    return re.search(r"^CONFIG_\w+=m$", job.config, re.MULTILINE) is not None


def _room(job: BuildJob) -> int:
    return ROOM_WITHOUT_MODULES + _BYTES_AN_OPTION * max(0, len(job.options) - _FEW_OPTIONS)
