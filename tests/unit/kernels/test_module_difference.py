"""What differs in modules: a change of a module alone makes no kernel of the same image."""

from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of, with_module

from ktrial.kernels.image_difference import code_difference, same_image
from ktrial.model.kernel import CodeDifference, Kernel

DEMO = """
extern int pick(int task), wake(int task);
static volatile int limit = {limit};
__attribute__((noinline)) int take(int task) {{ return task * {factor}; }}
__attribute__((noinline)) int give(int task) {{ return {callee}(task) + limit; }}
"""


def kernel(
    directory: Path,
    *,
    factor: int = 3,
    limit: int = 1,
    callee: str = "pick",
    name: str = "demo",
    release: str = "6.1.7-rt13",
) -> Kernel:
    """One kernel's image, and a module of its own."""
    plain = a_kernel_of(directory, "image", release=release)
    code = DEMO.format(factor=factor, limit=limit, callee=callee)
    return with_module(plain, directory, code, name)


def test_the_same_module_under_another_release_is_the_same(tmp_path: Path) -> None:
    first, second = kernel(tmp_path / "a"), kernel(tmp_path / "b", release="6.1.7-rt25")
    assert first.digest != second.digest
    assert same_image(first, second)
    assert code_difference(first, second) == CodeDifference()


CHANGES = [
    pytest.param({"factor": 5}, ("take [demo]",), (), id="a constant in its code"),
    pytest.param({"callee": "wake"}, ("give [demo]",), (), id="what it calls"),
    pytest.param({"limit": 7}, (), ("[demo]",), id="its data"),
    pytest.param(
        {"name": "other-demo"},
        ("give [demo]", "give [other_demo]", "take [demo]", "take [other_demo]"),
        (),
        id="its name",
    ),
]


@pytest.mark.parametrize(("changed", "functions", "data"), CHANGES)
def test_what_changes_in_a_module_alone_is_told_and_makes_another_kernel(
    changed: dict[str, str | int], functions: tuple[str, ...], data: tuple[str, ...], tmp_path: Path
) -> None:
    first, second = kernel(tmp_path / "a"), kernel(tmp_path / "b", **changed)  # type: ignore[arg-type]
    for pair in ((first, second), (second, first)):
        assert not same_image(*pair)
        assert code_difference(*pair) == CodeDifference(functions=functions, data=data)


def test_a_damaged_module_is_no_other_ones_twin(tmp_path: Path) -> None:
    first = kernel(tmp_path / "a")
    second = kernel(tmp_path / "b").model_copy(update={"digest": "0" * 64})
    assert second.modules is not None
    (module,) = second.modules.rglob("*.ko")
    module.write_bytes(b"\x7fELF and nothing more")
    assert not same_image(first, second)
    assert code_difference(first, second) == CodeDifference(functions=("give [demo]", "take [demo]"))
