"""The QEMU plugin's other half: which build, which arguments, what it wrote.

plugin_counts.jsonl is what the plugin itself wrote: QEMU 7.2, Debian's 6.1 kernel, 20 times getppid, with
calls, caches and each operation's count.
"""

import json
import zlib
from pathlib import Path

import pytest
from tests.support.places import PLUGIN_COUNTS as GOLDEN

from ktrial.machines.errors import PluginCountsUnreadable
from ktrial.machines.qemu import plugin
from ktrial.machines.qemu.plugin import CacheShape, CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.qemu.plugin_counts import Line, by_program, merge, told_apart
from ktrial.machines.qemu.program import Version
from ktrial.model.profile import (
    CacheCounts,
    CallNode,
    CycleModel,
    PageCount,
    RegionCounts,
    StringCounts,
    inclusive_counts,
)


@pytest.fixture(scope="module")
def region() -> RegionCounts:
    (region,) = plugin.read(GOLDEN).regions
    return region


class TestBuilds:
    @pytest.mark.parametrize(
        ("version", "api"),
        [
            ((7, 2, 0), 1),
            ((8, 2, 3), 1),
            ((8, 2, 4), 2),
            ((9, 0, 2), 2),
            ((9, 1, 0), 3),
            ((9, 2, 0), 4),
            ((10, 0, 13), 4),
            ((10, 2, 0), 4),
            ((11, 0, 0), 7),
            ((11, 1, 2), 7),
        ],
    )
    def test_each_qemu_has_its_build(self, version: Version, api: int, tmp_path: Path) -> None:
        build = tmp_path / f"insn-v{api}.so"
        build.touch()
        assert plugin.find(version, tmp_path) == PluginBuild(build, api)

    def test_an_old_qemu_has_none(self, tmp_path: Path) -> None:
        installed = plugin.find((6, 2, 0), tmp_path)
        assert installed == NoPlugin("QEMU 6.2.0 is too old for the plugin, which needs 7.2.0 or later")

    def test_a_build_that_is_missing_is_named(self, tmp_path: Path) -> None:
        installed = plugin.find((10, 0, 0), tmp_path)
        assert isinstance(installed, NoPlugin)
        assert str(tmp_path / "insn-v4.so") in installed.reason

    def test_every_build_comes_with_ktrial(self) -> None:
        for version in [(7, 2, 0), (8, 2, 4), (9, 1, 0), (9, 2, 0), (11, 0, 0)]:
            assert isinstance(plugin.find(version), PluginBuild)


class TestArguments:
    BUILD = PluginBuild(Path("/p/insn-v1.so"), 1)

    def test_the_least(self) -> None:
        assert plugin.arguments(self.BUILD, Path("/o")) == ("-plugin", "/p/insn-v1.so,out=/o")

    def test_everything(self) -> None:
        shapes = CacheShapes(l1d=CacheShape(48 << 10, 12))
        _, text = plugin.arguments(self.BUILD, Path("/o"), Path("/s"), vector=True, calls=True, caches=shapes)
        assert text == (
            "/p/insn-v1.so,out=/o,symbols=/s,vector=on,calls=on,"
            "l1i=32768:8:64,l1d=49152:12:64,llc=8388608:16:64"
        )

    def test_commas_are_doubled(self) -> None:
        assert plugin.arguments(self.BUILD, Path("/a,b"))[1] == "/p/insn-v1.so,out=/a,,b"


class TestReading:
    def test_about_the_plugin(self) -> None:
        counts = plugin.read(GOLDEN)
        assert (counts.api, counts.symbols, counts.inline, counts.complete) == (1, 46452, True, True)

    def test_the_parts_sum_to_the_whole(self, region: RegionCounts) -> None:
        assert region.whole
        assert region.kernel + region.program == region.instructions == 7770
        assert region.nodes is not None
        assert sum(node.instructions for node in region.nodes) == region.instructions

    def test_symbols_that_fit_leave_nothing_unknown(self, region: RegionCounts) -> None:
        assert region.unknown == 0
        first, *remainder = region.functions
        lost = first.model_copy(update={"symbol": "[unknown]"})
        assert region.model_copy(update={"functions": (lost, *remainder)}).unknown == first.instructions

    def test_the_guest_s_clock_counts_marks(self, region: RegionCounts) -> None:
        assert region.clock == 7790

    def test_operations(self, region: RegionCounts) -> None:
        operations = region.operations
        assert (operations.count, operations.minimum, operations.median) == (20, 388, 388)
        assert operations.vector is not None
        assert (len(operations.vector), sum(operations.vector)) == (20, operations.total)
        assert operations.mean == operations.total / 20

    def test_functions(self, region: RegionCounts) -> None:
        functions = {function.symbol: function for function in region.functions}
        assert functions["__x64_sys_getppid"].entered == 20
        assert functions["do_syscall_64"].instructions == 460
        assert functions["do_syscall_64"].inclusive == 5300
        assert functions["entry_SYSCALL_64"].inclusive == region.kernel
        assert functions["entry_SYSCALL_64"].caches == CacheCounts(loads=20, stores=20)

    @pytest.mark.parametrize(
        ("symbol", "module", "shown"),
        [
            ("ftrace_trampoline", "__builtin__ftrace", ("[generated: ftrace]", "")),
            ("kprobe_insn_page", "__builtin__kprobes", ("[generated: kprobes]", "")),
            ("bpf_prog_6deef7357e7b4530_sd_fw_egress", "bpf", ("[bpf: sd_fw_egress]", "")),
            ("bpf_prog_6deef7357e7b4530", "bpf", ("[bpf: bpf_prog_6deef7357e7b4530]", "")),
            ("bpf_trampoline_6442536467", "bpf", ("[bpf: bpf_trampoline_6442536467]", "")),
            ("bpf_prog_run", "", ("bpf_prog_run", "")),
            ("ext4_read", "ext4", ("ext4_read", "ext4")),
        ],
    )
    def test_code_that_the_kernel_made_is_named_for_what_it_is(
        self, symbol: str, module: str, shown: tuple[str, str], region: RegionCounts, tmp_path: Path
    ) -> None:
        first, line, end = GOLDEN.read_text().splitlines()
        counts = json.loads(line)
        counts["functions"][0][:2] = [symbol, module]
        path = tmp_path / "counts"
        path.write_text("\n".join([first, json.dumps(counts), end, ""]))
        (read,) = plugin.read(path).regions
        assert shown in [(function.symbol, function.module) for function in read.functions]
        assert read.instructions == region.instructions

    def test_tasks(self, region: RegionCounts) -> None:
        (task,) = region.tasks
        assert (task.kernel, task.program) == (region.kernel, region.program)

    def test_a_qemu_that_was_killed_leaves_its_finished_regions(self, tmp_path: Path) -> None:
        path = tmp_path / "counts"
        path.write_text(GOLDEN.read_text().removesuffix('{"end":true}\n') + '{"whole":tr')
        counts = plugin.read(path)
        assert (counts.complete, len(counts.regions)) == (False, 1)


class TestBadFiles:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "does not begin with format 2"),
            ('{"insn":1}\n', "does not begin with format 2"),
            ("[]\n", "line 1: it is not an object"),
            ('{"insn":2,"api":1,"symbols":0,"inline":true}\nnonsense\n', "line 2: Expecting value"),
            (
                '{"insn":2,"api":1,"symbols":0,"inline":true}\n{}\n',
                "are not as they should be: KeyError",
            ),
            ('{"insn":2}\n', "are not as they should be: KeyError"),
        ],
    )
    def test_are_named_with_their_line(self, text: str, message: str, tmp_path: Path) -> None:
        path = tmp_path / "counts"
        path.write_text(text)
        with pytest.raises(PluginCountsUnreadable, match=message) as caught:
            plugin.read(path)
        assert str(path) in caught.value.message

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(PluginCountsUnreadable, match="No such file"):
            plugin.read(tmp_path / "none")

    def test_a_tree_whose_callers_come_later(self, tmp_path: Path) -> None:
        first, region, end = GOLDEN.read_text().splitlines()
        broken = json.loads(region)
        broken["tree"][2][0] = 5
        path = tmp_path / "counts"
        path.write_text("\n".join([first, json.dumps(broken), end, ""]))
        with pytest.raises(PluginCountsUnreadable, match="node 2 of the tree"):
            plugin.read(path)


HEADER, REGION, END = GOLDEN.read_text().splitlines()
NEXT_RUN = '{"run": "begin"}'


def wrote(directory: Path, *regions: str) -> Path:
    path = directory / "counts"
    path.write_text("\n".join([HEADER, *regions, END, ""]))
    return path


class TestRuns:
    """The golden region twice: as if a workload had made two passes."""

    @pytest.fixture
    def twice(self, tmp_path: Path) -> Path:
        return wrote(tmp_path, NEXT_RUN, REGION, REGION)

    def test_regions_of_one_run_are_summed(self, twice: Path, region: RegionCounts) -> None:
        (run,) = plugin.read_runs(twice)
        assert run is not None
        assert (run.instructions, run.clock) == (2 * region.instructions, 2 * region.clock)
        assert run.operations.vector == 2 * (region.operations.vector or ())
        assert run.operations.median == region.operations.median
        for function, both in zip(region.functions, run.functions, strict=True):
            assert (both.symbol, both.instructions) == (function.symbol, 2 * function.instructions)
            assert (both.inclusive, both.caches is None) == (2 * (function.inclusive or 0), False)
        assert run.nodes is not None
        assert region.nodes is not None
        assert [node.instructions for node in run.nodes] == [2 * node.instructions for node in region.nodes]

    def test_runs_are_told_apart_by_what_the_agent_marks_before_each(
        self, tmp_path: Path, region: RegionCounts
    ) -> None:
        out = wrote(tmp_path, NEXT_RUN, REGION, NEXT_RUN, NEXT_RUN, REGION)
        assert plugin.read_runs(out) == (region, None, region)

    def test_wherever_the_end_is_cut_off_no_run_has_another_s_counts(
        self, tmp_path: Path, region: RegionCounts
    ) -> None:
        complete = wrote(tmp_path, NEXT_RUN, REGION, NEXT_RUN, REGION).read_bytes()
        out = tmp_path / "cut"
        ends_of_lines = [number + 1 for number, byte in enumerate(complete) if byte == ord("\n")]
        for length in ends_of_lines:
            out.write_bytes(complete[:length])
            assert all(run in (region, None) for run in plugin.read_runs(out))
        for length in set(range(len(complete))) - {0, *ends_of_lines}:
            out.write_bytes(complete[:length])
            with pytest.raises(PluginCountsUnreadable, match="cut off"):
                plugin.read_runs(out)

    def test_what_is_wrong_with_the_marks_of_a_run_is_told(self, tmp_path: Path) -> None:
        ended = json.dumps({"run": "end", "regions": 0, "unclosed": 1})
        (run,) = plugin.read_runs(wrote(tmp_path, NEXT_RUN, ended))
        assert run is not None
        assert (run.whole, run.instructions, run.marking.unclosed) == (False, 0, 1)

    def test_a_region_in_which_no_operation_is_marked_is_one(
        self, tmp_path: Path, region: RegionCounts
    ) -> None:
        none = {"count": 0, "sum": 0, "minimum": 0, "maximum": 0, "middle": [0, 0], "bytes": [0, 0]}
        unmarked = json.dumps(json.loads(REGION) | {"operations": none})
        once, twice = plugin.read_runs(wrote(tmp_path, NEXT_RUN, unmarked, NEXT_RUN, unmarked, unmarked))
        assert once is not None
        assert twice is not None
        assert (once.operations.count, once.operations.median) == (1, region.instructions)
        assert (twice.operations.count, twice.operations.median) == (2, region.instructions)
        assert twice.operations.string_bytes == region.strings.bytes

    def test_no_run_has_no_region(self, tmp_path: Path) -> None:
        assert plugin.read_runs(wrote(tmp_path)) == ()
        assert plugin.read_runs(wrote(tmp_path, NEXT_RUN)) == (None,)

    def test_a_region_before_the_first_run_is_damage(self, tmp_path: Path) -> None:
        with pytest.raises(PluginCountsUnreadable, match="first region belongs to no run"):
            plugin.read_runs(wrote(tmp_path, REGION, NEXT_RUN))

    def test_trees_are_merged_by_the_way_in_which_functions_are_called(self) -> None:
        first: Line = {
            **dict.fromkeys(("instructions", "marks", "strings", "passes", "bytes"), 1),
            "whole": True,
            "functions": [["a", "", 1, 1, 0, 0, 0], ["b", "", 2, 1, 0, 0, 0]],
            "pages": [],
            "operations": {"count": 1, "sum": 3},
            "tasks": [[16384, 3, 0]],
            "unmatched": 1,
            "tree": [[0, -1, 0, 0], [0, -1, 4, 0], [0, 0, 1, 1], [2, 1, 2, 1]],
        }
        two = first | {
            "functions": [["b", "", 5, 1, 0, 0, 0], ["c", "m", 6, 1, 0, 0, 0], ["a", "", 7, 1, 0, 0, 0]],
            "operations": {"count": 1, "sum": 18},
            "tree": [[0, -1, 0, 0], [0, -1, 9, 0], [0, 2, 7, 1], [2, 1, 6, 1], [2, 0, 5, 1]],
        }
        merged = merge([first, two])
        assert [row[:3] for row in merged["functions"]] == [["a", "", 8], ["b", "", 7], ["c", "m", 6]]
        assert merged["tree"] == [[0, -1, 0, 0], [0, -1, 13, 0], [0, 0, 8, 2], [2, 1, 7, 2], [2, 2, 6, 1]]
        assert (merged["tasks"], merged["unmatched"]) == ([[16384, 6, 0]], 2)
        assert merged["operations"]["vector"] == [3, 18]

    def test_passes_without_each_operation_s_count_cannot_be_merged(self) -> None:
        part = {"count": 2, "sum": 4, "minimum": 2, "maximum": 2, "middle": [2, 2]}
        line: Line = {
            **dict.fromkeys(("instructions", "marks", "strings", "passes", "bytes"), 1),
            **{"whole": True, "functions": [], "pages": [], "operations": part},
        }
        with pytest.raises(ValueError, match="each one's count only"):
            merge([line, line])


SYMBOLS = """\
ffffffff81000000 T _stext
ffffffff81000000 t init_once
ffffffff81000000 t __init_once
ffffffff81000010 t init_once
ffffffff81000020 t copy.isra.0
ffffffff81000030 t copy.isra.1
ffffffff81000040 t copy.isra.1.cold
ffffffff81000050 t init_once.cold
ffffffff81000060 T vfs_read
ffffffff81000060 W x_read
ffffffff81000070 D init_once
ffffffff81000080 t free_module
ffffffff81000090 t free_module
ffffffffc0000000 t init_once\t[ext4]
"""


def test_functions_that_share_a_name_are_told_apart_by_their_addresses() -> None:
    lines = zip(SYMBOLS.splitlines(), told_apart(SYMBOLS).splitlines(), strict=True)
    names = {old.removeprefix("ffffffff"): new.partition(" t ")[2] for old, new in lines if new != old}
    assert names == {
        "81000000 t init_once": "init_once~ffffffff81000000",
        "81000000 t __init_once": "__init_once~ffffffff81000000",
        "81000010 t init_once": "init_once~ffffffff81000010",
        "81000020 t copy.isra.0": "copy.isra.0~ffffffff81000020",
        "81000030 t copy.isra.1": "copy.isra.1~ffffffff81000030",
        "81000040 t copy.isra.1.cold": "copy.isra.1~ffffffff81000030.cold",
    }


def test_what_ran_of_functions_that_share_a_name_is_one_row_with_their_addresses(tmp_path: Path) -> None:
    """As the plugin wrote it, but that two of the functions are called alike."""
    header, line, end = GOLDEN.read_text().splitlines()
    region, places = json.loads(line), (0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8100_0010)
    (plain,) = plugin.read(GOLDEN).regions
    renamed = [row[0] for row in region["functions"][:2]]
    for row, place in zip(region["functions"], places, strict=False):
        row[0] = f"init_once~{place:x}"
    path = tmp_path / "counts"
    path.write_text("\n".join([header, '{"run":"begin"}', json.dumps(region), end, ""]))
    (run,) = plugin.read_runs(path)
    assert run is not None
    before = [function for function in plain.functions if function.symbol in renamed]
    (row,) = (function for function in run.functions if function.symbol == "init_once")
    assert row.copies == tuple(zip(places, [function.instructions for function in before], strict=True))
    assert row.instructions == sum(function.instructions for function in before)
    assert [function.copies for function in run.functions if function is not row] == [()] * (
        len(plain.functions) - 2
    )


def test_a_function_that_calls_itself_is_counted_once() -> None:
    def node(parent: int, function: int, instructions: int) -> CallNode:
        return CallNode(parent=parent, function=function, instructions=instructions, entered=1)

    # Root, program; 0 calls 1, which calls 0 again; 1 is also called by nobody.
    nodes = (node(0, -1, 5), node(0, -1, 7), node(0, 0, 10), node(2, 1, 20), node(3, 0, 40), node(0, 1, 80))
    assert inclusive_counts(nodes, 3) == (70, 140, 0)


def test_cycles_are_instructions_and_what_misses_add() -> None:
    strings = StringCounts(instructions=1, passes=65, bytes=64)
    caches = CacheCounts(loads=9, stores=9, code_misses=2, data_misses=3, last_misses=1)
    model = CycleModel(instruction=2, string_byte=0.5, first_miss=10, last_miss=100)
    assert model.cycles(100, strings, caches) == 200 + 32 + 50 + 100


def test_programs_are_found_by_their_pages(tmp_path: Path) -> None:
    first, two = tmp_path / "one", tmp_path / "two"
    first.write_bytes(b"\x90" * 4096 + b"\xcc" * 100)
    two.write_bytes(b"\xc3" * 4096)
    pages = [
        PageCount(address=0x1000, checksum=zlib.crc32(b"\x90" * 4096), instructions=5),
        PageCount(address=0x2000, checksum=zlib.crc32((b"\xcc" * 100).ljust(4096, b"\0")), instructions=7),
        PageCount(address=0x1000, checksum=zlib.crc32(b"\xc3" * 4096), instructions=20),
        PageCount(address=0x9000, checksum=1, instructions=1),
    ]
    by_name = by_program(pages, {"one": first, "two": two})
    assert [(entry.program, entry.instructions) for entry in by_name] == [("two", 20), ("one", 12), ("", 1)]
