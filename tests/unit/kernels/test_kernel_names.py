"""The names in the cache of kernels: each leads to what was added under it, or is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import kernel_caches
from tests.support import kernel_images as make

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import CacheDamaged
from ktrial.model.kernel import Kernel

pytestmark = pytest.mark.filterwarnings("ignore:the kernel provider broken")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the records are."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    kernel_caches.install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "fetches"))
    return tmp_path / "cache" / "kernels" / "names"


def added(name: str, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """As Debian's packages tell their release."""
    monkeypatch.setenv("SLOW_PACKAGES", f"linux-image-6.1.0-{name}=6.1.7-1")
    return kernel_registry.add(f"slow:{name}")


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_record_that_leads_to_another_kernel_is_refused(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, two = added("one", monkeypatch), added("two", monkeypatch)
    assert kernel_registry.obtain("slow:one") == first
    change(names / "slow:one.json", digest=two.digest)
    message = (
        rf"slow:one is damaged .*leads to Linux 6\.1\.0-two, {two.digest[:12]}, which was not added under"
    )
    for read in (kernel_registry.obtain, kernel_registry.get, kernel_registry.cached):
        with pytest.raises(CacheDamaged, match=message):
            read("slow:one")
    assert kernel_registry.obtain("slow:two") == two
    with pytest.warns(UserWarning, match=rf"{message} this name\. It is fetched anew"):
        assert added("one", monkeypatch) == first
    assert kernel_registry.obtain("slow:one") == first


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda record: change(record, flavour="rt"), "which was not added under this name"),
        (lambda record: change(record, origin={"provider": "slow", "source": "two"}), "was not added under"),
        (lambda record: change(record, name="slow:two"), "is the record of slow:two"),
        (
            lambda record: shutil.copy(record.with_name("slow:two.json"), record),
            "it is the record of slow:two",
        ),
    ],
)
def test_a_record_that_was_changed_is_refused(
    damage: Callable[[Path], object], message: str, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("one", monkeypatch)
    added("two", monkeypatch)
    damage(names / "slow:one.json")
    with pytest.raises(CacheDamaged, match=rf"record of kernel slow:one is damaged .*{message}") as caught:
        kernel_registry.obtain("slow:one")
    assert caught.value.advice.endswith("ktrial kernel remove slow:one; ktrial kernel add slow:one")


def test_a_damaged_record_is_no_matter_of_other_kernels_and_its_content_stays(
    names: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    first, two = added("one", monkeypatch), added("two", monkeypatch)
    record = names / "slow:one.json"
    complete = record.read_text()
    change(record, digest=two.digest)
    three = kernel_registry.obtain("slow:three")
    assert kernel_registry.get(three.digest[:12]) == three
    assert [warning for warning in recwarn if "damaged" in str(warning.message)] == []
    record.write_text(complete)
    assert kernel_registry.obtain("slow:one") == first


def test_two_names_may_lead_to_one_kernel(names: Path, tmp_path: Path) -> None:
    image, again = make.vmlinuz(tmp_path), tmp_path / "again"
    shutil.copy(image, again)
    first, second = kernel_registry.add(f"path:{image}"), kernel_registry.add(f"path:{again}")
    assert second.digest == first.digest
    assert [kernel_registry.get(kernel.name) for kernel in (first, second)] == [first, second]


def test_a_damaged_record_tells_the_name_that_was_added(names: Path, tmp_path: Path) -> None:
    kernel = kernel_registry.add(f"path:{make.vmlinuz(tmp_path)}")
    (record,) = names.glob("*.json")
    record.write_text("{")
    with pytest.raises(CacheDamaged, match=rf"record of kernel {kernel.name} is damaged"):
        kernel_registry.get(kernel.name)
