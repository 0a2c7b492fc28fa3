"""The recordings themselves: they are of the guest programs that are published, and of snapshots."""

from pathlib import Path

import pytest
from tests.support.golden_guests import GOLDEN, RECORDINGS
from tests.support.places import ROOT
from tests.support.recorded_guests import Recording

from ktrial.machines.qemu import plugin
from ktrial.model.profile import RegionCounts
from ktrial.model.workload import CountedBy

READY, RESULT = "KTF1\x01", "KTF1\x02"
"""How frames begin."""


def test_guests_were_recorded_with_the_published_programs() -> None:
    """After a change in crates/: crates/record-digests, then python -m tests.support.record_guests."""
    lines = (ROOT / "crates" / "SHA256SUMS").read_text().splitlines()
    digests = {name: digest for digest, name in (line.split() for line in lines if not line.startswith("#"))}
    for name in GOLDEN:
        made_with = Recording.load(RECORDINGS / f"{name}.json.xz").made_with
        programs = {part: made for part, made in made_with.items() if part in digests}
        assert programs == {part: digests[part] for part in programs}, name
        assert {"agent", "work", "lockstep.so"} <= set(programs)


@pytest.mark.parametrize("name", GOLDEN)
def test_no_guest_was_booted_for_want_of_its_snapshot(name: str) -> None:
    """QEMU that cannot load a snapshot boots instead, and says so where nobody looks who records."""
    runs = Recording.load(RECORDINGS / f"{name}.json.xz").runs
    assert [run.asked for run in runs if READY in run.frames and RESULT in run.frames] == []


@pytest.mark.parametrize(
    "name", [name for name, golden in GOLDEN.items() if golden.count is CountedBy.PLUGIN]
)
def test_the_tree_of_calls_has_of_each_function_what_the_table_has(name: str, tmp_path: Path) -> None:
    """Jumps into the middle of a function, and interrupts' stubs, are no other function's."""
    counts = tmp_path / "counts"
    followed = 0
    for run in Recording.load(RECORDINGS / f"{name}.json.xz").runs:
        counts.write_text(run.counts)
        for region in plugin.read_runs(counts) if run.counts else ():
            if region and region.nodes:
                assert by_function_in_tree(region) == by_function(region)
                assert (region.nodes[0].instructions, region.nodes[1].instructions) == (0, region.program)
                assert sum(task.kernel for task in region.tasks) == region.kernel
                assert sum(task.program for task in region.tasks) == region.program
                followed += 1
    assert followed


Counts = dict[tuple[str, str], tuple[int, int]]
"""Name and module → own instructions, and how often it was entered."""


def by_function(region: RegionCounts) -> Counts:
    return {(each.symbol, each.module): (each.instructions, each.entered) for each in region.functions}


def by_function_in_tree(region: RegionCounts) -> Counts:
    own: Counts = {(each.symbol, each.module): (0, 0) for each in region.functions}
    for node in (region.nodes or ())[2:]:
        function = region.functions[node.function]
        instructions, entered = own[function.symbol, function.module]
        own[function.symbol, function.module] = (instructions + node.instructions, entered + node.entered)
    return own
