"""Code that the kernel made while it ran: by units, with the names that the kernel gave."""

import base64
import json
from pathlib import Path

from tests.support.places import PLUGIN_COUNTS

from ktrial.machines.qemu import plugin
from ktrial.machines.qemu.plugin_counts import GeneratedCode, code_in, code_told, listed, with_ksymbols
from ktrial.model.profile import RegionCounts
from ktrial.target import Collect, Push, Read, Run, Start, StepResult, Stop

HEADER, REGION, END = PLUGIN_COUNTS.read_text().splitlines()
AT = 0xFFFF_FFFF_C020_1000
PIECES = (
    GeneratedCode(AT + 0x44, 0x90, "[bpf: filter]"),
    GeneratedCode(AT + 0x1000, 0x80, "[generated: ftrace]"),
)
OF_UNITS = {0x40: 300, 0x80: 20, 0xC0: 1, 0x100: 5, 0x1040: 7}
"""Where units of generated code are → what each ran."""
KSYMBOLS = (
    "ffffffffc0201044 90 bpf bpf_prog_0123456789abcdef_filter\nffffffffc0202000 80 ool ftrace_trampoline\n"
)


def counted(directory: Path, units: dict[int, int], pieces: tuple[GeneratedCode, ...]) -> dict[str, int]:
    """What ran in generated code, by name, of the golden region with these units in it."""
    region = json.loads(REGION)
    region["functions"] += [
        ["[generated]", f"{AT + unit:x}", own_value, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        for unit, own_value in units.items()
    ]
    path = directory / "counts"
    path.write_text("\n".join([HEADER, '{"run":"begin"}', json.dumps(region), END, ""]))
    (run,) = plugin.read_runs(path, lambda: pieces)
    assert run is not None
    (golden,) = plugin.read(PLUGIN_COUNTS).regions
    assert [function for function in run.functions if function in golden.functions] == [*golden.functions]
    assert calls_of(run) == calls_of(golden)
    of_pieces = [function for function in run.functions if function not in golden.functions]
    assert {of_piece.module for of_piece in of_pieces} <= {""}
    return {of_piece.symbol: of_piece.instructions for of_piece in of_pieces}


def calls_of(region: RegionCounts) -> list[tuple[int, str, int]]:
    """Each place's caller, function and instructions."""
    assert region.nodes is not None
    names = {-1: "", **{place: function.symbol for place, function in enumerate(region.functions)}}
    return [(node.parent, names[node.function], node.instructions) for node in region.nodes]


def test_units_of_one_piece_are_one_row_under_its_name(tmp_path: Path) -> None:
    expected = {"[bpf: filter]": 321, "[generated]": 5, "[generated: ftrace]": 7}
    assert counted(tmp_path, OF_UNITS, PIECES) == expected


def test_without_names_it_is_generated_and_below_where_it_can_be_unknown(tmp_path: Path) -> None:
    assert counted(tmp_path, OF_UNITS, ()) == {"[generated]": 333}
    # A kernel that has moved itself: KASLR's places end at 0xffffffffc0000000.
    assert counted(tmp_path, {-0x1000_0000: 4}, ()) == {"[unknown]": 4}


def test_what_several_had_in_turn_has_the_names_of_all(tmp_path: Path) -> None:
    also = GeneratedCode(AT + 0x40, 0x40, "[bpf: later]")
    expected = {"[bpf: filter] or [bpf: later]": 300, "[bpf: filter]": 21}
    assert (
        counted(tmp_path, {unit: OF_UNITS[unit] for unit in (0x40, 0x80, 0xC0)}, (*PIECES, also)) == expected
    )


def test_nobody_is_asked_where_no_generated_code_ran(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text("\n".join([HEADER, '{"run":"begin"}', REGION, END, ""]))

    def asked() -> tuple[GeneratedCode, ...]:
        raise AssertionError("the guest would run again")

    assert plugin.read_runs(path, asked) == plugin.read_runs(path)


def test_what_the_kernel_told_is_read_and_nothing_of_what_may_lack_a_part() -> None:
    assert code_in(f"{KSYMBOLS}end\n") == PIECES
    assert code_in(KSYMBOLS) == ()
    kallsyms = "ffffffffc0300000 t ftrace_trampoline\t[__builtin__ftrace]\nffffffffc0400000 t it\t[ext4]\n"
    assert listed(kallsyms) == (GeneratedCode(0xFFFF_FFFF_C030_0000, 4096, "[generated: ftrace]"),)


def test_what_kprobes_made_has_one_name_whoever_tells_it() -> None:
    """Optimised ones: a page for the detours, which is in the list and told as it comes."""
    address = 0xFFFF_FFFF_C020_1000
    came = code_in(f"{address:x} 1000 ool kprobe_optinsn_page\nend\n")
    assert came == listed(f"{address:x} t kprobe_optinsn_page\t[__builtin__kprobes]\n")
    assert [entry.name for entry in came] == ["[generated: kprobes]"]


def test_each_program_is_watched_and_then_asked_for() -> None:
    steps = (Start(name="s", argv=("/s",)), Read(path="/r"), Run(argv=("/p", "-x")), Stop(name="s"))
    push, start, read, run, stop, *collects, _, listing = with_ksymbols(steps)
    assert isinstance(push, Push)
    assert isinstance(start, Start)
    assert isinstance(run, Run)
    assert (start.argv[0], run.argv[0], push.mode) == (push.path, push.path, 0o755)
    assert (start.argv[2:], run.argv[2:], read, stop) == (("/s",), ("/p", "-x"), steps[1], steps[3])
    asked_for = [step.path for step in collects if isinstance(step, Collect)]
    assert asked_for == [start.argv[1], run.argv[1]]
    assert listing == Run(argv=(push.path, "--listed"))


def test_what_one_program_cannot_tell_leaves_what_the_others_told() -> None:
    texts = ("", f"{KSYMBOLS}end\n")
    results = [
        StepResult(step=number, do="collect", content=base64.b64encode(text.encode()).decode())
        for number, text in enumerate(texts)
    ]
    listing = "ffffffffc0300000 t kprobe_insn_page\t[__builtin__kprobes]\n"
    results.append(StepResult(step=2, do="run", stdout=listing))
    assert [piece.name for piece in code_told(tuple(results))] == [
        "[bpf: filter]",
        "[generated: ftrace]",
        "[generated: kprobes]",
    ]
