"""Ten changes of one function each, in ten files: whoever executes one of them is among the chosen workloads.

Who executes what is read from the profiles of all built-in workloads on the base, which the command left in
the store.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.series import Planted, run

from ktrial.model.profile import without_numbers
from ktrial.store.store import open_store

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(6 * 3600)]
CHANGES = {
    "mm/mprotect.c": "change_protection",
    "mm/mlock.c": "do_mlock",
    "fs/stat.c": "vfs_statx",
    "fs/namei.c": "do_unlinkat",
    "fs/locks.c": "fcntl_setlk",
    "kernel/exit.c": "do_exit",
    "kernel/groups.c": "groups_sort",
    "kernel/futex/waitwake.c": "futex_wake",
    "net/unix/af_unix.c": "unix_stream_sendmsg",
    "net/ipv4/udp.c": "udp_sendmsg",
}
NOPS = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("selection")


@pytest.fixture(scope="module")
def told(place: Path) -> dict[str, Any]:
    """What the command says of the ten, as JSON; it chooses the workloads by itself."""
    (place / "q").mkdir()
    planted = Planted(place / "q")
    for path, function in CHANGES.items():
        planted.slower(path, function, NOPS)
    planted.write()
    done = run(place, "--quilt", "q", "--perturbations", "1", "--json")
    assert done.returncode in {0, 1}, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def executing(place: Path, told: dict[str, Any]) -> Mapping[str, set[str]]:
    """Function → the built-in workloads that execute it on the base."""
    assert told["workloads"]
    workloads_of: dict[str, set[str]] = {name: set() for name in CHANGES.values()}
    with open_store(str(place / "x.db")) as store:
        for study in store.studies():
            if study.study.name != "series-coverage":
                continue
            for trial in store.trials(study.id):
                for use in study.study.workloads:
                    profile = store.profile(study.id, trial.planned.key, use.label)
                    assert profile, use.label
                    for one in profile.region.functions:
                        name = without_numbers(one.symbol)
                        if one.instructions and not one.module and name in workloads_of:
                            workloads_of[name].add(use.label)
    return workloads_of


@pytest.mark.parametrize("function", CHANGES.values())
def test_whoever_executes_a_changed_function_is_asked_and_where_nobody_does_the_report_says_so(
    function: str, told: dict[str, Any], executing: Mapping[str, set[str]]
) -> None:
    assert function in told["functions"]
    if executing[function]:
        assert executing[function] & set(told["workloads"]), executing[function]
        assert function not in told["not_executed"]
    else:
        assert function in told["not_executed"]
        assert function in told["exercised"]


@pytest.mark.parametrize("function", CHANGES.values())
def test_a_patch_costs_where_it_is_executed_and_nowhere_else(
    function: str, told: dict[str, Any], executing: Mapping[str, set[str]]
) -> None:
    (patch,) = [one for one in told["patches"] if one["subject"] == f"planted: {function}"]
    assert patch["state"] == "built"
    charged = {
        cell["workload"]
        for cell in patch["cells"]
        if any(row["changed"] and function in row["function"] for row in cell["functions"])
    }
    assert charged == executing[function] & set(told["workloads"])


def test_the_ten_are_of_both_kinds(executing: Mapping[str, set[str]]) -> None:
    assert any(executing.values())
    assert not all(executing.values())
    assert len({path.partition("/")[0] for path in CHANGES}) == 4
