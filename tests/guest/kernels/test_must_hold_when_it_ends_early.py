"""Ctrl-C at each stage of a real run, and a full disk: nothing is lost, and the run goes on from there."""

import subprocess
from pathlib import Path

import pytest
from tests.support.real_runs import KTRIAL, cache_without_snapshots, environment, interrupted, result

from ktrial.installation import cache_directory
from ktrial.model.trial import Outcome, Trial
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

STUDY = """
question = "Does it matter how the run went?"
workloads = ["syscall", "pipe"]
perturbations = 2
[machine]
kernel = "debian:6.1"
[factors.cache_pressure]
kind = "setting"
target = "vm.vfs_cache_pressure"
levels = [100, 10]
baseline = 100
"""
TRIALS = 4


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return cache_without_snapshots(tmp_path / "cache", "debian:6.1")


def stored(store: Path) -> tuple[Trial, ...]:
    if not store.exists():
        return ()
    with open_store(store) as opened:
        return tuple(trial for study in opened.studies() for trial in opened.trials(study.id))


def check_that_it_goes_on(study: Path, store: Path, cache: Path, before: tuple[Trial, ...]) -> None:
    """The same command ends with all trials, and those that were stored are as they were."""
    told = result("run", study, "--store", store, "--no-html", cache=cache)
    after = stored(store)
    assert [trial.outcome for trial in after] == [Outcome.COMPLETED] * TRIALS
    assert [trial for trial in after if trial in before] == list(before)
    assert len({trial.planned.key for trial in after}) == TRIALS
    assert {one["verdict"] for one in told["comparisons"]} == {"equivalent"}
    assert len({one["workload"] for one in told["comparisons"]}) == 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("at", "least", "most"),
    [
        pytest.param("4 trials", 0, 0, marks=pytest.mark.nightly),
        pytest.param("debian:6.1: booting", 0, 0, marks=pytest.mark.nightly),
        pytest.param("debian:6.1: saving the snapshot", 0, TRIALS - 1, marks=pytest.mark.nightly),
        ("trials: 1/4", 1, TRIALS - 1),
    ],
)
def test_ctrl_c_ends_a_run_that_goes_on_later(
    at: str, least: int, most: int, study: Path, cache: Path, run_cache: Path, tmp_path: Path
) -> None:
    store = tmp_path / "trials.db"
    # A snapshot that was half made is met again; the others go on with what other tests have made.
    interrupted_in = cache if at.startswith("debian:") else run_cache
    goes_on_in = cache if at.endswith("saving the snapshot") else run_cache
    status, said = interrupted("run", study, "--store", store, "--no-html", cache=interrupted_in, at=at)
    before = stored(store)
    assert (status, at in said) == (130, True), said
    assert "Traceback" not in said
    assert f"{len(before)} of {TRIALS} trials are stored" in said
    assert "run the same command again" in said
    assert least <= len(before) <= most
    assert {trial.outcome for trial in before} <= {Outcome.COMPLETED}
    check_that_it_goes_on(study, store, goes_on_in, before)


@pytest.mark.nightly  # for each change: tests/unit/kernels/test_kernels_cache_processes.py
def test_ctrl_c_while_a_kernel_is_fetched_leaves_no_half_of_it(
    study: Path, run_cache: Path, tmp_path: Path
) -> None:
    store, empty = tmp_path / "trials.db", tmp_path / "empty"
    status, said = interrupted("run", study, "--store", store, "--no-html", cache=empty, at="debian:6.1: ")
    assert status == 130, said
    assert "Traceback" not in said
    assert list((empty / "kernels").glob("work/*")) == list((empty / "kernels").glob("names/*")) == []
    check_that_it_goes_on(study, store, run_cache, before=())


@pytest.mark.nightly
def test_a_disk_too_full_for_a_snapshot_is_named_and_the_run_goes_on_elsewhere(
    study: Path, run_cache: Path, tmp_path: Path
) -> None:
    """The disk is a tmpfs of 8 MiB, in user and mount namespaces of its own."""
    small, store = tmp_path / "small", tmp_path / "trials.db"
    small.mkdir()
    mount = 'mount -t tmpfs -o size=8m tmpfs "$0" && ln -s "$1" "$0/kernels" && shift'
    script = f'{mount} && "$@"; status=$?; find "$0"; exit $status'
    command = ("unshare", "--map-root-user", "--mount", "sh", "-c", script, small)
    run = (KTRIAL, "run", study, "--store", store, "--no-html")
    done = subprocess.run(
        (*command, cache_directory() / "kernels", *run),
        env=environment(small),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr.startswith(("unshare", "mount")):
        # Containers and hardened systems forbid user namespaces; there is no other way to a small disk.
        pytest.skip(f"no small disk can be made here: {done.stderr.strip()}")
    assert done.returncode == 1, done.stderr
    assert f"cannot write the snapshot below {small}/snapshots: No space left on device" in done.stderr
    assert "hint: free about" in done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith((".new", "/ram"))] == []
    assert stored(store) == ()
    check_that_it_goes_on(study, store, run_cache, before=())
