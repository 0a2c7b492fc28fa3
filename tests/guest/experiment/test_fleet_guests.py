"""Real kernels on fleets of 1, 2 and 4 workers with caches of their own: each digit as without a fleet.

Some 45 CPU seconds a fleet: each worker boots what it runs, as none has a snapshot. The matrix of all
workloads on all kernels takes minutes.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.guests import ALL
from tests.support.places import STUDIES
from tests.support.real_runs import cache_without_snapshots, measured, result
from tests.support.recorded_studies import differing

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12")
WORKLOADS = "syscall,pipe,fork,mmap,nqueens"
FLEETS = (1, 2, 4)
SMALL = ("--kernels", ",".join(KERNELS), "--workloads", WORKLOADS, "--perturbations", "2")
ALL_WORKLOADS = (
    "syscall,pipe,context-switch,fork,open,mmap,stat,copy-256,copy-1024,copy-4096,vfork,clone3,exec,thread,futex,epoll,"
    "socketpair,tcp,timer,hackbench,nqueens,fileio,metadata,oltp,stream-write"
)
WHOLE = ("--kernels", ",".join(ALL), "--workloads", ALL_WORKLOADS)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleets")


@pytest.fixture(scope="module")
def quick_here(places: Path) -> dict[str, Any]:
    return quick(places / "quick-here.db")


@pytest.fixture(scope="module")
def matrix_here(places: Path) -> dict[str, Any]:
    return matrix_of(places / "matrix-here.db")


def quick(store: Path, *fleet: str, cache: Path | None = None) -> dict[str, Any]:
    return result("run", STUDIES / "quick.toml", "--no-html", "--store", store, *fleet, cache=cache)


@pytest.fixture(scope="module")
def whole_matrix_here(places: Path) -> dict[str, Any]:
    return matrix_of(places / "whole-matrix-here.db", asked=WHOLE)


def matrix_of(
    store: Path, *fleet: str, cache: Path | None = None, asked: tuple[str, ...] = SMALL
) -> dict[str, Any]:
    return result("matrix", *asked, "--store", store, *fleet, cache=cache)


def without_worker(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """And without who performed each."""
    kept = measured(trials)
    return [one | {"provenance": one["provenance"] | {"worker": ""}} for one in kept]


@pytest.mark.parametrize("workers", FLEETS)
def test_quick_says_the_same_on_a_fleet(
    workers: int, quick_here: dict[str, Any], tmp_path: Path, large_path: Path
) -> None:
    cache = cache_without_snapshots(large_path / "cache", "debian:6.1", "debian:6.12")
    by_fleet = quick(tmp_path / "trials.db", "--fleet", f"local:{workers}", cache=cache)
    assert len(by_fleet["comparisons"]) == len(quick_here["comparisons"]) > 6
    assert list(differing(by_fleet["comparisons"], quick_here["comparisons"])) == []
    assert list(differing(without_worker(by_fleet["trials"]), without_worker(quick_here["trials"]))) == []
    names = {one["provenance"]["worker"] for one in by_fleet["trials"]}
    assert names <= {f"local-{number}" for number in range(workers)}
    assert names, "nobody but the fleet performs trials"
    caches = [one for one in (cache / "fleet-local").iterdir() if (one / "snapshots").is_dir()]
    assert len(caches) >= min(workers, 2), "each worker keeps snapshots of its own"


@pytest.mark.parametrize("workers", FLEETS)
def test_a_matrix_says_the_same_on_a_fleet(
    workers: int, matrix_here: dict[str, Any], tmp_path: Path, large_path: Path
) -> None:
    cache = cache_without_snapshots(large_path / "cache", *KERNELS)
    matrix = matrix_of(tmp_path / "trials.db", "--fleet", f"local:{workers}", cache=cache)
    cells = [cell for row in matrix["rows"] for cell in row["cells"] if cell["comparison"]]
    assert len(cells) >= len(WORKLOADS.split(",")) * (len(KERNELS) - 1)
    assert list(differing(matrix["rows"], matrix_here["rows"])) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", FLEETS)
def test_the_matrix_of_all_workloads_on_all_kernels_says_the_same_on_a_fleet(
    workers: int, whole_matrix_here: dict[str, Any], tmp_path: Path, large_path: Path
) -> None:
    workloads = {row["workload"] for row in whole_matrix_here["rows"]}
    assert (len(ALL), len(workloads)) == (5, 25)
    cache = cache_without_snapshots(large_path / "cache", *ALL)
    matrix = matrix_of(tmp_path / "trials.db", "--fleet", f"local:{workers}", cache=cache, asked=WHOLE)
    assert list(differing(matrix["rows"], whole_matrix_here["rows"])) == []
