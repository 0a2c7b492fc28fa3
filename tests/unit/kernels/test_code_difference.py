"""What differs in two images, apart from where things lie. The images are small, and really linked."""

import re
from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.real_runs import run_shown

from ktrial.kernels.code_image import copies_in
from ktrial.kernels.image_difference import code_difference, same_image
from ktrial.model.kernel import CodeDifference, Kernel

WARNINGS = """asm(".pushsection .rodata, \\"a\\"; .balign 4;"
    " .globl __start___bug_table, __stop___bug_table; __start___bug_table:"
    " .long pick - .; .long slice - .; .word {first}, 0x901;"
    " .long wake - .; .long slice - .; .word {second}, 0x905;"
    " __stop___bug_table: .popsection");"""
MORE = '__attribute__((noinline)) int balance(int task) { said = "balanced"; return pick(task) << 3; }'


FURTHER = """asm(".pushsection .text; .skip 64; .popsection;"
    ".pushsection .rodata, \\"a\\"; .fill 64, 1, 9; .popsection");"""
"""All that follows lies 64 bytes further, code and constants."""
DECODE = """int fork_one(int task);
__attribute__((noinline)) int decode(int kind) {{
    switch (kind) {{
    case {cases[0]}: return pick(5) ^ 7;
    case {cases[1]}: return wake(3) ^ 1;
    case {cases[2]}: return fork_one(9) + 1;
    case {cases[3]}: return pick(wake(4)) + 2;
    case {cases[4]}: return wake(pick(6)) - 2;
    case {cases[5]}: return fork_one(pick(8)) + 3;
    }}
    return 0;
}}
"""
"""With a table of jumps, as `insn_get_immediate` has it (arch/x86/lib/insn.c)."""


def warnings_at(first: int, second: int) -> str:
    """A table of two warnings that stand in these lines."""
    return WARNINGS.format(first=first, second=second)


def test_code_that_only_lies_elsewhere_is_the_same(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one")
    second = a_kernel_of(tmp_path, "other", inserted=MORE)
    assert code_difference(first, second) == CodeDifference(functions=("balance",))
    assert code_difference(second, first) == CodeDifference(functions=("balance",))


FAR_ZEROS = """asm(".pushsection .rodata, \\"a\\"; .globl constants; .type constants, @object;"
    "constants: .fill 70000, 1, 1; .Lzeros: .fill 64, 1, {content}; .popsection;"
    ".pushsection .text; .globl mix; .type mix, @function; mix: lea .Lzeros(%rip), %rax; ret;"
    ".size mix, . - mix; .popsection");"""
"""A constant without a symbol, far behind the last that has one, as `BLAKE2S_SIGMA` begins with zeros
(lib/crypto/x86/blake2s-core.S)."""
MOVED_TEXT = 'asm(".pushsection .text; .skip 256; .popsection");'


@pytest.mark.parametrize(("content", "differing"), [(0, ()), (7, ("mix",))])
def test_a_far_constant_without_a_symbol_is_known_by_its_content(
    content: int, differing: tuple[str, ...], tmp_path: Path
) -> None:
    first = a_kernel_of(tmp_path, "one", inserted=FAR_ZEROS.format(content=0))
    second = a_kernel_of(tmp_path, "other", inserted=MOVED_TEXT + FAR_ZEROS.format(content=content))
    difference = code_difference(first, second)
    assert difference is not None
    assert difference.functions == differing


def test_an_image_that_another_has_taken_the_place_of_is_read_again(tmp_path: Path) -> None:
    first, second = a_kernel_of(tmp_path, "one"), a_kernel_of(tmp_path, "other", waking=2)
    assert code_difference(first, second) == CodeDifference(functions=("wake",))
    assert first.vmlinux is not None
    assert second.vmlinux is not None
    second.vmlinux.write_bytes(first.vmlinux.read_bytes())
    assert code_difference(first, second) == CodeDifference()


def test_a_changed_constant_is_a_changed_function_and_its_callers_are_not(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one")
    second = a_kernel_of(tmp_path, "other", inserted=MORE, waking=2)
    assert code_difference(first, second) == CodeDifference(functions=("balance", "wake"))


ONCE = """static __attribute__((noinline)) int init_once(int task) {{ return task * {factor}; }}
int mount_{name}(int task) {{ return init_once(task) + 1; }}
"""


def with_files(directory: Path, **factors: int) -> Kernel:
    """A kernel with a static function `init_once` in each of these files: `fs_inode=3` is fs/inode.c."""
    files = {
        f"{name.replace('_', '/')}.c": ONCE.format(factor=factor, name=name)
        for name, factor in factors.items()
    }
    return a_kernel_of(directory, "-".join(map(str, (*factors, *factors.values()))), beside=files)


@pytest.mark.parametrize(
    ("before", "after", "copies"),
    [
        ({"fs_inode": 3, "net_socket": 5}, {"fs_inode": 3, "net_socket": 7}, ("init_once (socket.c)",)),
        ({"fs_inode": 3, "mm_inode": 5}, {"fs_inode": 3, "mm_inode": 7}, ("init_once (inode.c, no. 2)",)),
        ({"fs_inode": 3, "mm_inode": 5}, {"fs_inode": 7, "mm_inode": 5}, ("init_once (inode.c)",)),
        ({"fs_inode": 3}, {"fs_inode": 3, "net_socket": 5}, ("init_once (socket.c)",)),
        (
            {"fs_inode": 3, "net_socket": 5},
            {"fs_inode": 7, "net_socket": 9},
            ("init_once (inode.c)", "init_once (socket.c)"),
        ),
    ],
    ids=str,
)
def test_of_functions_that_share_a_name_those_that_differ_are_told_by_their_files(
    before: dict[str, int], after: dict[str, int], copies: tuple[str, ...], tmp_path: Path
) -> None:
    code = code_difference(with_files(tmp_path, **before), with_files(tmp_path, **after))
    assert code is not None
    assert "init_once" in code.functions
    assert code.copies == {"init_once": copies}


def test_functions_that_share_a_name_and_lie_in_another_order_are_the_same(tmp_path: Path) -> None:
    first = with_files(tmp_path, fs_inode=3, net_socket=5)
    assert code_difference(first, with_files(tmp_path, net_socket=5, fs_inode=3)) == CodeDifference()


def test_the_functions_of_a_name_are_known_by_their_addresses(tmp_path: Path) -> None:
    kernel = with_files(tmp_path, fs_inode=3, net_socket=5)
    (names,) = copies_in(kernel, ["init_once", "gone"]).values()
    assert [names[address] for address in sorted(names)] == ["init_once (inode.c)", "init_once (socket.c)"]
    assert copies_in(kernel, ["wake"])["wake"].keys() != names.keys()
    assert copies_in(kernel.model_copy(update={"vmlinux": None}), ["init_once"]) == {}


def test_who_reads_data_is_told_by_the_file_where_others_share_the_name(tmp_path: Path) -> None:
    get = "static __attribute__((noinline)) int init_once(int task) { return task + slice; }\n"
    reads = f"extern int slice;\n{get}"
    more = {"fs/inode.c": ONCE.format(factor=3, name="one")}
    more["net/socket.c"] = f"{reads}int mount_two(int task) {{ return init_once(task); }}\n"
    first, second = (a_kernel_of(tmp_path, f"s{size}", slice_=size, beside=more) for size in (3, 4))
    code = code_difference(first, second)
    assert code is not None
    assert code.readers == ("_start", "init_once (socket.c)", "pick")


@pytest.mark.parametrize(
    ("cases", "changed"),
    [((0, 1, 2, 3, 4, 5), ()), ((1, 0, 2, 3, 4, 5), ("decode",)), ((0, 1, 2, 3, 5, 4), ("decode",))],
    ids=str,
)
def test_a_switch_is_changed_where_its_table_leads_elsewhere_not_where_it_only_moved(
    cases: tuple[int, ...], changed: tuple[str, ...], tmp_path: Path
) -> None:
    first = a_kernel_of(tmp_path, "one", inserted=DECODE.format(cases=range(6)))
    second = a_kernel_of(tmp_path, "other", inserted=FURTHER + DECODE.format(cases=cases))
    assert first.vmlinux is not None
    listing = run_shown(["objdump", "-d", "--disassemble=decode", str(first.vmlinux)]).stdout
    assert re.search(r"jmp +\*-0x", listing), "there is a table of jumps"
    assert code_difference(first, second) == CodeDifference(functions=changed)


TEXTS = """__attribute__((noinline)) const char *tells(int kind) {{
    return kind ? "what the first one says, {first}" : "{second}";
}}
const char *const said_elsewhere[] = {{"{third}"}};
"""


@pytest.mark.parametrize(
    ("texts", "functions", "data"),
    [
        (("slow", "ten", "one"), (), ()),
        (("fast", "ten", "one"), ("tells",), ()),
        (("slow", "two", "one"), ("tells",), ()),
        (("slow", "ten", "six"), (), ("constants without a name",)),
    ],
)
def test_a_text_that_changes_where_nothing_moves_changes_the_function_that_has_it(
    texts: tuple[str, str, str], functions: tuple[str, ...], data: tuple[str, ...], tmp_path: Path
) -> None:
    both = [
        a_kernel_of(tmp_path, name, inserted=TEXTS.format(first=words[0], second=words[1], third=words[2]))
        for name, words in (("one", ("slow", "ten", "one")), ("other", texts))
    ]
    assert code_difference(*both) == CodeDifference(functions=functions, data=data)


CONSTANT = """asm(".pushsection .rodata, \\"a\\"; .fill 70000, 1, 7; .balign 16; .skip {skipped}, 7;"
    " .Lsmall: .byte 1, {second}; .balign 16; .quad {beside}; .popsection");
__attribute__((noinline)) int reads_small(void) {{
    int value;
    asm("movzwl .Lsmall(%%rip), %0" : "=r"(value));
    return value;
}}
"""
"""Two bytes without a symbol, far behind any that has one, and a table beside them (arch/x86/lib/insn.c)."""


@pytest.mark.parametrize(
    ("second", "beside", "changed"),
    [(2, "wake, pick", ()), (3, "wake, pick", ("reads_small",)), (2, "pick, wake", ("reads_small",))],
)
@pytest.mark.parametrize("skipped", [0, 8], ids=["as far before the table", "nearer to it"])
def test_a_constant_is_the_same_where_only_the_table_beside_it_moved(
    skipped: int, second: int, beside: str, changed: tuple[str, ...], tmp_path: Path
) -> None:
    before = CONSTANT.format(second=2, beside="wake, pick", skipped=0)
    after = CONSTANT.format(second=second, beside=beside, skipped=skipped)
    first = a_kernel_of(tmp_path, "one", inserted=before)
    further = 'asm(".pushsection .text; .skip 64; .popsection");'
    moved = a_kernel_of(tmp_path, "other", inserted=further + after)
    assert code_difference(first, moved) == CodeDifference(functions=changed)


def test_a_changed_variable_is_told_as_data(tmp_path: Path) -> None:
    first, second = a_kernel_of(tmp_path, "one"), a_kernel_of(tmp_path, "other", slice_=24)
    assert code_difference(first, second) == CodeDifference(data=("slice",), readers=("_start", "pick"))


def test_a_number_that_leads_out_of_the_image_is_no_table_of_jumps(tmp_path: Path) -> None:
    """`pipe_max_size` from one megabyte to two was the same: nothing is there, and that read as address 0."""
    at_zero = 'asm(".globl fixed_percpu_data; .set fixed_percpu_data, 0");'
    first, second = (a_kernel_of(tmp_path, str(size), inserted=at_zero, slice_=size << 20) for size in (1, 2))
    assert code_difference(first, second) == CodeDifference(data=("slice",), readers=("_start", "pick"))


NEIGHBOURS = """
volatile int before = 3;
volatile {kind} between = {value};
volatile int after = 5;
__attribute__((noinline)) int reads_before(void) {{ before = 70000; return before == 9; }}
__attribute__((noinline)) int reads_between(void) {{ between = 7; between += 300; return between == 9; }}
__attribute__((noinline)) int reads_after(void) {{ after = 1; after &= 70000; return after == 9; }}
__attribute__((noinline)) void *passes_between(void) {{ return (void *)&between; }}
"""


@pytest.mark.parametrize("kind", ["char", "short", "int", "long"])
def test_who_reads_a_variable_is_known_by_its_address_not_by_a_neighbours(kind: str, tmp_path: Path) -> None:
    first, second = (
        a_kernel_of(tmp_path, str(value), inserted=NEIGHBOURS.format(kind=kind, value=value))
        for value in (1, 2)
    )
    assert code_difference(first, second) == CodeDifference(
        data=("between",), readers=("passes_between", "reads_between")
    )


def test_images_are_the_same_apart_from_build_id_and_time(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one")
    later = a_kernel_of(tmp_path, "later", build_id="bb", stamp="Feb 2 11:11:11 UTC 2026")
    assert first.vmlinux is not None
    assert later.vmlinux is not None
    assert first.vmlinux.read_bytes() != later.vmlinux.read_bytes()
    assert same_image(first, later)
    assert code_difference(first, later) == CodeDifference()
    assert not same_image(first, a_kernel_of(tmp_path, "other", slice_=24))
    assert not same_image(first, a_kernel_of(tmp_path, "moved", inserted=MORE))


def test_line_numbers_of_warnings_make_no_other_image(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one", inserted=warnings_at(10, 20))
    moved = a_kernel_of(tmp_path, "moved", inserted=warnings_at(11, 21))
    assert same_image(first, moved)
    assert code_difference(first, moved) == CodeDifference()


def test_a_function_whose_warning_moved_in_the_table_is_the_same(tmp_path: Path) -> None:
    """Linux 7.2 hands a warning's entry to what prints it: one warning less moved 400 functions' entries."""
    warns = """extern const char __start___bug_table[];
        __attribute__((noinline)) const void *warns(void) {{ return __start___bug_table + {entry}; }}"""
    first, moved = (
        a_kernel_of(tmp_path, str(entry), inserted=warnings_at(10, 20) + warns.format(entry=entry))
        for entry in (12, 0)
    )
    assert code_difference(first, moved) == CodeDifference()


@pytest.mark.parametrize(
    "table", [".rept 16; .long pick - .; .long limit - .; .long . - limit; .endr", ".fill 192, 1, 3"]
)
@pytest.mark.parametrize("step", [1, 12])
def test_a_number_that_looks_like_an_address_in_the_table_of_warnings_is_a_number(
    step: int, table: str, tmp_path: Path
) -> None:
    """The limit of mappings, 65,530, is such a number in Debian's 6.1, whose table lies behind its data."""
    limit = """asm(".pushsection .rodata, \\"a\\"; .globl limit; .type limit, @object; limit: .long {number};"
        ".size limit, 4; .skip 60; .globl __start___bug_table, __stop___bug_table; __start___bug_table:"
        "{table}; __stop___bug_table: .popsection");"""
    first, second = (
        a_kernel_of(tmp_path, str(number), inserted=limit.format(number=number, table=table))
        for number in (84, 84 + step)
    )
    assert code_difference(first, second) == CodeDifference(data=("limit",))


@pytest.mark.parametrize(("element", "differing"), [(0, ()), (8, ("last",))])
def test_an_address_far_inside_a_variable_moves_with_it(
    element: int, differing: tuple[str, ...], tmp_path: Path
) -> None:
    """`mpol_to_str` compares with the end of 272 kB (mm/mempolicy.c, with 1,024 nodes)."""
    last = """char nodes[100000];
        __attribute__((noinline)) const void *last(void) {{ return nodes + 99000 + {element}; }}"""
    first = a_kernel_of(tmp_path, "one", inserted=last.format(element=0))
    moved = 'asm(".pushsection .bss; .skip 4096; .popsection");' + last.format(element=element)
    second = a_kernel_of(tmp_path, "other", inserted=MOVED_TEXT + moved)
    assert code_difference(first, second) == CodeDifference(functions=differing)


@pytest.mark.parametrize(("behind", "differing"), [(0, ()), (-1, ()), (16, ("place",))])
def test_a_physical_address_moves_with_its_symbol(
    behind: int, differing: tuple[str, ...], tmp_path: Path
) -> None:
    """`lea __pa_symbol(_end) - 1` in `setup_arch`, as clang has it; 16 behind another symbol begins."""
    place = """asm(".pushsection .text; .skip {skipped}; .globl place; .type place, @function;"
        "place: lea wake + {behind} - 0xffffffff80000000(%rax), %rdx; ret; .size place, . - place;"
        ".popsection");"""
    first, second = (
        a_kernel_of(tmp_path, name, inserted=place.format(skipped=skipped, behind=where))
        for name, skipped, where in (("one", 0, min(behind, 0)), ("other", 4096, behind))
    )
    assert code_difference(first, second) == CodeDifference(functions=differing)


@pytest.mark.parametrize("change", [("pick - .", "wake - ."), (".word 10, 0x901", ".word 10, 0x903")])
def test_what_else_a_table_of_warnings_says_does(change: tuple[str, str], tmp_path: Path) -> None:
    first, second = warnings_at(10, 20), warnings_at(10, 20).replace(*change)
    assert not same_image(
        a_kernel_of(tmp_path, "a", inserted=first), a_kernel_of(tmp_path, "b", inserted=second)
    )


def test_entries_of_a_kind_that_is_not_known_count_as_they_are(tmp_path: Path) -> None:
    first, second = (warnings_at(line, 20).replace("pick - .", "0") for line in (10, 11))
    assert not same_image(
        a_kernel_of(tmp_path, "a", inserted=first), a_kernel_of(tmp_path, "b", inserted=second)
    )


def test_a_release_of_another_name_is_the_same_image_where_both_are_as_long(tmp_path: Path) -> None:
    first, second, longer = (
        a_kernel_of(tmp_path, name, release=name) for name in ("6.1.7-rt13", "6.1.7-rt25", "6.1.7-rt125")
    )
    assert same_image(first, second)
    assert not same_image(first, longer)


def names(*cached: str, symbol: str) -> str:
    """What the kernel keeps of its symbols' names, and one that a macro numbered."""
    table = " ".join(f'.asciz \\"{entry}\\";' for entry in cached)
    return (
        'asm(".pushsection .rodata, \\"a\\"; .globl kallsyms_names, kallsyms_markers;'
        f' kallsyms_names: {table} kallsyms_markers: .long 1; .popsection");'
        f"__attribute__((used, noinline)) static int {symbol}(void) {{ return 7; }}"
    )


def test_numbers_of_lines_in_the_names_of_symbols_make_no_other_image(tmp_path: Path) -> None:
    first, moved, renamed = (
        a_kernel_of(tmp_path, symbol, inserted=names(symbol, symbol=symbol))
        for symbol in ("init_492_9715", "init_492_9786", "exit_492_9786")
    )
    assert same_image(first, moved)
    assert not same_image(first, renamed)


def test_kept_names_count_where_the_symbols_themselves_are_others(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one", inserted=names("init_1", symbol="init_1"))
    second = a_kernel_of(tmp_path, "other", inserted=names("init_2", symbol="done_2"))
    assert not same_image(first, second)


def test_an_image_that_cannot_be_read_is_no_other_ones_twin(tmp_path: Path) -> None:
    first = a_kernel_of(tmp_path, "one")
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF and nothing more")
    second = first.model_copy(update={"vmlinux": broken, "digest": "0" * 64})
    assert not same_image(first, second)
    assert code_difference(first, second) is None
    assert code_difference(first, second.model_copy(update={"vmlinux": None})) is None
