"""Searches in exact mode on real kernels: version, boot parameter and knob at once; what undoes an answer."""

from pathlib import Path

import pytest
from tests.support.guests import boot_with_programs, host_program, perform
from tests.support.real_runs import result
from tests.support.tuning import a_search

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import default_resources
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.optimize.deployment_files import Answer, texts
from ktrial.optimize.search_space import search_of, with_space
from ktrial.target import Read, Run, Write

pytestmark = pytest.mark.guest
STUDY = """\
perturbations = 2
workloads = ["fork"]
[machine]
kernel = "debian:6.12"
memory = "128M"
boot = ["slub_debug=FZ"]
[search]
knobs = ["kernel=debian:6.1", "boot:slub_debug=-", "vm.vfs_cache_pressure=1,100"]
budget = 14
"""
"""Planted: every object of the slab allocators is checked, which the boot parameter ends. And `fork` takes an
eighth less in 6.1 than in 6.12."""
BEST = {"boot:slub_debug": "-", "kernel": "debian:6.1"}


@pytest.mark.nightly
def test_what_matters_of_kernel_boot_parameter_and_knob_is_found(tmp_path: Path) -> None:
    for name in ("debian:6.1", "debian:6.12"):
        kernel_registry.add(name)
    file, store = tmp_path / "three.toml", tmp_path / "three.db"
    file.write_text(STUDY)
    where = ("--store", store)
    told = result("tune", file, *where, "--no-html", "--answer", tmp_path / "answer")
    assert told["confirmed"] == BEST, told["answer"]
    assert [one["cost"] for one in told["space"]["dimensions"]] == ["run-time", "boot", "kernel"]
    assert told["comparisons"][0]["verdict"] == "better"
    assert told["comparisons"][0]["ratio"] < 0.8
    assert len(told["observations"]) <= 14
    assert not any(one["failure"] for one in told["observations"])
    assert (tmp_path / "answer/kernel").read_text() == "debian:6.1\n"
    assert (tmp_path / "answer/kernel-command-line").read_text() == "slub_debug=-\n"
    assert '"release": "6.1.' in (tmp_path / "answer/answer.json").read_text()
    again = result("show", "three", *where)
    assert (again["confirmed"], again["comparisons"]) == (BEST, told["comparisons"])


LIMITS = {"vm.dirty_bytes": "8388608", "vm.overcommit_kbytes": "1048576"}
"""Both are 0: the ratio in their place holds. The first takes no 0, the second makes the ratio 0 with it."""
RATIOS = ("vm.dirty_ratio", "vm.overcommit_ratio")


def file_of(name: str) -> str:
    return f"/proc/sys/{name.replace('.', '/')}"


def test_undoing_a_limit_in_another_unit_brings_its_ratio_back() -> None:
    machine, resources = ExactMachine(), default_resources()
    machine.check()
    knobs = (f"{name}=0,{value}" for name, value in LIMITS.items())
    _, space = search_of(with_space(a_search(*knobs), machine, resources, Observer()))
    back = {one.name: one.back for one in space.dimensions}
    assert back == {
        "vm.dirty_bytes": ("vm.dirty_ratio", "20"),
        "vm.overcommit_kbytes": ("vm.overcommit_ratio", "50"),
    }
    answer = Answer(
        study="limits",
        configuration=LIMITS,
        in_force=LIMITS,
        defaults=dict.fromkeys(LIMITS, "0"),
        effects={},
        gain="",
        paths={name: file_of(name) for name in LIMITS},
        back={name: (file_of(other[0]), other[1]) for name, other in back.items() if other},
    )
    undo = "\n".join(line for line in texts(answer)["undo.sh"].splitlines() if line.startswith("printf"))
    boot, shell = boot_with_programs(kernel_registry.add("debian:6.12")), host_program("sh")[1]
    names = (*RATIOS, *LIMITS)
    reads = tuple(Read(path=file_of(name)) for name in names)
    writes = tuple(Write(path=file_of(name), value=value) for name, value in LIMITS.items())
    results = perform(machine, boot, *writes, *reads, Run(argv=(shell, "-c", undo)), *reads)
    set_, put_back = results[2:6], results[7:]
    assert results[6].exit == 0, results[6].stderr
    assert [one.content.strip() for one in set_] == ["0", "0", *LIMITS.values()]
    assert [one.content.strip() for one in put_back] == ["20", "50", "0", "0"]
