"""Kernels from source: one changed option beside a build from nothing, and a build where nothing changed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.row import Row, seconds
from ktrial.errors import KtrialError
from ktrial.installation import cache_directory
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.build.requests import requested

SOURCE = "debian:linux-source-6.1"
LEAF = "AUTOFS_FS=y"
"""An option that a few files of its own depend on, and nothing else."""
ROUNDS = 3
NEEDS = "kernels are built where setup/system-packages slow has installed what that needs"


def rows() -> Iterator[Row]:
    """From nothing, one option, nothing changed; all without ccache, in a cache of their own."""
    what = f"{SOURCE} (guest): one option changed"
    try:
        with _cache_of_its_own():
            first = requested(SOURCE, directory=Path.cwd())
            whole = seconds(lambda: build(first))
            changed = seconds(lambda: build(requested(SOURCE, options=[LEAF], directory=Path.cwd())))
            yield Row(what, changed, "from nothing", whole, least_ratio=5)
            again = min(seconds(lambda: build(first)) for _ in range(ROUNDS))
            yield Row(f"{SOURCE} (guest): nothing changed", again, most_seconds=2)
    except KtrialError as error:
        yield Row(what, 0.0, "from nothing", None, least_ratio=5, note=f"{error.message} {NEEDS}")


@contextmanager
def _cache_of_its_own() -> Iterator[None]:
    """On the same file system, with the same sources, so that trees are made of links as they always are."""
    source = debian_source(SOURCE.removeprefix("debian:"))
    before = {name: os.environ.get(name) for name in ("KTRIAL_CACHE", "CCACHE_DISABLE")}
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=cache_directory()))
    try:
        (directory / "sources").symlink_to(source.parent)
        os.environ |= {"KTRIAL_CACHE": str(directory), "CCACHE_DISABLE": "1"}
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(directory)
