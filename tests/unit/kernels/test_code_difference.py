"""What differs in two images, apart from where things lie. The images are small, and really linked."""

from pathlib import Path

from tests.support.made_images import a_kernel_of

from ktrial.kernels.image.code_difference import code_difference, same_image
from ktrial.model.kernel_diff import CodeDifference

MORE = '__attribute__((noinline)) int balance(int task) { said = "balanced"; return pick(task) << 3; }'


def test_code_that_only_lies_elsewhere_is_the_same(tmp_path: Path) -> None:
    one = a_kernel_of(tmp_path, "one")
    other = a_kernel_of(tmp_path, "other", inserted=MORE)
    assert code_difference(one, other) == CodeDifference(functions=("balance",))
    assert code_difference(other, one) == CodeDifference(functions=("balance",))


def test_a_changed_constant_is_a_changed_function_and_its_callers_are_not(tmp_path: Path) -> None:
    one = a_kernel_of(tmp_path, "one")
    other = a_kernel_of(tmp_path, "other", inserted=MORE, waking=2)
    assert code_difference(one, other) == CodeDifference(functions=("balance", "wake"))


def test_a_changed_variable_is_told_as_data(tmp_path: Path) -> None:
    one, other = a_kernel_of(tmp_path, "one"), a_kernel_of(tmp_path, "other", slice_=24)
    assert code_difference(one, other) == CodeDifference(data=("slice",))


def test_images_are_the_same_apart_from_build_id_and_time(tmp_path: Path) -> None:
    one = a_kernel_of(tmp_path, "one")
    later = a_kernel_of(tmp_path, "later", build_id="bb", stamp="Feb 2 11:11:11 UTC 2026")
    assert one.vmlinux is not None
    assert later.vmlinux is not None
    assert one.vmlinux.read_bytes() != later.vmlinux.read_bytes()
    assert same_image(one, later)
    assert code_difference(one, later) == CodeDifference()
    assert not same_image(one, a_kernel_of(tmp_path, "other", slice_=24))
    assert not same_image(one, a_kernel_of(tmp_path, "moved", inserted=MORE))


def test_an_image_that_cannot_be_read_is_no_other_ones_twin(tmp_path: Path) -> None:
    one = a_kernel_of(tmp_path, "one")
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF and nothing more")
    other = one.model_copy(update={"vmlinux": broken, "digest": "0" * 64})
    assert not same_image(one, other)
    assert code_difference(one, other) is None
    assert code_difference(one, other.model_copy(update={"vmlinux": None})) is None
