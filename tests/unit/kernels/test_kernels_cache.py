"""The cache of kernels: names, contents, entries that are damaged or older."""

import shutil
from pathlib import Path

import pytest
from tests.support import kernel_images as make
from tests.support.kernel_caches import left_over, slow_provider

from ktrial.kernels import kernel_registry
from ktrial.kernels.config import config_of
from ktrial.kernels.errors import (
    BadKernelName,
    CacheDamaged,
    CacheUnusable,
    KernelNotFound,
)
from ktrial.kernels.files import write_atomically
from ktrial.kernels.modules import builtin_names, module_names, resolve
from ktrial.kernels.providers import all_providers

pytestmark = pytest.mark.filterwarnings("ignore:kernel provider broken")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("KTRIAL_CACHE", str(directory))
    return directory


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return make.vmlinuz(tmp_path)


def test_a_file_becomes_a_kernel_with_all_its_parts(tmp_path: Path, image: Path, cache: Path) -> None:
    config = tmp_path / "config"
    config.write_text(make.CONFIG)
    messages: list[str] = []
    kernel = kernel_registry.add(
        f"path:{image}",
        modules=make.module_tree(tmp_path),
        config=config,
        progress=lambda step, finished=0, total=0: messages.append(step),
    )
    assert kernel.name == f"path:{image}"
    assert kernel.release == make.RELEASE
    assert kernel.image.read_bytes() == image.read_bytes()
    assert kernel.vmlinux is not None
    assert kernel.vmlinux.read_bytes() == make.elf()
    assert kernel.config is not None
    assert config_of(kernel).get("CONFIG_HZ") == "250"
    assert module_names(kernel) == ("one", "two")
    assert builtin_names(kernel) == ("builtin_fs",)
    assert [path.name for path in resolve(kernel, ["two"])] == ["two.ko"]
    records = {"kernel.json", "manifest.json"}
    parts = [path for path in kernel.image.parent.rglob("*") if path.is_file() and path.name not in records]
    assert kernel.size == sum(path.stat().st_size for path in parts)
    assert messages[-1] == "writing to disk"
    assert kernel_registry.get(f"path:{image}") == kernel
    assert left_over(cache) == []


def test_nothing_is_taken_away_from_where_it_was(tmp_path: Path, image: Path) -> None:
    modules = make.module_tree(tmp_path)
    before = sorted(tmp_path.glob("lib/**/*"))
    kernel_registry.add(f"path:{image}", modules=modules)
    assert image.exists()
    assert sorted(tmp_path.glob("lib/**/*")) == before


def test_the_same_content_under_two_names_is_kept_once(tmp_path: Path, image: Path, cache: Path) -> None:
    second = tmp_path / "other"
    second.write_bytes(image.read_bytes())
    first, two = kernel_registry.add(f"path:{image}"), kernel_registry.add(f"path:{second}")
    assert first.digest == two.digest
    assert first.image == two.image
    assert [kernel.name for kernel in kernel_registry.all_kernels()] == sorted([first.name, two.name])
    assert kernel_registry.remove(first.name) == (first.name, 0)
    assert kernel_registry.get(two.name).image.exists()
    name, freed = kernel_registry.remove(two.digest[:10])
    assert name == two.name
    assert freed > two.size
    assert not two.image.exists()
    assert kernel_registry.all_kernels() == ()


def test_a_file_that_changed_is_read_again(tmp_path: Path, image: Path, cache: Path) -> None:
    before = kernel_registry.add(f"path:{image}")
    make.vmlinuz(tmp_path, compression="xz")
    after = kernel_registry.add(f"path:{image}")
    assert after.digest != before.digest
    assert kernel_registry.get(before.name).digest == after.digest
    kernel_registry.add(f"path:{image}")
    assert left_over(cache) == [], "the content that no name leads to is gone at the next command"


def test_the_digest_depends_on_every_part(tmp_path: Path, image: Path) -> None:
    config = tmp_path / "config"
    config.write_text(make.CONFIG)
    modules = make.module_tree(tmp_path)
    name = f"path:{image}"
    digests = [
        kernel_registry.add(name).digest,
        kernel_registry.add(name, config=config).digest,
        kernel_registry.add(name, modules=modules).digest,
        kernel_registry.add(name, modules=modules, config=config).digest,
    ]
    assert len(set(digests)) == 4
    assert kernel_registry.add(name, modules=modules, config=config).digest == digests[3]


def test_an_unknown_kernel_is_not_found_and_near_names_are_told(image: Path) -> None:
    kernel_registry.add(f"path:{image}")
    with pytest.raises(KernelNotFound) as caught:
        kernel_registry.get(f"path:{image}x")
    assert f"did you mean path:{image}?" in caught.value.message
    assert caught.value.advice == f"add it: ktrial kernel add path:{image}x"


def test_nothing_is_found_in_a_cache_that_does_not_exist() -> None:
    assert kernel_registry.all_kernels() == ()
    for call in (kernel_registry.get, kernel_registry.remove):
        with pytest.raises(KernelNotFound, match=r"There is no kernel debian:6\.1 in the cache\."):
            call("debian:6.1")


@pytest.mark.parametrize(
    ("name", "problem", "advice"),
    [
        ("", "it is empty", "debian:VERSION"),
        ("debain:6.1", "there is no provider 'debain' (did you mean debian?)", "path:FILE"),
        ("/boot/vmlinuz", "a file is named path:FILE", "path:FILE"),
        ("path:", "a file is missing", "path:FILE"),
        ("host:6.1", "nothing can follow 'host'", "host"),
        ("debian:", "a version is missing", "debian:VERSION"),
        ("debian:latest", "'latest' is not a version", "debian:VERSION"),
        ("debian:6.1:fast", "Debian builds no flavour 'fast'", "cloud|generic|rt"),
        ("debian:6.1/../../etc", "is not a version", "debian:VERSION"),
    ],
)
def test_a_bad_name_is_refused_with_what_is_allowed(name: str, problem: str, advice: str) -> None:
    with pytest.raises(BadKernelName) as caught:
        kernel_registry.add(name)
    assert problem in caught.value.message
    assert advice in caught.value.advice
    assert caught.value.exit_code == 2


def test_modules_do_not_go_with_a_distributions_kernel(tmp_path: Path) -> None:
    with pytest.raises(BadKernelName, match="modules and configuration come with debian: kernels"):
        kernel_registry.add("debian:6.1", modules=tmp_path)


def test_names_are_written_in_one_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert kernel_registry.canonical_name("debian:6.1:cloud") == "debian:6.1"
    assert kernel_registry.canonical_name("debian:6.1:rt") == "debian:6.1:rt"
    assert kernel_registry.canonical_name("debian:6.12.90+deb12-rt-amd64") == "debian:6.12.90+deb12-rt-amd64"
    assert kernel_registry.canonical_name("path:vmlinuz") == f"path:{tmp_path}/vmlinuz"
    assert kernel_registry.canonical_name("3f7aec91") == "3f7aec91"


@pytest.mark.parametrize("length", [10, 60, 200])
def test_long_and_odd_paths_are_names_too(tmp_path: Path, image: Path, length: int) -> None:
    path = tmp_path / ("ü %:+.." * 60)[:length] / "vmlinuz"
    path.parent.mkdir()
    shutil.copy(image, path)
    kernel = kernel_registry.add(f"path:{path}")
    assert kernel_registry.get(kernel.name) == kernel
    assert [all_kernel.name for all_kernel in kernel_registry.all_kernels()] == [kernel.name]


def test_a_cache_that_is_a_file_is_named(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "plain"))
    with pytest.raises(CacheUnusable) as caught:
        kernel_registry.add(f"path:{image}")
    assert str(tmp_path / "plain") in caught.value.message
    assert "KTRIAL_CACHE" in caught.value.advice


def test_a_damaged_entry_is_told_removed_and_added_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_provider(tmp_path, monkeypatch)
    kernel = kernel_registry.add("slow:one")
    kernel.image.unlink()
    with pytest.raises(CacheDamaged, match="parts of it are missing"):
        kernel_registry.get("slow:one")
    with pytest.warns(UserWarning, match=r"slow:one is damaged in the cache \(vmlinuz\).*fetched anew"):
        again = kernel_registry.add("slow:one")
    assert again.image.exists()
    assert again.digest == kernel.digest
    (again.image.parent / "kernel.json").write_text("{")
    with pytest.raises(CacheDamaged) as caught:
        kernel_registry.get("slow:one")
    assert "kernel.json" in caught.value.message
    assert kernel_registry.remove("slow:one")[1] > 0
    assert kernel_registry.all_kernels() == ()


def test_a_damaged_name_can_be_removed(image: Path, cache: Path) -> None:
    kernel = kernel_registry.add(f"path:{image}")
    (file,) = (cache / "kernels" / "names").glob("*.json")
    file.write_text("not json")
    with pytest.raises(CacheDamaged):
        kernel_registry.all_kernels()
    kernel_registry.remove(kernel.name)
    assert kernel_registry.all_kernels() == ()


def test_a_broken_provider_warns_and_the_others_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_provider(tmp_path, monkeypatch)
    with pytest.warns(UserWarning, match=r"kernel provider broken .* is broken .*No module named"):
        providers = all_providers()
    assert {"build", "debian", "git", "path", "host", "rpm", "slow", "source"} == set(providers)


def test_part_of_a_cache_may_be_a_link_to_a_directory_elsewhere(tmp_path: Path) -> None:
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / "cache"
    elsewhere.mkdir()
    linked.symlink_to(elsewhere)
    write_atomically(linked / "facts.json", "{}")
    assert (elsewhere / "facts.json").read_text() == "{}"
