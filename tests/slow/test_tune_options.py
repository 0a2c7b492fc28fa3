"""A search over an option of the kernel's build, for real: linux-source-6.1, ktrial's guests, exact mode.

Kernels and trees are the user's own cache's, so that what was built once is not built again.
"""

from pathlib import Path

import pytest
from tests.support.real_runs import result

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(3600)]
STUDY = """\
perturbations = 2
workloads = ["fork"]
[machine]
kernel = "guest"
boot = ["slub_debug=FZ"]
[kernels.guest]
source = "debian:linux-source-6.1"
config = "guest"
[search]
knobs = ["kconfig:SLAB=y", "vm.swappiness=1,60"]
budget = 12
"""
"""Planted: SLUB checks every object that it gives and takes; SLAB knows no such parameter."""


def test_an_option_is_searched_by_building(tmp_path: Path) -> None:
    file = tmp_path / "option.toml"
    file.write_text(STUDY)
    told = result("tune", file, "--store", tmp_path / "x.db", "--no-html", "--answer", tmp_path / "answer")
    options = next(one for one in told["space"]["dimensions"] if one["name"] == "kconfig:SLAB")
    assert (options["cost"], options["default"], options["choices"]) == ("build", "n", ["n", "y"])
    assert not any(one["failure"] for one in told["observations"])
    assert told["confirmed"] == {"kconfig:SLAB": "y"}, told["answer"]
    assert told["comparisons"][0]["verdict"] == "better"
    assert (tmp_path / "answer/kernel.config").read_text() == "CONFIG_SLAB=y\n"
    again = result("tune", "revalidate", "option", "--store", tmp_path / "x.db", "--no-html")
    assert again["holds"] == "still holds"
