"""Builds on another system: what is asked of it, what it does and hands back, and how that is taken in.

Who asks looks at the source and resolves the configuration, which takes seconds. The other system is given
the source as one archive, the patches and the final configuration, and has to come to the same key of what is
compiled: the same files, configuration and flags, by a compiler of the same name. Nothing depends on paths.
"""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import zstandard

from ktrial.file_digests import digest_of_file
from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.builds import (
    BuildJob,
    as_asked,
    job_of,
    origin_of,
    parts_of_job,
    same_kernel,
    scratch_directory,
)
from ktrial.kernels.build.make import compiler_of
from ktrial.kernels.build.patches import PATCH, BuildSource, patched
from ktrial.kernels.build.recipes import (
    EXECUTABLE,
    LINK,
    Recipe,
    content_kept,
    keep,
    keep_content,
    keep_manifest,
    kept_manifest,
)
from ktrial.kernels.build.requests import check_tools
from ktrial.kernels.build.sources import Snapshot, manifest_of_all
from ktrial.kernels.config import parse_config
from ktrial.kernels.errors import BuildDiffers, BuildToolsMissing
from ktrial.kernels.files import file_system_errors, require_space
from ktrial.kernels.kernel_cache import SYSTEM_MAP, Cache, held
from ktrial.kernels.providers import Parts
from ktrial.kernels.tar import tarfile
from ktrial.model.kernel import Build, BuildOrder, Kernel, Origin

_UNPACKED_BYTES = 1700 << 20
_SOURCES_PACKED = 4
_KERNELS_PACKED = 4
"""So many archives are kept, the latest."""
_LEVEL = 1
"""zstd's: a kernel's source in seconds."""
_IMAGE, _CONFIG, _MODULES = "image", "config", "modules"
_BROKEN = (tarfile.TarError, EOFError, zstandard.ZstdError)


@dataclass(frozen=True)
class Request:
    """What decides what comes out, beside the Build and the files' contents."""

    config: str
    """The final configuration's text."""
    compiler: str
    source: str
    """The digest of the source's manifest, without patches."""
    archive: str
    """The digest of the archive that holds the source."""
    fingerprint: str
    origin: Origin
    sandboxed: bool


class SourceBuilds:
    """Kernels from source: `order` and `take` for who asks, all else for who builds."""

    def order(self, spec: Build, progress: Progress) -> BuildOrder | None:
        """What another system is asked; None: the same kernel is here under another name.

        Raises as `ktrial.kernels.build.builds.build` does before it compiles.
        """
        job = job_of(spec, progress)
        if same_kernel(job):
            return None
        archive = _packed(job.source.snapshot, progress)
        files = {digest_of_file(archive): archive}
        request = Request(
            config=job.config,
            compiler=job.compiler.shown,
            source=job.source.snapshot.manifest.digest,
            archive=next(iter(files)),
            fingerprint=job.fingerprint,
            origin=origin_of(job),
            sandboxed=not sandbox.problem(),
        )
        patches = {patch.digest: content_kept(patch.digest) or Path(patch.path) for patch in spec.patches}
        return BuildOrder(spec, job.content, request, files | patches)

    def take(self, order: BuildOrder, archive: Path) -> Kernel:
        """Put into the cache what another system built. Raises BuildDiffers, CacheFull, ImageError."""
        spec, request, cache = order.build, _request_of(order), Cache()
        with (
            file_system_errors(cache.root),
            cache.adding(spec.name, silent),
            cache.workspace() as workspace,
        ):
            parts = _parts_in(archive, workspace / "arrived", order)
            kernel = cache.store(spec.name, parts, workspace, silent)
            keep(Recipe(build=spec, fingerprint=request.fingerprint, content=order.content))
            return as_asked(kernel, spec)

    def problem(self, order: BuildOrder) -> str:
        """Why it cannot be built on this system; empty where it can."""
        spec, request = order.build, _request_of(order)
        try:
            more = (PATCH,) if spec.patches else ()
            check_tools(spec.source, parse_config(request.config), spec.make, more)
            compiler = compiler_of(spec.make).shown
        except BuildToolsMissing as error:
            return f"it lacks {error.tools}"
        if compiler != request.compiler:
            return f"its compiler is {compiler}, {request.compiler} here"
        if request.sandboxed and (why := sandbox.problem()):
            return f"it has no sandbox for builds ({why})"
        return ""

    def needed(self, order: BuildOrder) -> tuple[str, ...]:
        """Digests of the files that this system has to be given, as far as it has not made use of them."""
        request = _request_of(order)
        unpacked = kept_manifest(_manifest_file(request.source)) is not None
        return tuple(digest for digest in order.files if not (unpacked and digest == request.archive))

    def make(self, order: BuildOrder, place: Callable[[str], Path], progress: Progress) -> Path:
        """Build it, and return an archive of the kernel. `place`: where a needed file is, by its digest.

        Raises BuildError, BuildDiffers, CacheFull.
        """
        cache = Cache()
        with file_system_errors(cache.root), scratch_directory() as scratch:
            job = _job_here(order, place, scratch, progress)
            with cache.adding(order.build.name, progress), cache.workspace() as workspace:
                parts = parts_of_job(job, workspace, progress)
                kernel = cache.store(order.build.name, parts, workspace, progress)
            return _kernel_packed(kernel, order.content)


def _request_of(order: BuildOrder) -> Request:
    assert isinstance(order.request, Request), "SourceBuilds made it"
    return order.request


def _job_here(order: BuildOrder, place: Callable[[str], Path], scratch: Path, progress: Progress) -> BuildJob:
    """What was worked out elsewhere, with the source as it is here. Raises BuildDiffers."""
    spec, request = order.build, _request_of(order)
    for patch in spec.patches:
        keep_content(patch.digest, place(patch.digest))
    snapshot = _unpacked(order, place, progress)
    source = BuildSource(snapshot, patched(snapshot, spec.patches, scratch, spec.fuzz))
    job = BuildJob(spec, source, compiler_of(spec.make), request.config, request.fingerprint)
    if job.content != order.content:
        raise _differs(order, f"its compiler is {job.compiler.shown}, or its sources are others")
    return job


def _differs(order: BuildOrder, problem: str) -> BuildDiffers:
    return BuildDiffers(directory=order.build.source, problem=problem)


def _packed(snapshot: Snapshot, progress: Progress) -> Path:
    """One archive of all of the source's files, the same for the same source; kept for other builds."""
    directory = cache_directory() / "sources" / "packed"
    archive = directory / f"{snapshot.manifest.digest}.tar.zst"
    directory.mkdir(parents=True, exist_ok=True)
    with held(archive.with_suffix(".lock"), progress, "waiting for another ktrial that packs the source"):
        if archive.exists():
            os.utime(archive)
            return archive
        progress("packing the source for the fleet")
        with _writing(archive) as tar, snapshot.reader() as reader:
            for path, entry in sorted(snapshot.manifest.files.items()):
                _add(tar, path, entry.split()[0], reader.content(path))
    _keep_latest(directory, _SOURCES_PACKED)
    return archive


def _add(tar: tarfile.TarFile, path: str, mode: str, content: bytes) -> None:
    member = tarfile.TarInfo(path)
    if mode == LINK:
        member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(content)
        tar.addfile(member)
        return
    member.mode = 0o755 if mode == EXECUTABLE else 0o644
    member.size = len(content)
    tar.addfile(member, BytesIO(content))


def _unpacked(order: BuildOrder, place: Callable[[str], Path], progress: Progress) -> Snapshot:
    """The source in this system's cache, verified when it is unpacked. Raises BuildDiffers, CacheFull."""
    request = _request_of(order)
    memory = _manifest_file(request.source)
    home = memory.with_name(request.source)
    memory.parent.mkdir(parents=True, exist_ok=True)
    with held(memory.with_suffix(".lock"), progress, "waiting for another ktrial that unpacks the source"):
        manifest = kept_manifest(memory) if home.is_dir() else None
        if manifest is None:
            progress("unpacking the source")
            shutil.rmtree(home, ignore_errors=True)
            require_space(memory.parent, _UNPACKED_BYTES)
            with Cache().workspace() as workspace:
                _extract(place(request.archive), workspace / "source", order)
                manifest = manifest_of_all(workspace / "source")
                if manifest.digest != request.source:
                    raise _differs(order, "the source that it was given is another one")
                (workspace / "source").rename(home)
            keep_manifest(manifest, memory)
    return Snapshot(order.build.source, manifest, home, unchanging=True)


def _manifest_file(source: str) -> Path:
    return cache_directory() / "sources" / "given" / f"{source}.manifest.json"


def _kernel_packed(kernel: Kernel, content: str) -> Path:
    """An archive of what `_parts` of a build has."""
    directory = cache_directory() / "fleet" / "built"
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / f"{content}.tar.zst"
    system_map = kernel.image.with_name(SYSTEM_MAP)
    with _writing(archive) as tar:
        named = ((_IMAGE, kernel.image), (_CONFIG, kernel.config), (SYSTEM_MAP, system_map))
        for name, path in named:
            if path and path.exists():
                tar.add(path, name)
        if kernel.modules:
            tar.add(kernel.modules, _MODULES, filter=_plain)
    _keep_latest(directory, _KERNELS_PACKED)
    return archive


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Links of modules lead to sources, which nobody needs."""
    return member if member.isfile() or member.isdir() else None


def _parts_in(archive: Path, into: Path, order: BuildOrder) -> Parts:
    """What another system built, as far as it is what was asked for. Raises BuildDiffers."""
    request = _request_of(order)
    _extract(archive, into, order)
    image, config, system_map = (into / name for name in (_IMAGE, _CONFIG, SYSTEM_MAP))
    for path in (image, config):
        if path.is_symlink() or not path.is_file():
            raise _differs(order, f"there is no file {path.name} in what it built")
    if parse_config(config.read_text(errors="replace")) != parse_config(request.config):
        raise _differs(order, "its configuration is another one")
    modules = into / _MODULES
    return Parts(
        image=image,
        config=config,
        system_map=system_map if system_map.is_file() and not system_map.is_symlink() else None,
        modules=modules if modules.is_dir() else None,
        origin=request.origin,
    )


def _extract(archive: Path, into: Path, order: BuildOrder) -> None:
    into.mkdir()
    try:
        with zstandard.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            tar.extractall(into, filter="data")
    except _BROKEN as error:
        raise _differs(order, f"its archive is damaged: {error}") from None


@contextmanager
def _writing(archive: Path) -> Iterator[tarfile.TarFile]:
    """An archive that appears when all of it is written."""
    arriving = archive.with_name(f".{archive.name}.{uuid.uuid4().hex}")
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    try:
        with (
            zstandard.open(arriving, "wb", cctx=compressor) as stream,
            tarfile.open(fileobj=stream, mode="w|") as tar,
        ):
            yield tar
        arriving.replace(archive)
    finally:
        arriving.unlink(missing_ok=True)


def _keep_latest(directory: Path, most: int) -> None:
    """Take away older archives."""
    archives = sorted(directory.glob("*.tar.zst"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-most]:
        old.unlink(missing_ok=True)
