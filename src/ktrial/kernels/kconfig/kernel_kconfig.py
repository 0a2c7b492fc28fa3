"""The Kconfig of what a kernel was built from, with its patches applied."""

import tempfile
from pathlib import Path, PurePosixPath

from ktrial.kernels.build.build_spec import requested
from ktrial.kernels.build.patched_source import Source, source_of
from ktrial.kernels.kconfig.evaluator import Rules
from ktrial.kernels.kconfig.parser import rules_in
from ktrial.kernels.progress import Progress, silent
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_build import Build

_rules: dict[str, Rules] = {}
"""By the digest of all the source's files: reading takes seconds, and two builds mostly share one source."""
_MOST_KEPT = 4


def rules_of_kernel(kernel: Kernel, progress: Progress = silent) -> Rules | None:
    """What Kconfig asks for in the kernel's own source; None where that is not known.

    Raises SourceUnusable, and what obtaining the source raises.
    """
    if kernel.origin.build is not None:
        return rules_of_build(kernel.origin.build, progress)
    if kernel.origin.provider == "source" and Path(kernel.origin.source).is_dir():
        return rules_of_build(Build(source=kernel.origin.source), progress)
    return None


def rules_of_source(source: str, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in a source that a user names, relative to the directory that we are in.

    Raises SourceUnusable, NotASource, NoSuchSource, FetchFailed and other KernelErrors.
    """
    return rules_of_build(requested(source, directory=Path.cwd()), progress)


def rules_of_build(wanted: Build, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in the source of a build, with its patches.

    Raises what `rules_of_source` raises, BadPatch, PatchNotApplied.
    """
    with tempfile.TemporaryDirectory(prefix="ktrial-kconfig-") as scratch:
        patching, files = Path(scratch) / "patching", Path(scratch) / "files"
        patching.mkdir()
        source = source_of(wanted, patching, progress)
        key = source.manifest.digest
        if key not in _rules:
            progress("reading Kconfig")
            found = rules_in(_directory(source, files))
            while len(_rules) >= _MOST_KEPT:
                del _rules[next(iter(_rules))]
            _rules[key] = found
        return _rules[key]


def _directory(source: Source, files: Path) -> Path:
    """Where its Kconfig files lie: in the cache's own copy, or in `files`, made for it."""
    if source.snapshot.unchanging and not source.overlay.files:
        return source.snapshot.directory
    wanted = (path for path in source.manifest.files if PurePosixPath(path).name.startswith("Kconfig"))
    files.mkdir()
    source.write(files, wanted, anew=False)
    return files
