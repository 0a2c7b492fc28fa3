"""Build kernels by content: the same source, patches, configuration, flags and compiler are built once."""

import hashlib
import io
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build import configuration as resolving
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.build_trees import (
    BuildTree,
    Need,
    are_compiled,
    builds_of,
    files_compiled,
    files_touched,
    has_kept_trees,
    has_start,
    held_tree_of,
    mend,
    sift,
    taken,
)
from ktrial.kernels.build.configuration import became, configure, new_options, new_options_in, shipped_text
from ktrial.kernels.build.control_group import Spent
from ktrial.kernels.build.debian_sources import UNPACKED_BYTES, package_tools
from ktrial.kernels.build.make import (
    Compiler,
    Make,
    compiler_of,
    expected_files,
    jobs,
    products,
    remember_build,
    remember_files,
    slot,
)
from ktrial.kernels.build.patches import BuildSource, source_of
from ktrial.kernels.build.recipes import PREFIX, Recipe, keep, kept_manifest, recipe_of, recipes
from ktrial.kernels.build.requests import BuildRequest, asked_options, check_tools, check_tools_of
from ktrial.kernels.build.shared_trees import bring, share, shared_place
from ktrial.kernels.build.sources import (
    DEBIAN_PREFIX,
    GIT_PREFIX,
    Snapshot,
    check_clean,
    snapshot_of,
    tree_in,
)
from ktrial.kernels.config import parse_config
from ktrial.kernels.errors import (
    BuildCutShort,
    BuildError,
    BuildFailed,
    CacheDamaged,
    KernelNotFound,
    OptionNotTaken,
)
from ktrial.kernels.files import file_system_errors, require_space, write_atomically
from ktrial.kernels.kernel_cache import Cache, disk_usage, held, held_if_free, is_usable, is_whole, parts_of
from ktrial.kernels.providers import Parts
from ktrial.model.base import digest
from ktrial.model.kernel import OWN, Build, Kernel, Menus, Origin

_FORMAT = 1
"""Part of every key: raised when ktrial builds in another way, so that another kernel comes out."""
ROOM_WITHOUT_MODULES = 500 << 20
_BYTES_AN_OPTION = 3 << 20
"""About what an option takes that is set, in a distribution's configuration without debugging information."""
_FEW_OPTIONS = 1800


@dataclass(frozen=True)
class BuildJob:
    """One build, with all that decides what comes out."""

    spec: Build
    source: BuildSource
    compiler: Compiler
    config: str
    fingerprint: str
    not_held: tuple[str, ...] = ()
    """As in `Origin`."""
    from_nothing: bool = False
    """Whether nothing that was compiled before may be used."""

    @property
    def is_apart(self) -> bool:
        """Whether it has no part in what builds of the user's own sources share."""
        return self.from_nothing or self.spec.domain != OWN

    @property
    def content(self) -> str:
        """Key of what is compiled."""
        parts = [_FORMAT, self.source.manifest.digest, self.config, self.spec.make, self.compiler.shown]
        # What strangers' code has built is no answer for anybody else, also where the sources are the same.
        return digest(parts if self.spec.domain == OWN else [*parts, self.spec.domain])

    @property
    def options(self) -> dict[str, str]:
        """The final configuration."""
        return parse_config(self.config)


def build(spec: Build, progress: Progress = silent) -> Kernel:
    """The kernel that is wanted, under its name in the cache; compiled where it is not there.

    Raises BuildError and other KernelErrors: NotASource, SourceUnusable, BadPatch, PatchNotApplied,
    OptionNotTaken, BuildToolsMissing, CompilerUnsuitable, BuildFailed, CacheFull.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        if kernel := cached(spec):
            return kernel
        with cache.adding(spec.name, progress), cache.workspace() as workspace:
            # Another process may have built it while this one waited.
            if kernel := cached(spec):
                return kernel
            parts = parts_of_build(spec, workspace, progress)
            return as_asked(cache.store(spec.name, parts, workspace, progress), spec)


def cached(spec: Build) -> Kernel | None:
    """The kernel, where it was built from just this source with this compiler; else None.

    None where its image or configuration is not what it was, too: it is built again then. Raises what
    looking at the source raises.
    """
    recipe = recipe_of(spec.name)
    if recipe is None:
        return None
    with suppress(KernelNotFound, CacheDamaged):
        kernel = Cache().kernel(spec.name)
        if not is_usable(kernel.image.parent):
            return None
        if _fingerprint(spec, snapshot_of(spec.source), compiler_of(spec.make)) == recipe.fingerprint:
            return as_asked(kernel, spec)
    return None


def configured(spec: Build, progress: Progress = silent) -> Mapping[str, str]:
    """The final configuration, option → value; nothing is compiled. Raises as `build` does until then."""
    return job_of(spec, progress).options


def menu_of(spec: Build, progress: Progress = silent) -> Menus:
    """What the source says about its options. Raises what looking at the source and its patches raises."""
    with scratch_directory() as scratch:
        return resolving.menus(source_of(spec, scratch, progress), spec, progress)


def check_applies(spec: Build, progress: Progress = silent) -> None:
    """Raise PatchNotApplied and BadPatch where the patches do not fit; nothing is configured or compiled."""
    with scratch_directory() as scratch:
        source_of(spec, scratch, progress)


def compiles_the_same(before: Build, spec: Build, progress: Progress = silent) -> bool:
    """Whether `spec` differs from `before` only in files that nothing of that build has read.

    False where nobody can say: its build tree is gone, or in use. Raises as `check_applies`.
    """
    recipe = recipe_of(before.name)
    with scratch_directory() as scratch:
        after = source_of(spec, scratch, progress).manifest
    if recipe is None or (before.config, before.options, before.make) != (
        spec.config,
        spec.options,
        spec.make,
    ):
        return False
    marker = cache_directory() / "series" / "same" / digest([recipe.content, after.digest])
    if marker.exists():  # the tree goes on to other kernels, and could not tell it again
        return True
    with held_tree_of(recipe.content) as tree:
        manifest = kept_manifest(tree.home / "manifest.json") if tree else None
        if tree is None or manifest is None:
            return False
        changed = {path: path in manifest.files and path in after.files for path in after.differing(manifest)}
        if same := not are_compiled(tree, changed):
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        return same


def built_again(name: str, workspace: Path, progress: Progress) -> Parts:
    """Build a kernel by the recipe that was kept of it. Raises KernelError, and as `build`."""
    recipe = recipe_of(name)
    if recipe is None:
        raise BuildError(
            f"Nothing is known of {name}: it was never built here.",
            hint="build it: ktrial kernel build SOURCE; ktrial kernel list shows what is there",
        )
    return parts_of_build(recipe.build, workspace, progress)


def parts_of_build(spec: Build, workspace: Path, progress: Progress) -> Parts:
    """Build the kernel that is wanted; its parts are copied into `workspace`. Raises as `build`."""
    return parts_of_job(job_of(spec, progress), workspace, progress)


def parts_of_job(job: BuildJob, workspace: Path, progress: Progress) -> Parts:
    """The same of what was worked out already; its recipe is kept. Raises BuildError."""
    keys = cache_directory() / "trees" / "keys"
    keys.mkdir(parents=True, exist_ok=True)
    with held(keys / f"{job.content[:32]}.lock", progress, "waiting for another ktrial that builds the same"):
        parts, spent = same_kernel(job), Spent()
        if parts is None:
            with scratch_directory() as unpatched:
                _compile_unpatched(job, unpatched, progress)
            parts = _compiled(job, workspace, progress, spent)
        seconds = spent.seconds or spent_on(job.content)
        keep(Recipe(build=job.spec, fingerprint=job.fingerprint, content=job.content, cpu_seconds=seconds))
    return parts


def job_of(spec: Build, progress: Progress) -> BuildJob:
    """Look at the source and resolve the configuration. Raises as `build` does before it compiles."""
    check_tools_of(spec)
    with scratch_directory() as scratch:
        source = source_of(spec, scratch, progress)
    compiler = compiler_of(spec.make)
    config = resolving.resolved(source, spec, compiler, progress)
    check_tools(spec.source, parse_config(config.text), spec.make)
    fingerprint = _fingerprint(spec, source.snapshot, compiler)
    return BuildJob(spec, source, compiler, config.text, fingerprint, config.not_held)


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """An empty directory below the cache, for as long as the block. Raises CacheFull."""
    cache = Cache()
    with file_system_errors(cache.root):
        (cache.root / "work").mkdir(parents=True, exist_ok=True)
        with cache.workspace() as scratch:
            yield scratch


def _fingerprint(spec: Build, snapshot: Snapshot, compiler: Compiler) -> str:
    """Of everything that decides what comes out, as far as it is known without work."""
    facts = [_FORMAT, resolving.FORMAT, shipped_text(spec.config), compiler.shown, snapshot.manifest.digest]
    return digest([*facts, spec.key] if spec.domain == OWN else [*facts, spec.key, spec.domain])


def as_asked(kernel: Kernel, spec: Build) -> Kernel:
    """The kernel with the paths of this request: those of the first may be gone."""
    return kernel.model_copy(update={"origin": kernel.origin.model_copy(update={"build": spec})})


def same_kernel(job: BuildJob) -> Parts | None:
    """The parts of a kernel that was asked for in other words, and is the same."""
    for recipe in recipes():
        if recipe.content == job.content:
            with suppress(KernelNotFound, CacheDamaged):
                kernel = Cache().kernel(recipe.build.name)
                if not is_whole(kernel.image.parent):
                    continue
                return replace(parts_of(kernel), origin=origin_of(job))
    return None


def spent_on(content: str) -> float | None:
    """Seconds of the processors that compiling this content took, as far as a recipe tells; else None."""
    seconds = (recipe.cpu_seconds for recipe in recipes() if recipe.content == content)
    return next((spent for spent in seconds if spent is not None), None)


def cpu_seconds(spec: Build) -> float | None:
    """The same of a kernel that was built; None where nothing is known of it."""
    recipe = recipe_of(spec.name)
    return recipe.cpu_seconds if recipe else None


def same_from_nothing(kernel: Kernel, spec: Build, progress: Progress = silent) -> bool:
    """Whether a kernel that was built is, bit by bit, what an empty build tree gives without ccache.

    A makefile may have left something in a tree that is in every later kernel of it. Raises as `build`.
    """
    job = job_of(spec, progress)
    with kernel.image.open("rb") as file:
        image = hashlib.file_digest(file, "sha256").hexdigest()
    marker = cache_directory() / "series" / "from-nothing" / digest([job.content, image])
    if marker.exists():
        return True
    with scratch_directory() as workspace:
        parts = _compiled(replace(job, from_nothing=True), workspace, progress)
        with parts.image.open("rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == image
    if same:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    return same


def _need_of(job: BuildJob) -> Need:
    return Need(
        source=job.source,
        config=job.config,
        compiler=job.compiler.shown,
        make=dict(job.spec.make),
        domain=job.spec.domain,
        content=job.content,
        kernel=job.spec.name,
        from_nothing=job.from_nothing,
    )


def _compile_unpatched(job: BuildJob, workspace: Path, progress: Progress) -> None:
    """Compile the source itself where nothing of it is compiled yet: patched builds begin from a copy.

    So each patch is compiled by itself, and none of them finds what another has left.
    """
    if job.spec.domain == OWN or has_start(_need_of(job)):
        return

    def told_apart(step: str, finished: int = 0, total: int = 0) -> None:
        progress(f"first the source without patches: {step}", finished, total)

    plain = job.spec.model_copy(update={"patches": (), "series": "", "fuzz": 0})
    source = BuildSource(job.source.snapshot, since=job.source.since)
    with suppress(BuildError):  # it may be what the patches mend
        try:
            config = resolving.resolved(source, plain, job.compiler, told_apart).text
        except OptionNotTaken:  # which the patches bring
            plain = plain.model_copy(update={"options": {}})
            config = resolving.resolved(source, plain, job.compiler, told_apart).text
        fingerprint = _fingerprint(plain, source.snapshot, job.compiler)
        _compiled(BuildJob(plain, source, job.compiler, config, fingerprint), workspace, told_apart)


def _compiled(job: BuildJob, workspace: Path, progress: Progress, spent: Spent | None = None) -> Parts:
    """Compile it. `spent` is told what that takes; where it goes on after an interruption, from there on."""
    need = _need_of(job)
    place = None if job.is_apart or has_start(need) else shared_place()
    brought = bring(place, need, progress) if place else False
    room = ROOM_WITHOUT_MODULES + _BYTES_AN_OPTION * max(0, len(job.options) - _FEW_OPTIONS)
    # The slot first: who waits for it keeps no tree from others.
    with slot(progress) as most, taken(need, room, progress) as (tree, near):
        progress("changing the build tree's source" if near else "making a build tree")
        record, before = tree.record(), tree.config()
        if not (record and record.finished):
            sift(tree.build, job.spec.source)
        changed = tree.fill(job.source)
        expected = files_touched(tree.build, before, job.config, changed) if near else 0
        patched: Collection[str] = ()
        if not (record and record.finished):
            # Nothing, or what a build has left that was interrupted, or failed in one of its own files.
            patched = job.source.overlay.files
            mend(tree.build)
            expected = max(expected, expected_files(job.config) - files_compiled(tree.build))
        tree.write_record(need, finished=False)
        others = () if job.from_nothing else builds_of(need)
        objects = OwnObjects.of(tree.build, changed if near else (), patched, others)
        # What configuring reads is as it was, and so is what came out of it.
        settled = bool(record and record.finished) and before == job.config and not resolving.read_of(changed)
        make = replace(_make(job, tree, min(most, jobs()), progress), spent=spent or Spent())
        make.write_file(make.log.name, "")
        try:
            begin = time.monotonic()
            if not settled:
                if tree.config() != job.config:
                    # By a rename: what a build left there may be a link to somewhere else.
                    write_atomically(tree.build / ".config", job.config)
                make.run("configuring", "olddefconfig")
                _check_same(job, parse_config(tree.config()), make)
            files = objects.compile_first(make) if expected > FEW_FILES else 0
            targets = ["vmlinux", "modules"] if _has_modules(job) else ["vmlinux"]
            files += make.run("building", *targets, expected=expected - files)
            _check_same(job, parse_config(tree.config()), make)
            seconds = time.monotonic() - begin
            remember_build(seconds, from_nothing=not near)
            if not near:
                remember_files(job.config, files, seconds * make.most_jobs)
            sift(tree.build, job.spec.source)
            parts = _parts(job, tree, workspace, progress)
        except BuildError as error:
            tree.write_record(need, finished=False, failed=not isinstance(error, BuildCutShort))
            if isinstance(error, BuildFailed):
                raise objects.explained(error) from error
            raise
        tree.write_record(need, finished=True)
        if place and not brought:
            share(place, need, tree, progress)
        return parts


def _check_same(job: BuildJob, options: Mapping[str, str], make: Make) -> None:
    """Raise BuildFailed where the whole source makes another configuration than its Kconfig files made."""
    if different := sorted(dict(job.options.items() ^ options.items())):
        problem = f"its configuration differs from the resolved one: {', '.join(different[:6])}"
        source = job.spec.source
        raise BuildFailed(directory=source, problem=problem, log=make.log)


def _has_modules(job: BuildJob) -> bool:
    return re.search(r"^CONFIG_\w+=m$", job.config, re.MULTILINE) is not None


def _make(job: BuildJob, tree: BuildTree, most: int, progress: Progress) -> Make:
    variables = dict(job.spec.make)
    if job.options.get("CONFIG_DEBUG_INFO") == "y":
        # Debugging information holds the directories' names.
        home = tree.home if sandbox.problem() else tree.place
        source, build = (home / path.relative_to(tree.home) for path in (tree.source, tree.build))
        mapped = f"-fdebug-prefix-map={build}=/build -fdebug-prefix-map={source}=/source"
        for name in ("KCFLAGS", "KAFLAGS"):
            variables[name] = f"{variables.get(name, '')} {mapped}".strip()
    return Make(
        tree_in(tree.source),
        tree.home,
        progress,
        products=tree.build,
        variables=variables,
        called=job.spec.source,
        jobs=most,
        ccache=tree.home / "ccache" if job.is_apart else sandbox.ccache_directory(),
        seen_at=tree.place,
    )


def _parts(job: BuildJob, tree: BuildTree, workspace: Path, progress: Progress) -> Parts:
    image, config, system_map = products(_make(job, tree, 1, progress), workspace)
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
        source=job.spec.source,
        version=job.source.snapshot.described(),
        build=job.spec,
        compiler=job.compiler.shown,
        inexact_patches=tuple(job.source.overlay.inexact),
        new_options=became(new_options(job.source), job.config),
        not_held=job.not_held,
    )


# The objects of the files that a patch changes: made before all that includes them.
#
# A patch to a header has most of a kernel compiled anew. Where its own files do not compile, or no longer
# define a function that others call, that is certain long before make comes to it.

FEW_FILES = 12
"""With so few to compile, make comes to a patch's own ones soon enough."""


@dataclass(frozen=True)
class OwnObjects:
    """Those in a build directory that were compiled from files that have changed since."""

    build: Path
    paths: tuple[str, ...]
    """Below the build directory: `kernel/softirq.o`."""
    changed: frozenset[str]
    """All files that have changed, below the source's top."""
    functions_before: Mapping[str, str] = field(default_factory=dict)
    """Functions that other files could call → the source file that defined them."""

    in_order: bool = True
    """Whether these can be made before all others: a new Makefile or script may make something first."""

    @classmethod
    def of(
        cls,
        build: Path,
        changed: Collection[str],
        patched: Collection[str] = (),
        other_builds: Collection[Path] = (),
    ) -> "OwnObjects":
        """Those that the last build compiled, or tried to, before make changes them.

        `changed`: files that are not what that build had; `patched`: others that it may not have come to;
        `other_builds`: directories of other builds, which know what is compiled of those.
        """
        both = frozenset((*changed, *patched))
        named = sorted(str(Path(path).with_suffix(".o")) for path in both if path.endswith((".c", ".S")))
        builds = (build, *other_builds)
        paths = tuple(
            path for path in named if any(_noted(directory / path).is_file() for directory in builds)
        )
        objects = cls(build, paths, both, in_order=all(map(_READ_BY_COMPILERS.fullmatch, changed)))
        return replace(objects, functions_before=objects._defined())

    def compile_first(self, make: Make) -> int:
        """Compile them, and return how many files that were.

        Raises BuildFailed where they do not compile, and where what they no longer define is missing for
        certain. Of other failures nothing is said: whether there is one, the whole build tells.
        """
        if not self.paths or not self.in_order:
            return 0
        try:
            files = make.run("building the patch's own files", *self.paths)
        except BuildFailed as error:
            if isinstance(error, BuildCutShort) or _COMPILER_ERROR.match(error.problem):
                raise
            return 0
        if missed := self._missed():
            raise self._failure(make, missed)
        return files

    def explained(self, error: BuildFailed) -> BuildFailed:
        """The same with what is known of the functions that it names."""
        problem, gone = error.problem, self._gone()
        named = [name for name in dict.fromkeys(_QUOTED.findall(problem)) if name in gone]
        if not named:
            return error
        explanations = "; ".join(f"{gone[name]} no longer has {name}{self._callers(name)}" for name in named)
        return BuildFailed(**{**error.facts, "problem": f"{problem}; {explanations}"})

    def _failure(self, make: Make, missed: Mapping[str, list[str]]) -> BuildFailed:
        name = make.called or str(make.tree.directory)
        text = "; ".join(
            f"{self.functions_before[function]} no longer has {function}, which {_listed(callers)}"
            for function, callers in list(missed.items())[:_MOST_NAMED]
        )
        return BuildFailed(directory=name, problem=text, log=make.log)

    def _defined(self) -> dict[str, str]:
        source_of: dict[str, str] = {}
        for path in self.paths:
            source_of.update(dict.fromkeys(functions(self.build / path)[0], self._source(path)))
        return source_of

    def _source(self, path: str) -> str:
        names = (str(Path(path).with_suffix(end)) for end in (".c", ".S"))
        return next((name for name in names if name in self.changed), path)

    def _gone(self) -> dict[str, str]:
        still = self._defined()
        return {name: place for name, place in self.functions_before.items() if name not in still}

    def _missed(self) -> dict[str, list[str]]:
        """Functions that are gone → the objects that call them and that nothing will compile anew."""
        gone = self._gone()
        if not gone:
            return {}
        defined: set[str] = set()
        missed: dict[str, list[str]] = {}
        for path, content in self._objects_naming(gone):
            has, wants = functions_in(content)
            defined |= has
            if _is_kept(self.build / path, self.changed):
                for name in wants & gone.keys():
                    missed.setdefault(name, []).append(_source_of(path))
        return {name: sorted(callers) for name, callers in missed.items() if name not in defined}

    def _callers(self, name: str) -> str:
        callers = sorted(
            _source_of(path)
            for path, content in self._objects_naming([name])
            if name in functions_in(content)[1]
        )
        return f", which {_listed(callers)}" if callers else ""

    def _objects_naming(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """The compiled objects that know one of these names, with their contents."""
        needles = [name.encode() + b"\0" for name in names]
        for noted in self.build.rglob(".*.o.cmd"):
            path = noted.with_name(noted.name.removeprefix(".").removesuffix(".cmd"))
            if not path.is_file() or not _COMPILED.search(noted.read_bytes()):
                continue
            content = path.read_bytes()
            if any(name in content for name in needles):
                yield str(path.relative_to(self.build)), content


_MOST_NAMED = 4
_READ_BY_COMPILERS = re.compile(r"(?!scripts/|tools/).*\.[chS]|Documentation/.*|(?:.*/)?Kconfig[\w.-]*")
_COMPILER_ERROR = re.compile(r"^\S+:\d+(?::\d+)?: (?:fatal )?error: (?!.*: No such file)")
_COMPILED = re.compile(rb"-Wp,-MM?D,")
"""Not linked of others."""
_QUOTED = re.compile(r"[`'‘](\w+)['’]")


def functions(path: Path) -> tuple[set[str], set[str]]:
    """As `functions_in`, of a file; nothing where it is not there."""
    try:
        return functions_in(path.read_bytes())
    except OSError:
        return set(), set()


def functions_in(content: bytes) -> tuple[set[str], set[str]]:
    """Global functions that an object defines, and names that it wants of others; nothing of bitcode."""
    has, wants = set[str](), set[str]()
    try:
        elf = ELFFile(io.BytesIO(content))
        code = {
            number
            for number, section in enumerate(elf.iter_sections())
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR
        }
        for table in elf.iter_sections():
            if not isinstance(table, SymbolTableSection):
                continue
            for symbol in table.iter_symbols():
                if symbol.name and symbol["st_info"]["bind"] != "STB_LOCAL":
                    if symbol["st_shndx"] == "SHN_UNDEF":
                        wants.add(symbol.name)
                    elif symbol["st_shndx"] in code:
                        has.add(symbol.name)
    except ELFError:
        return set(), set()
    return has, wants


def _noted(path: Path) -> Path:
    return path.with_name(f".{path.name}.cmd")


def _is_kept(path: Path, changed: Collection[str]) -> bool:
    """Whether nothing that this object was compiled from has changed."""
    read = _noted(path).read_bytes().split()
    return not {f"../{name}".encode() for name in changed}.intersection(read)


def _source_of(path: str) -> str:
    return f"{path.removesuffix('.o')}.c"


def _listed(callers: list[str]) -> str:
    if len(callers) == 1:
        return f"{callers[0]} still calls"
    more = f" and {len(callers) - _MOST_NAMED} more" if len(callers) > _MOST_NAMED else ""
    return f"{len(callers)} files still call: {', '.join(callers[:_MOST_NAMED])}{more}"


# Build a kernel, and keep it in the cache under the name of its source: `source:/home/me/linux`.
#
# <cache>/builds/<directory's name>-<hash of its path>/
#     build/                make's O=: kept, so that the next build compiles what changed
#     build.log             what make printed the last time
#     typical.config, guest.config, options.config, requested.config
#     lock
#     unfinished            there while make runs, and after it was killed or failed

DIRECTORY_PREFIX = "source"
_LOCK = "lock"
_UNFINISHED = "unfinished"
"""There while make runs: who finds it there comes after a build that was killed, or failed."""
_TARGET = "vmlinux"
"""Enough to boot: the guest starts from it. A bzImage would only be packed to be unpacked again."""
_BYTES_OF_A_BUILD = 500 << 20


def add(request: BuildRequest, progress: Progress = silent) -> Kernel:
    """Build the kernel that is wanted, and return it as it is kept in the cache.

    Only what changed since the last build of the same directory is compiled. The same source, configuration
    and compiler give the same kernel, to the last bit.
    Raises NotASource, KernelError, BuildToolsMissing, BadConfigFile, OptionNotTaken, BuildFailed,
    CacheFull and other KernelErrors.
    """
    cache, name = Cache(), name_of(request.source)
    with file_system_errors(cache.root), cache.adding(name, progress), cache.workspace() as workspace:
        return cache.store(name, built(request, workspace, progress), workspace, progress)


def check_request(request: BuildRequest) -> None:
    """Find what can be found without work.

    Raises NotASource, KernelError, BadConfigFile.
    """
    check_clean(tree_in(request.source))
    asked_options(request.config, dict(request.options))


def built(request: BuildRequest, workspace: Path, progress: Progress) -> Parts:
    """Build the kernel that is wanted, and copy its parts into the directory `workspace`. Raises as `add`."""
    check_request(request)
    tree = tree_in(request.source)
    check_tools(tree.directory, asked_options(request.config, dict(request.options)))
    home = build_directory(tree.directory)
    with file_system_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        # The parts are copied before the next build may change them.
        with held(home / _LOCK, progress, "waiting for another ktrial that builds here"):
            make = Make(tree, home, progress)
            _build(make, request)
            return _directory_build_parts(make, request, workspace)


def build_directory(source: Path) -> Path:
    """Where the builds of a source directory are kept."""
    key = hashlib.sha256(str(source).encode()).hexdigest()[:12]
    return cache_directory() / "builds" / f"{source.name}-{key}"


def forget(source: Path) -> int:
    """Delete what was built from a source directory, but for the lock; return how many bytes that freed.

    Where another ktrial is building there, nothing is deleted.
    """
    home = build_directory(source)
    if not home.is_dir():
        return 0
    with file_system_errors(home), held_if_free(home / _LOCK) as free:
        if not free:
            return 0
        freed = disk_usage(home)
        for path in home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != _LOCK:
                path.unlink()
        return freed


def name_of(source: Path) -> str:
    """What the kernel is called that was built from this directory."""
    return f"{DIRECTORY_PREFIX}:{source.expanduser().absolute().resolve()}"


def _build(make: Make, request: BuildRequest) -> None:
    make.write_file(make.log.name, "")
    make.build.mkdir(exist_ok=True)
    from_nothing = not (make.build / _TARGET).exists()
    if from_nothing:
        require_space(make.home, _BYTES_OF_A_BUILD)
    unfinished = make.home / _UNFINISHED
    if unfinished.exists():
        mend(make.build)
    unfinished.touch()
    configure(make, request.config, dict(request.options), brought=new_options_in(make.tree))
    config = (make.build / ".config").read_text(encoding="utf-8")
    check_tools(make.tree.directory, parse_config(config))
    # What a build after a change compiles, nobody knows before make has looked.
    compiled = files_compiled(make.build)
    make.run("building", _TARGET, expected=max(0, expected_files(config) - compiled) if from_nothing else 0)
    unfinished.unlink()


def _directory_build_parts(make: Make, request: BuildRequest, workspace: Path) -> Parts:
    image, config, system_map = products(make, workspace)
    settings = " ".join([request.config, *(f"{name}={value}" for name, value in request.options)])
    version = f"{make.tree.commit() or make.tree.version} ({settings})"
    origin = Origin(
        provider=DIRECTORY_PREFIX,
        source=str(make.tree.directory),
        version=version,
        new_options=became(new_options_in(make.tree), config.read_text(encoding="utf-8")),
    )
    return Parts(image=image, config=config, system_map=system_map, origin=origin)


# How much room on the cache's disk a build takes, told before anything is fetched or compiled.

_GB = 10**9
_USUAL, _USUAL_OF_GIT = 2 * _GB, 4 * _GB
"""A tree with its objects; of a commit also its files, which a source directory has already."""


def usual_room(spec: Build) -> int:
    """Bytes that building it usually takes; none where a build tree is there, which serves again."""
    if has_kept_trees():
        return 0
    built = _USUAL_OF_GIT if spec.source.startswith(GIT_PREFIX) else _USUAL
    return built + _unpacked(spec.source)


def least_room(spec: Build) -> int:
    """Bytes without which it fails for certain."""
    return 0 if has_kept_trees() else ROOM_WITHOUT_MODULES + _unpacked(spec.source)


def _unpacked(source: str) -> int:
    """Of a source that has to be unpacked first."""
    if source.startswith(DEBIAN_PREFIX):
        return UNPACKED_BYTES if package_tools(source.removeprefix(DEBIAN_PREFIX)) else 0
    return UNPACKED_BYTES if Path(source).is_file() else 0
