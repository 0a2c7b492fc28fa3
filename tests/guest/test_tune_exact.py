"""A search over a kernel's version, a boot parameter and a knob together, in exact mode on real kernels."""

from pathlib import Path

import pytest
from tests.guest.real_runs import result

from ktrial import kernels

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]
STUDY = """\
perturbations = 2
workloads = ["fork"]
[machine]
kernel = "debian:6.12"
memory = "128M"
boot = ["slub_debug=FZ"]
[search]
knobs = ["kernel=debian:6.1", "boot:slub_debug=-", "vm.swappiness=1,60"]
budget = 14
"""
"""Planted: every object of the slab allocators is checked, which the boot parameter ends. And `fork` takes an
eighth less in 6.1 than in 6.12."""
BEST = {"boot:slub_debug": "-", "kernel": "debian:6.1"}


def test_what_matters_of_kernel_boot_parameter_and_knob_is_found(tmp_path: Path) -> None:
    for name in ("debian:6.1", "debian:6.12"):
        kernels.add(name)
    file, store = tmp_path / "three.toml", tmp_path / "three.db"
    file.write_text(STUDY)
    where = ("--store", store)
    found = result("tune", file, *where, "--no-html", "--answer", tmp_path / "answer")
    assert found["confirmed"] == BEST, found["answer"]
    assert [one["cost"] for one in found["space"]["dimensions"]] == ["run-time", "boot", "kernel"]
    assert found["comparisons"][0]["verdict"] == "better"
    assert found["comparisons"][0]["ratio"] < 0.8
    assert len(found["observations"]) <= 14
    assert not any(one["failure"] for one in found["observations"])
    assert (tmp_path / "answer/kernel").read_text() == "debian:6.1\n"
    assert (tmp_path / "answer/kernel-command-line").read_text() == "slub_debug=-\n"
    assert '"release": "6.1.' in (tmp_path / "answer/answer.json").read_text()
    again = result("show", "three", *where)
    assert (again["confirmed"], again["comparisons"]) == (BEST, found["comparisons"])
