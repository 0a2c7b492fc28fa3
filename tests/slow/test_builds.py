"""A real kernel built by content: reused trees, patches, interruption, and a boot. Compiles for minutes."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.guests import boot_of
from tests.support.real_runs import show

from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry
from ktrial.kernels.build.build_trees import kept_trees
from ktrial.kernels.build.builds import build, configured, menu_of
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import OptionNotTaken, PatchNotApplied
from ktrial.kernels.kallsyms_table import kallsyms_in
from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Build, Kernel

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(4 * 3600)]
SOURCE = "debian:linux-source-6.1"
KTRIAL = Path(sys.executable).with_name("ktrial")
SLICE = """\
--- a/kernel/sched/fair.c
+++ b/kernel/sched/fair.c
@@ -71,3 +71,3 @@
  */
-unsigned int sysctl_sched_latency\t\t\t= 6000000ULL;
+unsigned int sysctl_sched_latency\t\t\t= 24000000ULL;
 static unsigned int normalized_sysctl_sched_latency\t= 6000000ULL;
"""


@pytest.fixture(scope="module", autouse=True)
def cache() -> Iterator[Path]:
    """A cache of its own on the same file system, and no ccache: what is compiled is compiled."""
    source = debian_source("linux-source-6.1")
    directory = Path(tempfile.mkdtemp(prefix="tests-", dir=cache_directory()))
    (directory / "sources").symlink_to(source.parent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KTRIAL_CACHE", str(directory))
        patched.setenv("CCACHE_DISABLE", "1")
        yield directory
    shutil.rmtree(directory)


def asked(**parts: object) -> Build:
    return requested(SOURCE, directory=Path.cwd(), **parts)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def first(cache: Path) -> tuple[Kernel, float]:
    begin = time.monotonic()
    kernel = build(asked(), show)
    return kernel, time.monotonic() - begin


def log_of(cache: Path) -> str:
    logs = sorted((cache / "trees").glob("*/build.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1].read_text(errors="replace")


def files_in(log: str) -> int:
    return sum(line.startswith(("  CC ", "  AS ")) for line in log.splitlines())


def test_one_changed_option_is_built_five_times_faster_and_nothing_changed_takes_no_time(
    first: tuple[Kernel, float], cache: Path
) -> None:
    kernel, whole = first
    begin = time.monotonic()
    assert build(asked()) == kernel
    again = time.monotonic() - begin
    begin = time.monotonic()
    changed = build(asked(options=["AUTOFS_FS=y"]))
    leaf = time.monotonic() - begin
    print(f"from nothing {whole:.0f} s, one option {leaf:.1f} s, nothing changed {again:.2f} s")
    assert changed.digest != kernel.digest
    assert files_in(log_of(cache)) < 60
    assert whole / leaf >= 5
    assert again < 2
    assert len(kept_trees()) == 1


def test_an_incremental_build_gives_what_a_build_from_nothing_gives(first: tuple[Kernel, float]) -> None:
    kernel, _ = first
    build(asked(options=["AUTOFS_FS=y"]))
    kernel_registry.remove(kernel.name)
    assert build(asked()).digest == kernel.digest


def test_the_symbols_in_its_image_are_those_that_the_booted_kernel_shows(
    first: tuple[Kernel, float], tmp_path: Path
) -> None:
    kernel, _ = first
    machine = ExactMachine(cache=tmp_path)
    with machine.instrumented(boot_of(kernel)) as target:
        assert kallsyms_in(kernel) == target.kallsyms()


def test_a_patch_that_changes_a_constant_changes_the_kernel(
    first: tuple[Kernel, float], cache: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "slice.patch"
    patch.write_text(SLICE)
    patched = build(asked(patches=[str(patch)]))
    assert patched.digest != first[0].digest
    assert files_in(log_of(cache)) < 20
    original = debian_source("linux-source-6.1") / "kernel/sched/fair.c"
    assert "24000000ULL" not in original.read_text(), "the cache's own file was not written through its link"
    patch.write_text(SLICE.replace("6000000ULL", "7000000ULL"))
    with pytest.raises(PatchNotApplied, match=r"hunk 1 of kernel/sched/fair\.c fails"):
        build(asked(patches=[str(patch)]))


def test_options_that_cannot_be_set_name_what_they_need(first: tuple[Kernel, float]) -> None:
    with pytest.raises(OptionNotTaken) as caught:
        configured(asked(options=["XFS_ONLINE_SCRUB=y"]))
    assert "XFS_FS [=n]" in caught.value.advice
    with pytest.raises(OptionNotTaken) as caught:
        configured(asked(options=["RATIONAL=n", "CRYPTO_HASH=n"]))
    assert "selected by" in caught.value.advice
    with pytest.raises(OptionNotTaken, match="no such option"):
        configured(asked(options=["SCHED_MUQSS=y"]))
    slab = menu_of(asked()).options["CONFIG_SLAB"]
    assert slab.choice == ("SLAB", "SLUB", "SLOB")


def test_a_killed_build_goes_on_where_it_was(first: tuple[Kernel, float], cache: Path) -> None:
    command: list[str | Path] = [KTRIAL, "kernel", "build", SOURCE, "--make", "KCFLAGS=-DANOTHER"]
    known = set((cache / "trees").glob("*/build.log"))
    process = subprocess.Popen(command, start_new_session=True)
    logs: set[Path] = set()
    while not logs or files_in(log_of(cache)) < 100:
        assert process.poll() is None
        time.sleep(1)
        logs = set((cache / "trees").glob("*/build.log")) - known
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(5)  # make is ended by the system, and ends its compilers
    before = files_in(log_of(cache))
    assert before < 500
    subprocess.run(command, check=True)
    assert len(kept_trees()) == 2, "it went on in the same tree"
    whole = sum(1 for _ in logs.pop().parent.glob("source/build/**/*.o"))
    assert files_in(log_of(cache)) < whole - before + 60


def test_the_kernel_boots_in_exact_mode_and_runs_workloads(
    first: tuple[Kernel, float], tmp_path: Path
) -> None:
    other = build(asked(options=["AUTOFS_FS=y"]))
    names = ["--kernel", first[0].name, "--kernel", other.name]
    command: list[str | Path] = [
        KTRIAL,
        "compare",
        *names,
        "--workload",
        "syscall,hackbench",
        "--perturbations",
        "1",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--store", tmp_path / "x.db", "--no-html"], check=True, capture_output=True, text=True
    )
    assert '"syscall"' in done.stdout
    assert '"hackbench"' in done.stdout
