"""Real kernels on fleets of 1, 2 and 4 workers with caches of their own: each digit as without a fleet.

Some 45 CPU seconds a fleet: each worker boots what it runs, as none has a snapshot.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.differing import differing
from tests.support.places import STUDIES
from tests.support.real_runs import cache_without_snapshots, measured, result

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12")
WORKLOADS = "syscall,pipe,fork,mmap,nqueens"
FLEETS = (1, 2, 4)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleets")


@pytest.fixture(scope="module")
def quick_here(places: Path) -> dict[str, Any]:
    return quick(places / "quick-here.db")


@pytest.fixture(scope="module")
def matrix_here(places: Path) -> dict[str, Any]:
    return small_matrix(places / "matrix-here.db")


def quick(store: Path, *fleet: str, cache: Path | None = None) -> dict[str, Any]:
    return result("run", STUDIES / "quick.toml", "--no-html", "--store", store, *fleet, cache=cache)


def small_matrix(store: Path, *fleet: str, cache: Path | None = None) -> dict[str, Any]:
    asked = ("--kernels", ",".join(KERNELS), "--workloads", WORKLOADS, "--perturbations", "2")
    return result("matrix", *asked, "--store", store, *fleet, cache=cache)


def without_worker(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """And without who performed each."""
    kept = measured(trials)
    return [one | {"provenance": one["provenance"] | {"worker": ""}} for one in kept]


@pytest.mark.parametrize("workers", FLEETS)
def test_quick_says_the_same_on_a_fleet(workers: int, quick_here: dict[str, Any], tmp_path: Path) -> None:
    cache = cache_without_snapshots(tmp_path / "cache", "debian:6.1", "debian:6.12")
    found = quick(tmp_path / "trials.db", "--fleet", f"local:{workers}", cache=cache)
    assert len(found["comparisons"]) == len(quick_here["comparisons"]) > 6
    assert list(differing(found["comparisons"], quick_here["comparisons"])) == []
    assert list(differing(without_worker(found["trials"]), without_worker(quick_here["trials"]))) == []
    names = {one["provenance"]["worker"] for one in found["trials"]}
    assert names <= {f"local-{number}" for number in range(workers)}
    assert names, "nobody but the fleet performs trials"
    caches = [one for one in (cache / "fleet-local").iterdir() if (one / "snapshots").is_dir()]
    assert len(caches) >= min(workers, 2), "each worker keeps snapshots of its own"


@pytest.mark.parametrize("workers", FLEETS)
def test_a_matrix_says_the_same_on_a_fleet(workers: int, matrix_here: dict[str, Any], tmp_path: Path) -> None:
    cache = cache_without_snapshots(tmp_path / "cache", *KERNELS)
    found = small_matrix(tmp_path / "trials.db", "--fleet", f"local:{workers}", cache=cache)
    cells = [cell for row in found["rows"] for cell in row["cells"] if cell["comparison"]]
    assert len(cells) >= len(WORKLOADS.split(",")) * (len(KERNELS) - 1)
    assert list(differing(found["rows"], matrix_here["rows"])) == []
