"""A source with its patches applied, and a way to make a directory of files hold it."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ktrial.kernels.build.errors import NotASource
from ktrial.kernels.build.patches import Overlay, patched
from ktrial.kernels.build.recipes import Manifest
from ktrial.kernels.build.source_directory import ignores_source
from ktrial.kernels.build.source_tree import EXPECTED, version_in
from ktrial.kernels.build.sources import GIT_PREFIX, Snapshot, snapshot_of, write_file
from ktrial.kernels.progress import Progress
from ktrial.model.kernel import Build


@dataclass(frozen=True)
class BuildSource:
    """What a build compiles."""

    snapshot: Snapshot
    overlay: Overlay = field(default_factory=Overlay)

    @cached_property
    def manifest(self) -> Manifest:
        """With the patches applied."""
        changes = self.overlay.entries()
        return self.snapshot.manifest.but(changes) if changes else self.snapshot.manifest

    @property
    def family(self) -> str:
        """What sources of few differences have in common: the place that they are read from."""
        asked = self.snapshot.asked
        return asked.rpartition("@")[0] if asked.startswith(GIT_PREFIX) else asked

    def version(self) -> str:
        """As its Makefile has it. Raises NotASource."""
        overlaid = self.overlay.files.get("Makefile")
        if overlaid is not None:
            return version_in(overlaid[1].decode(errors="replace"), self.snapshot.asked)
        if "Makefile" not in self.manifest.files:
            raise NotASource(
                name=self.snapshot.asked, directory=self.snapshot.asked, problem="it lacks Makefile"
            )
        with self.snapshot.reader() as reader:
            return version_in(reader.content("Makefile").decode(errors="replace"), self.snapshot.asked)

    def write(self, into: Path, paths: Iterable[str], *, anew: bool) -> None:
        """Make these files of the directory `into` what the source has; those it has not go away.

        `anew`: each with a new time stamp and no link to the cache, so that make sees that it changed.
        Raises SourceChanged, OSError.
        """
        files = self.manifest.files
        ordered = sorted(paths)
        for path in ordered:
            _clear(into / path)
        made: set[str] = set()
        with self.snapshot.reader() as reader:
            for path in ordered:
                if path not in files:
                    continue
                parent, _, _ = path.rpartition("/")
                if parent not in made:
                    os.makedirs(into / parent, exist_ok=True)  # noqa: PTH103 - 5000 times
                    made.add(parent)
                if (own := self.overlay.files.get(path)) is not None:
                    write_file(into / path, files[path], own[1])
                elif anew:
                    write_file(into / path, files[path], reader.content(path))
                else:
                    reader.place(path, into / path)


def source_of(wanted: Build, scratch: Path, progress: Progress) -> BuildSource:
    """The source that is wanted, with its patches. `scratch` is an empty directory.

    Raises what `snapshot_of` and `patched` raise.
    """
    snapshot = snapshot_of(wanted.source, progress)
    if missing := [name for name in EXPECTED if name not in snapshot.manifest.files]:
        problem = f"it lacks {missing[0]}"
        if snapshot.repository and ignores_source(snapshot.directory):
            problem += (
                "; the .gitignore there ignores the source (Debian's does): git add --force --all takes it"
            )
        raise NotASource(name=wanted.source, directory=wanted.source, problem=problem)
    return BuildSource(snapshot, patched(snapshot, wanted.patches, scratch, wanted.fuzz))


def _clear(path: Path) -> None:
    """Away with a file, or with a directory that only holds what is no longer there."""
    try:
        path.unlink(missing_ok=True)
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(path)
    except NotADirectoryError:
        path.parent.unlink()
