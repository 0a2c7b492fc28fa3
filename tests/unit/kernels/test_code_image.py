"""How a function can be reached, by the calls in an image. The images are small, and really linked."""

from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.scripted import a_kernel

from ktrial.kernels.code_image import code_image, functions_at, ways_to
from ktrial.model.kernel import Ways

CODE = """
#define FUNCTION(name) __attribute__((noinline)) int name(int task)
FUNCTION(deep) {{ return pick(task) ^ 3; }}
FUNCTION(middle) {{ return deep(task) + 1; }}
FUNCTION(polled) {{ return pick(task) - 7; }}
FUNCTION(__x64_sys_tee) {{ return middle(task) << 2; }}
FUNCTION(__x64_sys_splice) {{ return {splice}(task) << 4; }}
FUNCTION(__x64_sys_far) {{ return __x64_sys_splice(task) + 9; }}
__attribute__((aligned(512))) FUNCTION(jumps) {{ if (task & 1) return deep(task); return 5; }}
FUNCTION(__x64_sys_jump) {{ return jumps(task) * 3; }}
int (*const pipe_fops[])(int) = {{ polled, 0 }};
int (*const sys_call_table[])(int) = {{ __x64_sys_tee, __x64_sys_splice, __x64_sys_far, __x64_sys_jump }};
FUNCTION(opens) {{ return pipe_fops[task](task); }}
"""


def ways(tmp_path: Path, splice: str, *names: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    kernel = a_kernel_of(tmp_path, splice, inserted=CODE.format(splice=splice))
    return {name: (way.system_calls, way.tables) for name, way in ways_to(kernel, names).items()}


def test_calls_and_jumps_lead_up_to_system_calls_the_nearest_first(tmp_path: Path) -> None:
    assert ways(tmp_path, "deep", "deep", "middle", "__x64_sys_tee", "gone") == {
        "deep": (("splice", "far", "jump"), ()),
        "middle": (("tee",), ()),
        "__x64_sys_tee": (("tee",), ()),
    }


def test_what_only_a_pointer_calls_is_reached_by_the_table_that_holds_it(tmp_path: Path) -> None:
    assert ways(tmp_path, "middle", "polled", "opens") == {"polled": ((), ("pipe_fops",)), "opens": ((), ())}


def test_code_of_the_boot_is_reached_by_no_program(tmp_path: Path) -> None:
    section = '__attribute__((section(".init.text"), noinline))'
    kernel = a_kernel_of(
        tmp_path, "boot", inserted=f"{section} int begins(int task) {{ return pick(task) ^ 9; }}"
    )
    assert [way.at_boot for way in ways_to(kernel, ["begins", "pick"]).values()] == [True, False]


def test_addresses_tell_which_functions_they_lie_in(tmp_path: Path) -> None:
    kernel = a_kernel_of(tmp_path, "at", inserted=CODE.format(splice="jumps"))
    assert kernel.vmlinux is not None
    image = code_image(kernel.vmlinux)
    (middle,), (deep,) = image.functions["middle"], image.functions["deep"]
    inside = deep.address + len(deep.body) - 1
    assert functions_at(kernel, {middle.address, inside, 0xFE05B}) == {"middle", "deep"}
    assert functions_at(kernel, ()) == functions_at(a_kernel(), {middle.address}) == frozenset()


@pytest.mark.parametrize("vmlinux", [None, "vmlinux"])
def test_of_an_image_that_is_none_nothing_is_known(vmlinux: str | None, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF and no more")
    path = tmp_path / vmlinux if vmlinux else None
    assert ways_to(a_kernel(vmlinux=path), ["schedule"]) == dict[str, Ways]()
