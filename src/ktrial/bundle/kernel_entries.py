"""The kernels of a study, by digest, with what obtains them again, and their files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ktrial import kernels
from ktrial.bundle.archive import ArchiveEntry, is_plain
from ktrial.bundle.contents import KERNELS, KernelEntry
from ktrial.kernels.errors import KernelError
from ktrial.kernels.modules.depmod import GENERATED
from ktrial.model.kernel import Kernel
from ktrial.model.plan import treatments
from ktrial.model.study import Study, kernel_of
from ktrial.model.trial import Trial
from ktrial.studyfile.references import resolved

IMAGE, CONFIG, SYSTEM_MAP, MODULES = "vmlinuz", "config", "System.map", "modules"


def kernel_entries(study: Study, trials: Sequence[Trial], *, with_files: bool) -> tuple[KernelEntry, ...]:
    """One for each name, in the order of the treatments."""
    ran = {
        trial.planned.treatment.key: trial.provenance for trial in trials if trial.provenance.kernel_digest
    }
    entries: dict[str, KernelEntry] = {}
    full = resolved(study)
    for treatment in treatments(full):
        asked = kernel_of(full, treatment).label
        met = ran.get(treatment.key)
        if asked in entries and (met is None or entries[asked].digest):
            continue
        if met is None:
            entries[asked] = KernelEntry(asked=asked)
            continue
        kernel = cached(met.kernel_digest)
        entries[asked] = KernelEntry(
            asked=asked,
            release=met.kernel_release,
            digest=met.kernel_digest,
            config_digest=met.config_digest,
            package=met.kernel_package,
            origin=kernel.origin if kernel else None,
            obtain=_obtained_by(met.kernel, met.kernel_release, kernel),
            files=tuple(name for name, _ in _files(kernel)) if kernel and with_files else (),
        )
    return tuple(entries.values())


def cached(digest: str) -> Kernel | None:
    """The kernel of this content, where the cache has it."""
    try:
        return kernels.get(digest) if digest else None
    except KernelError:
        return None


def _obtained_by(name: str, release: str, kernel: Kernel | None) -> str:
    """Debian's packages are named by what `uname -r` says, which is of one build."""
    provider = kernel.origin.provider if kernel else name.partition(":")[0]
    return f"debian:{release}" if provider == "debian" and release else ""


def entries_of_files(entries: Sequence[KernelEntry]) -> Iterator[ArchiveEntry]:
    """The kernels' files for the archive: those that the entries list."""
    for entry in {one.digest: one for one in entries if one.files}.values():
        kernel = cached(entry.digest)
        for name, path in _files(kernel) if kernel else ():
            yield ArchiveEntry(f"{KERNELS}/{entry.digest}/{name}", path)


def missing_files(entries: Sequence[KernelEntry]) -> list[str]:
    """Names of the kernels whose files are wanted and not in the cache any more."""
    return [one.asked for one in entries if one.digest and not one.files]


def _files(kernel: Kernel) -> Iterator[tuple[str, Path]]:
    yield IMAGE, kernel.image
    if kernel.config:
        yield CONFIG, kernel.config
    system_map = kernel.image.with_name(SYSTEM_MAP)
    if system_map.is_file():
        yield SYSTEM_MAP, system_map
    if kernel.modules is None:
        return
    for path in sorted(kernel.modules.rglob("*")):
        if path.is_file() and path.name not in GENERATED:
            name = f"{MODULES}/{path.relative_to(kernel.modules)}"
            if is_plain(f"{KERNELS}/{kernel.digest}/{name}"):
                yield name, path
