"""What a treatment's trials do, packed for another system: jobs, and the digests of files that they need."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.experiment.jobs import Job
from ktrial.file_digests import digest_of_bytes, digest_of_file
from ktrial.fleet.contents import Contents
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot

_KERNEL_PARTS = ("image", "vmlinux", "config")
"""What a machine boots, and reads of it. Modules that a boot loads are named one by one."""


@dataclass(frozen=True)
class Package:
    """The jobs of a treatment, and all files of the client's that they name."""

    digest: str
    data: bytes
    """The pickled jobs, with the digest of each file by its path."""
    files: dict[str, Path]
    """Digest → where the client has it."""
    boots: tuple[Boot, ...]
    """The systems that the jobs boot, each once, in the order that `unpacked` keeps."""

    @property
    def digests(self) -> tuple[str, ...]:
        """Of everything that a worker needs: the package itself, and the files."""
        return (self.digest, *self.files)


def packed(jobs: Sequence[Job]) -> Package:
    """Pack them. Raises OSError where a file cannot be read."""
    import cloudpickle  # Dask brings it

    boots = tuple(dict.fromkeys(job.boot for job in jobs))
    paths = {path for boot in boots for path in _paths(boot)}
    digests = {path: digest_of_file(path) for path in sorted(paths)}
    data = cloudpickle.dumps((tuple(jobs), digests))
    files = {digest: path for path, digest in digests.items()}
    return Package(digest_of_bytes(data), data, files, boots)


def unpacked(data: bytes, contents: Contents) -> tuple[Job, ...]:
    """The jobs, with the places where this worker has the files. Raises KeyError where one is not here."""
    jobs, digests = pickle.loads(data)
    places: dict[Boot, Boot] = {}
    for job in jobs:
        if job.boot not in places:
            places[job.boot] = _placed(job.boot, digests, contents)
    return tuple(replace(job, boot=places[job.boot]) for job in jobs)


def digests_in(data: bytes) -> tuple[str, ...]:
    """Of the files that the packed jobs need."""
    _, digests = pickle.loads(data)
    return tuple(dict.fromkeys(digests.values()))


def _paths(boot: Boot) -> Iterator[Path]:
    parts = (getattr(boot.kernel, name) for name in _KERNEL_PARTS)
    yield from (part for part in parts if part and part.is_file())
    yield from boot.modules
    yield from (each.host for each in boot.files if not (each.directory or each.link))


def _placed(boot: Boot, digests: dict[Path, str], contents: Contents) -> Boot:
    def here(path: Path) -> Path:
        return contents.place(digests[path], path.name)

    return boot.model_copy(
        update={
            "kernel": _kernel_placed(boot.kernel, digests, contents),
            "modules": tuple(here(path) for path in boot.modules),
            "files": tuple(
                each if each.directory or each.link else each.model_copy(update={"host": here(each.host)})
                for each in boot.files
            ),
        }
    )


def _kernel_placed(kernel: Kernel, digests: dict[Path, str], contents: Contents) -> Kernel:
    """A part that the client did not have is not here either; of its modules only those that are loaded."""
    parts = {name: path for name in _KERNEL_PARTS if (path := getattr(kernel, name))}
    places = {
        name: contents.kernel_part(kernel.digest, digests[path], path.name)
        for name, path in parts.items()
        if path in digests
    }
    return kernel.model_copy(update=places | {"modules": None})
