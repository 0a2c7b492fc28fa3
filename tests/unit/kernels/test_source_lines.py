"""Source lines and inlined functions of code, as `objdump -dl` has them too; and counts by line."""

import subprocess
from pathlib import Path

import pytest
from tests.support.disassembly import disassembled
from tests.support.profiles import a_profile

from ktrial.experiment.source_lines import lines_of
from ktrial.kernels.debug_info import build_id
from ktrial.kernels.errors import NoSuchFunction
from ktrial.kernels.source_lines import address_in, at, below_source, by_address, stretches

SOURCE = """\
static inline int square(int of) { return of * of + 1; }
static inline int twice(int of)
{
    int once = square(of);
    return once + once / 3;
}
__attribute__((noinline)) int swallows(int of)
{
    int sum = 0;
    for (int at = 0; at < of; at++)
        sum += twice(at) ^ square(sum);
    return sum;
}
__attribute__((noinline)) int plain(int of)
{
    return of + 7;
}
int main(int count, char **words) { return swallows(count) + plain(count); }
"""
KALLSYMS = """\
ffffffff81000000 T before
ffffffff81000010 t asked
ffffffff81000013 T after
ffffffff81000020 t asked.cold
ffffffff81000021 T last
ffffffffc0000000 t of_module\t[ext4]
"""


@pytest.fixture(scope="module", params=["-gdwarf-4", "-gdwarf-5"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    (place / "own.c").write_text(SOURCE)
    command = ["gcc", "-O2", request.param, "-no-pie", "-Wl,--build-id", "-o", "own", "own.c"]
    subprocess.run(command, cwd=place, check=True)
    return place / "own"


@pytest.mark.parametrize("function", ["swallows", "plain", "main"])
def test_each_instruction_has_the_line_and_the_function_that_objdump_names(
    program: Path, function: str
) -> None:
    instructions = disassembled(program, function)
    code = stretches(program, instructions[0].address)
    places = [at(code, each.address) for each in instructions]
    assert [(Path(place.file).name, place.line) for place in places] == [
        (each.file, each.line) for each in instructions
    ]
    assert [(function, *place.inlined)[-1] for place in places] == [each.function for each in instructions]


def test_functions_that_were_inlined_into_one_another_are_all_named(program: Path) -> None:
    (first, *_) = disassembled(program, "swallows")
    chains = {stretch.inlined for stretch in stretches(program, first.address)}
    assert {(), ("square",), ("twice", "square")} <= chains


def test_what_was_found_of_a_function_is_kept_by_build_id(program: Path, tmp_path: Path) -> None:
    (first, *_) = disassembled(program, "plain")
    code = stretches(program, first.address)
    notes_alone = tmp_path / "notes"
    subprocess.run(["objcopy", "--strip-debug", program, notes_alone], check=True)
    assert build_id(notes_alone) == build_id(program)
    assert stretches(notes_alone, first.address) == code


def test_each_byte_of_the_function_is_a_symbol_of_its_own() -> None:
    table = by_address(KALLSYMS, ["asked"])
    named = [line.split()[2] for line in table.splitlines()]
    assert named == [
        *("before", "asked@ffffffff81000010", "asked@ffffffff81000011", "asked@ffffffff81000012", "after"),
        *("asked@ffffffff81000020", "last", "of_module"),
    ]
    assert address_in("asked@ffffffff81000011") == ("asked", 0xFFFF_FFFF_8100_0011)
    assert address_in("after") is None


def test_bytes_of_several_functions_are_told_apart() -> None:
    places = [
        address_in(line.split()[2]) for line in by_address(KALLSYMS, ["asked.cold", "last"]).splitlines()
    ]
    assert [place for place in places if place] == [
        ("asked.cold", 0xFFFF_FFFF_8100_0020),
        *(("last", address) for address in range(0xFFFF_FFFF_8100_0021, 0xFFFF_FFFF_8101_0021)),
    ]


@pytest.mark.parametrize("name", ["aksed", "of_module"])
def test_a_function_that_the_image_has_not_is_named(name: str) -> None:
    with pytest.raises(NoSuchFunction, match=f"no function {name}"):
        by_address(KALLSYMS, ["last", name])


@pytest.mark.parametrize(
    "path",
    [
        "mm/memory.c",
        "debian/build/build_amd64_none_cloud-amd64/mm/memory.c",
        "/build/linux/debian/build/build_amd64_none/../../../mm/memory.c",
        "/source/mm/memory.c",
    ],
)
def test_files_are_called_as_below_the_source(path: str) -> None:
    assert below_source(path) == "mm/memory.c"


def test_lines_of_functions_that_were_counted_together_are_told_apart(program: Path) -> None:
    first, second = ({each.address for each in disassembled(program, name)} for name in ("swallows", "plain"))
    counts = {(f"swallows@{address:x}", ""): 3 for address in first} | {
        (f"plain@{address:x}", ""): 5 for address in second
    }
    counted = a_profile(counts)
    assert lines_of(counted, "swallows", program).instructions == 3 * len(first)
    assert lines_of(counted, "plain", program).instructions == 5 * len(second)


def test_lines_sum_to_the_function(program: Path) -> None:
    instructions = disassembled(program, "swallows")
    counts = {(f"swallows@{each.address:x}", ""): 10 + at_ for at_, each in enumerate(instructions)}
    lines = lines_of(a_profile(counts | {("other", ""): 1000}), "swallows", program)
    assert lines.instructions == sum(counts.values()) == sum(line.instructions for line in lines.lines)
    inlined = dict(lines.by_inlined())
    assert lines.own + sum(inlined.values()) == lines.instructions
    assert inlined["square"] > 0
