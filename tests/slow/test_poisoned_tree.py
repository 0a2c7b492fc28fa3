"""A hostile patch rewrites what is kept of a real kernel's build: the next author's kernel has none of it.

Two kernels are compiled whole, and two in part: some 1,500 s of CPU.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.real_runs import show

from ktrial.installation import cache_directory
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.build.requests import requested
from ktrial.model.kernel import Kernel

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(4 * 3600)]
SOURCE = "debian:linux-source-6.1"
CLEAN, POISON = b"Attempted to kill init!", b"Attempted to fool init!"
HOSTILE = """\
--- a/kernel/Makefile
+++ b/kernel/Makefile
@@ -1,2 +1,3 @@
 # SPDX-License-Identifier: GPL-2.0
+$(shell [ ! -e kernel/exit.o ] || sed -i 's/to kill init/to fool init/' kernel/exit.o)
 #
"""
"""kbuild's makefile runs it before it looks at the objects: this one is newer than its source, and stays."""
BENIGN = """\
--- a/kernel/sched/fair.c
+++ b/kernel/sched/fair.c
@@ -71,3 +71,3 @@
  */
-unsigned int sysctl_sched_latency\t\t\t= 6000000ULL;
+unsigned int sysctl_sched_latency\t\t\t= 24000000ULL;
 static unsigned int normalized_sysctl_sched_latency\t= 6000000ULL;
"""


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two empty ones, with the source."""
    source = debian_source("linux-source-6.1")
    home = Path(tempfile.mkdtemp(prefix="tests-", dir=cache_directory()))
    for name in ("kept", "empty"):
        (home / name).mkdir()
        (home / name / "sources").symlink_to(source.parent)
    yield home / "kept", home / "empty"
    sandbox.forget()
    shutil.rmtree(home)


def test_the_next_kernel_is_that_of_an_empty_cache_to_the_last_bit(
    caches: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostile.patch").write_text(HOSTILE)
    (tmp_path / "benign.patch").write_text(BENIGN)

    def built(cache: Path, *patches: str) -> Kernel:
        monkeypatch.setenv("KTRIAL_CACHE", str(cache))
        sandbox.forget()
        return build(requested(SOURCE, patches=patches, directory=tmp_path), show)

    kept, empty = caches
    plain = contents(built(kept))
    hostile = contents(built(kept, "hostile.patch"))
    benign = contents(built(kept, "benign.patch"))
    assert CLEAN in plain
    assert POISON in hostile, "it reached its own kernel, or nothing was tried"
    assert POISON not in benign
    assert benign == contents(built(empty, "benign.patch"))


def contents(kernel: Kernel) -> bytes:
    """All that is booted: the uncompressed kernel, and its image."""
    home = kernel.image.parent
    return (home / "vmlinux").read_bytes() + kernel.image.read_bytes()
