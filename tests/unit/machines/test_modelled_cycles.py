"""Modelled cycles: the plugin's arguments, what it wrote of them, and the metric."""

import json
from pathlib import Path
from typing import Any

import pytest

from ktrial.machines.qemu import plugin
from ktrial.machines.qemu.plugin import PluginBuild, model_arguments
from ktrial.machines.qemu.plugin_counts import Line, merge
from ktrial.model.machine import ModelCounts, ModelledMachine
from ktrial.model.profile import RegionCounts
from ktrial.model.workload import MODELLED_CYCLES, Direction, Mode
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.workloads.protocol import MarkedRegion, beside_instructions

COSTS = [500, 1, 2, 3, 4, 5, 6, 7]


def desktop() -> ModelledMachine:
    machine = machine_model("desktop", Path())
    assert machine
    return machine


def region_line(cycles: list[int]) -> Line:
    """A region as the plugin writes it: operations of 10 instructions, with these thousandths of cycles."""
    ranked = sorted(cycles)
    count = len(cycles)
    operations: dict[str, Any] = {"count": count, "sum": 10 * count, "minimum": 10, "maximum": 10}
    operations |= {"middle": [10, 10], "bytes": [0, 0], "vector": [10] * count, "byte_vector": [0] * count}
    middle = [ranked[(count - 1) // 2], ranked[count // 2]]
    line: Line = {"whole": True, "instructions": 10 * count, "marks": count}
    line |= {"strings": 0, "passes": 0, "bytes": 0, "cycles": sum(cycles)}
    line |= {"functions": [["vfs_read", "", 6, 1, 0, 0, 0, *COSTS]]}
    line |= {"pages": [[4096, 7, 4, 0, 0, 0, *COSTS]]}
    return line | {"operations": operations | {"cycles": middle, "cycle_vector": cycles}}


def read(tmp_path: Path, *lines: Line) -> RegionCounts:
    out = tmp_path / "counts"
    about = {"insn": plugin.FORMAT, "api": 1, "symbols": 1, "inline": True}
    marking = {"run": "end", "regions": len(lines)}
    written = [about, {"run": "begin"}, *lines, marking, {"end": True}]
    out.write_text("".join(f"{json.dumps(entry)}\n" for entry in written))
    (region,) = plugin.read_runs(out)
    assert region
    return region


def test_a_machine_becomes_arguments_in_thousandths_of_a_cycle() -> None:
    arguments = model_arguments(desktop())
    assert arguments["model-l1d"] == "32768:8:64"
    assert arguments["model-stlb"] == "1536:12"
    assert arguments["model-branches"] == "16:16:4096"
    assert arguments["model-levels"] == "7000:40000:242000"
    assert arguments["model-instruction"] == "250"
    assert arguments["model-stores"] == "25"
    assert arguments["model-mov-cr3"] == "100000"
    _, text = plugin.arguments(PluginBuild(Path("/p/insn-v1.so"), 1), Path("/o"), model=desktop())
    assert text.startswith("/p/insn-v1.so,out=/o,model-l1i=32768:8:64,")


def test_every_constant_reaches_the_plugin() -> None:
    plain = model_arguments(desktop())
    for name, value in desktop().cycles.model_dump().items():
        cycles = desktop().cycles.model_copy(
            update={name: value + 0.5 if name == "store_share" else value + 3}
        )
        assert model_arguments(desktop().model_copy(update={"cycles": cycles})) != plain, name


def test_replacement_and_strides_reach_the_plugin() -> None:
    l1d = desktop().l1d.model_copy(update={"replacement": "tree-plru"})
    arguments = model_arguments(desktop().model_copy(update={"l1d": l1d, "strides": 5, "sample": 9}))
    assert (arguments["model-l1d"], arguments["model-strides"]) == ("32768:8:64:tree-plru", "5")
    assert arguments["model-sample"] == "9"


def test_what_walks_read_reaches_the_plugin() -> None:
    arguments = model_arguments(desktop())
    assert (arguments["model-paging"], arguments["model-walk-level"]) == ("32:4:0", "5000")
    cycles = desktop().cycles.model_copy(update={"walk_level": None})
    arguments = model_arguments(desktop().model_copy(update={"paging": None, "cycles": cycles}))
    assert (arguments["model-paging"], arguments["model-walk-level"]) == ("none", "0")


def test_a_mitigation_costs_as_any_wrmsr_where_a_machine_does_not_say() -> None:
    names = ("spec_ctrl", "ibpb", "l1d_flush")
    cycles = desktop().cycles.model_copy(update=dict.fromkeys(names) | {"wrmsr": 90})
    arguments = model_arguments(desktop().model_copy(update={"cycles": cycles}))
    assert [arguments[f"model-{name.replace('_', '-')}"] for name in names] == ["90000"] * 3
    assert model_arguments(desktop())["model-ibpb"] == "4500000"


def test_a_level_that_is_not_there_is_a_cache_of_one_line() -> None:
    assert model_arguments(desktop().model_copy(update={"llc": None}))["model-llc"] == "64:1:64"


def test_what_the_plugin_wrote_is_read_in_cycles(tmp_path: Path) -> None:
    region = read(tmp_path, region_line([4000, 9000, 5000]))
    assert region.cycles == 18
    assert region.operations.cycles == 5
    expected = ModelCounts(
        cycles=0.5,
        code_misses=1,
        data_misses=2,
        second_misses=3,
        last_misses=4,
        translation_misses=5,
        walks=6,
        mispredictions=7,
    )
    assert region.functions[0].modelled == expected
    assert region.pages[0].modelled == expected
    assert region.functions[0].caches is None


def test_regions_of_one_run_are_made_one(tmp_path: Path) -> None:
    region = read(tmp_path, region_line([4000, 9000]), region_line([1000]))
    assert region.cycles == 14
    assert region.operations.cycles == 4
    assert region.functions[0].modelled
    assert region.functions[0].modelled.walks == 12


def test_a_region_without_operations_is_one(tmp_path: Path) -> None:
    line = region_line([6000])
    line["operations"] |= {"count": 0, "sum": 0, "middle": [0, 0], "vector": [], "byte_vector": []}
    line["operations"] |= {"cycles": [0, 0], "cycle_vector": []}
    assert merge([line])["operations"]["cycles"] == [6000, 6000]


def test_rows_with_caches_and_a_model_are_told_apart(tmp_path: Path) -> None:
    line = region_line([6000])
    line["functions"] = [["vfs_read", "", 10, 1, 0, 0, 0, 11, 12, 13, 14, 15, *COSTS]]
    (function,) = read(tmp_path, line).functions
    assert function.caches
    assert (function.caches.loads, function.caches.last_misses) == (11, 15)
    assert function.modelled
    assert function.modelled.mispredictions == 7


def without_a_model() -> Line:
    line = region_line([6000])
    del line["cycles"], line["operations"]["cycles"], line["operations"]["cycle_vector"]
    line["functions"] = [row[: -len(COSTS)] for row in line["functions"]]
    line["pages"] = [row[: -len(COSTS)] for row in line["pages"]]
    return line


def test_without_a_model_nothing_is_told_of_cycles(tmp_path: Path) -> None:
    region = read(tmp_path, without_a_model())
    assert "modelled" not in region.functions[0].model_dump()
    assert "cycles" not in region.model_dump()
    assert [sample.metric for sample in beside_instructions("x", MarkedRegion(region, 1))] == ["string-bytes"]


@pytest.mark.parametrize(("bundle", "value"), [(1, 5.0), (10, 0.5)])
def test_modelled_cycles_are_a_metric_an_operation(tmp_path: Path, bundle: int, value: float) -> None:
    region = read(tmp_path, region_line([4000, 9000, 5000]))
    _, cycles = beside_instructions("x", MarkedRegion(region, 3 * bundle))
    assert (cycles.metric, cycles.unit) == (MODELLED_CYCLES.name, "cycles")
    assert (cycles.direction, cycles.mode) == (Direction.LOWER, Mode.EXACT_PLUGIN)
    assert (cycles.value, cycles.operations) == (value, 3)
    assert cycles.mean == pytest.approx(6 / bundle)
