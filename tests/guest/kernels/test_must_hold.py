"""What must hold of whole studies: the same numbers anywhere, on five years of kernels, four at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests import ALL, busy_cores, perform, work
from tests.support.places import ROOT, STUDIES
from tests.support.real_runs import cache_without_snapshots, measured, result
from tests.support.recorded_studies import differing
from tests.support.runs_of_tests import by_night, skip_outdated

from ktrial import workloads
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import Boot

pytestmark = pytest.mark.guest

PICTURED = ROOT / "docs" / "pictures" / "quick.json"
REDRAW = (
    "ktrial run studies/quick.toml --json > quick-result.json"
    " && python docs/pictures/draw_pictures.py quick-result.json"
)
AS_IN_THE_FILE = 3
"""Perturbations of studies/quick.toml."""


@pytest.mark.nightly
@pytest.mark.parametrize("perturbations", [1, AS_IN_THE_FILE])
def test_the_quick_study_repeats_itself_to_the_last_digit_on_a_busy_machine(
    perturbations: int, tmp_path: Path
) -> None:
    """The store is new each time, and the second time the snapshots are.

    For each change tests/guest/workloads repeats every workload on both kernels, and tests/guest/machines a
    snapshot with all cores busy.
    """
    study = ("run", STUDIES / "quick.toml", "--perturbations", str(perturbations), "--no-html", "--store")
    first = result(*study, tmp_path / "idle.db")
    new = cache_without_snapshots(tmp_path / "cache", "debian:6.1", "debian:6.12")
    with busy_cores():
        second = result(*study, tmp_path / "busy.db", cache=new)
    main, moved = by_metric(first["comparisons"])
    assert len(main) == 6
    assert {one["mode"] for one in first["comparisons"]} == {"exact-plugin"}
    # A system call and a computation use no string instruction.
    assert {one["workload"] for one in moved} == {one["workload"] for one in main} - {"syscall", "nqueens"}
    assert {trial["outcome"] for trial in first["trials"]} == {"completed"}
    assert len(first["trials"]) == first["planned"] == 2 * perturbations
    assert all(trial["samples"] and trial["counters"] for trial in first["trials"])
    assert list(differing(first["comparisons"], second["comparisons"])) == []
    assert list(differing(measured(first["trials"]), measured(second["trials"]))) == []
    if perturbations == AS_IN_THE_FILE:
        compare_with_the_picture(first, main)


def compare_with_the_picture(result: dict[str, Any], main: list[dict[str, Any]]) -> None:
    here = [side["release"] for one in result["kernels"] for side in (one["before"], one["after"])]
    skip_other_kernels(here)
    assert list(differing(json.loads(PICTURED.read_text())["comparisons"], main)) == [], PICTURED


def skip_other_kernels(here: list[str]) -> None:
    """Debian may have newer kernels of these versions: then the picture is of those that it names."""
    pictured = json.loads(PICTURED.read_text())["kernels"]
    if pictured != here:
        what = f"{PICTURED.name} is of {' and '.join(pictured)}; here are {' and '.join(here)}"
        skip_outdated(what, record=REDRAW)


def test_the_picture_is_of_the_kernels_that_are_here() -> None:
    """For each change, since it costs nothing: its numbers are measured anew nightly."""
    skip_other_kernels([kernel_registry.add(name).release for name in ("debian:6.1", "debian:6.12")])


@pytest.mark.nightly
def test_every_workload_completes_on_five_years_of_kernels(tmp_path: Path) -> None:
    """With the operations that its parameters promise."""
    study = STUDIES / "kernel-versions.toml"
    told = result("run", study, "--perturbations", "1", "--store", tmp_path / "trials.db")
    assert {trial["levels"]["kernel"]: trial["outcome"] for trial in told["trials"]} == dict.fromkeys(
        ALL, "completed"
    )
    promised = {name: operations(name) for name in workloads.DEFAULT}
    for trial in told["trials"]:
        main, _ = by_metric(trial["samples"])
        counted = {sample["workload"]: sample["operations"] for sample in main}
        assert counted == promised, trial["treatment"]
    assert {(one["workload"], one["treatment"]) for one in told["comparisons"]} == {
        (name, kernel) for name in workloads.DEFAULT for kernel in ALL[1:]
    }
    assert {one["verdict"] for one in told["comparisons"]} <= {"better", "worse", "equivalent"}


def by_metric(comparisons: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Instructions, and the bytes of string instructions."""
    moved = [one for one in comparisons if one["metric"] == "string-bytes"]
    return [one for one in comparisons if one not in moved], moved


def operations(name: str) -> int:
    """How many a workload promises: so many in each of its passes."""
    parameters = {one.name: one.default for one in workloads.descriptions()[name].parameters}
    return int(parameters["operations"]) * int(parameters["passes"])


def test_trials_of_which_four_run_at_once_are_one_trial() -> None:
    machine = ExactMachine()
    boot = Boot(kernel=kernel_registry.add("debian:6.12"))
    perturbed = {"layout_seed": 20_240_101, "start_offset_ns": 1_234_567}
    steps = tuple(
        work(name, "--operations", "7").model_copy(update=perturbed) for name in ("fork", "exec", "pipe")
    )
    machine.prepare(boot, print)
    with ThreadPoolExecutor(4) as pool:
        trials = list(pool.map(lambda _number: perform(machine, boot, *steps), range(by_night(12, 5))))
    assert [result.exit for result in trials[0]] == [0, 0, 0]
    assert all(result.watched for result in trials[0])
    assert [number for number, trial in enumerate(trials) if trial != trials[0]] == []
