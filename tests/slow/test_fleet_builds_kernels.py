"""Kernels that workers of a fleet really build: two of them, on two workers at once.

Each is a whole build of the configuration `guest` without ccache, some 1,170 object files: half an hour on
two cores that do much else.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleet_processes import FleetProcesses, fleet_processes
from tests.support.real_runs import result

from ktrial.kernels.build.debian_sources import debian_source

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(4 * 3600)]
STUDY = """workloads = ["syscall"]
perturbations = 2
[machine]
kernel = "guest"
[kernels.guest]
source = "debian:linux-source-6.1"
config = "guest"
[factors.allocator]
kind = "kconfig"
levels = ["SLUB=y", "SLAB=y"]
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[FleetProcesses]:
    with fleet_processes(tmp_path) as started:
        yield started


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The client's: with the source, and no kernel."""
    directory, source = tmp_path / "client", debian_source("linux-source-6.1")
    directory.mkdir()
    (directory / "sources").symlink_to(source.parent)
    return directory


def kernels_in(directory: Path) -> list[str]:
    """The images that were linked below it."""
    return [name for _, _, names in os.walk(directory) for name in names if name == "vmlinux"]


def test_two_workers_build_a_kernel_each_and_trials_boot_them(
    processes: FleetProcesses, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DISABLE", "1")
    study = tmp_path / "allocators.toml"
    study.write_text(STUDY)
    for number in (1, 2):
        processes.start_worker(number)
    asked = ("run", study, "--no-html", "--store", tmp_path / "trials.db", "--fleet", processes.address)
    record = result(*asked, cache=cache)
    assert [one["outcome"] for one in record["trials"]] == ["completed"] * 4
    assert {one["provenance"]["worker"] for one in record["trials"]} <= {"worker-1", "worker-2"}
    assert len({one["provenance"]["kernel"] for one in record["trials"]}) == 2
    built = [len(kernels_in(tmp_path / "caches" / number / "trees")) for number in ("1", "2")]
    assert built == [1, 1], "each kernel once, each worker one"
    assert not (cache / "trees").exists(), "this system built one"
    again = result(*asked, cache=cache)
    assert again["trials"] == record["trials"], "nothing is built or performed again"
