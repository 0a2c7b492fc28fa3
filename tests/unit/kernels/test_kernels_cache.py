"""The cache of kernels: names, contents, and several processes at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support import kernel_images as make
from tests.support import kernel_provider
from tests.support.places import ROOT

from ktrial import kernels
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.cache import disk_usage
from ktrial.kernels.cache.disk_space import file_system_errors, require_space
from ktrial.kernels.errors import (
    BadKernelName,
    CacheDamaged,
    CacheFull,
    CacheUnusable,
    ConfigUnusable,
    ImageUnreadable,
    KernelNotFound,
    ModulesUnusable,
    NotAKernel,
    ToolMissing,
)
from ktrial.kernels.providers.protocol import all_providers
from ktrial.model.kernel import BootImage

pytestmark = pytest.mark.filterwarnings("ignore:kernel provider broken")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("KTRIAL_CACHE", str(directory))
    return directory


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return make.vmlinuz(tmp_path)


def left_over(cache: Path) -> list[str]:
    """Whatever is in the cache beside whole kernels, names and locks."""
    work = [path.name for path in (cache / "kernels" / "work").iterdir()]
    digests = {kernel.digest for kernel in kernels.all_kernels()}
    return work + [
        path.name for path in (cache / "kernels" / "by-digest").iterdir() if path.name not in digests
    ]


def test_a_file_becomes_a_kernel_with_all_its_parts(tmp_path: Path, image: Path, cache: Path) -> None:
    config = tmp_path / "config"
    config.write_text(make.CONFIG)
    told: list[str] = []
    kernel = kernels.add(
        f"path:{image}",
        modules=make.module_tree(tmp_path),
        config=config,
        progress=lambda what, done=0, total=0: told.append(what),
    )
    assert kernel.name == f"path:{image}"
    assert kernel.release == make.RELEASE
    assert kernel.image.read_bytes() == image.read_bytes()
    assert kernel.vmlinux is not None
    assert kernel.vmlinux.read_bytes() == make.elf()
    assert kernel.config is not None
    assert kernels.config_value(kernel, "CONFIG_HZ") == "250"
    assert kernels.module_names(kernel) == ("one", "two")
    assert kernels.builtin_names(kernel) == ("builtin_fs",)
    assert [path.name for path in kernels.resolve(kernel, ["two"])] == ["two.ko"]
    records = {"kernel.json", "manifest.json"}
    parts = [path for path in kernel.image.parent.rglob("*") if path.is_file() and path.name not in records]
    assert kernel.size == sum(path.stat().st_size for path in parts)
    assert told[-1] == "writing to disk"
    assert kernels.get(f"path:{image}") == kernel
    assert left_over(cache) == []


def test_nothing_is_taken_away_from_where_it_was(tmp_path: Path, image: Path) -> None:
    modules = make.module_tree(tmp_path)
    before = sorted(tmp_path.glob("lib/**/*"))
    kernels.add(f"path:{image}", modules=modules)
    assert image.exists()
    assert sorted(tmp_path.glob("lib/**/*")) == before


def test_the_same_content_under_two_names_is_kept_once(tmp_path: Path, image: Path, cache: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(image.read_bytes())
    one, two = kernels.add(f"path:{image}"), kernels.add(f"path:{other}")
    assert one.digest == two.digest
    assert one.image == two.image
    assert [kernel.name for kernel in kernels.all_kernels()] == sorted([one.name, two.name])
    assert kernels.remove(one.name) == (one.name, 0)
    assert kernels.get(two.name).image.exists()
    name, freed = kernels.remove(two.digest[:10])
    assert name == two.name
    assert freed > two.size
    assert not two.image.exists()
    assert kernels.all_kernels() == ()


def test_a_file_that_changed_is_read_again(tmp_path: Path, image: Path, cache: Path) -> None:
    before = kernels.add(f"path:{image}")
    make.vmlinuz(tmp_path, compression="xz")
    after = kernels.add(f"path:{image}")
    assert after.digest != before.digest
    assert kernels.get(before.name).digest == after.digest
    kernels.add(f"path:{image}")
    assert left_over(cache) == [], "the content that no name leads to is gone at the next command"


def test_the_digest_depends_on_every_part(tmp_path: Path, image: Path) -> None:
    config = tmp_path / "config"
    config.write_text(make.CONFIG)
    modules = make.module_tree(tmp_path)
    name = f"path:{image}"
    digests = [
        kernels.add(name).digest,
        kernels.add(name, config=config).digest,
        kernels.add(name, modules=modules).digest,
        kernels.add(name, modules=modules, config=config).digest,
    ]
    assert len(set(digests)) == 4
    assert kernels.add(name, modules=modules, config=config).digest == digests[3]


def test_an_unknown_kernel_is_not_found_and_near_names_are_told(image: Path) -> None:
    kernels.add(f"path:{image}")
    with pytest.raises(KernelNotFound) as caught:
        kernels.get(f"path:{image}x")
    assert f"did you mean path:{image}?" in caught.value.message
    assert caught.value.advice == f"add it: ktrial kernel add path:{image}x"


def test_nothing_is_found_in_a_cache_that_does_not_exist() -> None:
    assert kernels.all_kernels() == ()
    for call in (kernels.get, kernels.remove):
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
        kernels.add(name)
    assert problem in caught.value.message
    assert advice in caught.value.advice
    assert caught.value.exit_code == 2


def test_modules_do_not_go_with_a_distributions_kernel(tmp_path: Path) -> None:
    with pytest.raises(BadKernelName, match="modules and configuration come with debian: kernels"):
        kernels.add("debian:6.1", modules=tmp_path)


def test_names_are_written_in_one_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert kernels.canonical_name("debian:6.1:cloud") == "debian:6.1"
    assert kernels.canonical_name("debian:6.1:rt") == "debian:6.1:rt"
    assert kernels.canonical_name("debian:6.12.90+deb12-rt-amd64") == "debian:6.12.90+deb12-rt-amd64"
    assert kernels.canonical_name("path:vmlinuz") == f"path:{tmp_path}/vmlinuz"
    assert kernels.canonical_name("3f7aec91") == "3f7aec91"


@pytest.mark.parametrize("length", [10, 60, 200])
def test_long_and_odd_paths_are_names_too(tmp_path: Path, image: Path, length: int) -> None:
    path = tmp_path / ("ü %:+.." * 60)[:length] / "vmlinuz"
    path.parent.mkdir()
    shutil.copy(image, path)
    kernel = kernels.add(f"path:{path}")
    assert kernels.get(kernel.name) == kernel
    assert [one.name for one in kernels.all_kernels()] == [kernel.name]


def test_a_bad_image_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "text").write_text("hello\n" * 1000)
    with pytest.raises(NotAKernel, match="text file"):
        kernels.add(f"path:{tmp_path}/text")
    with pytest.raises(ImageUnreadable, match="there is no such file"):
        kernels.add(f"path:{tmp_path}/nothing")
    assert kernels.all_kernels() == ()
    assert left_over(cache) == []


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda directory: None, "there is no such directory"),
        (lambda directory: directory.write_text("x"), "it is not a directory"),
        (lambda directory: directory.mkdir(), "there is no module"),
        (
            lambda directory: make.module_tree(directory, "6.6.6"),
            "its modules are of 6.6.6, the image is 6.1.0-test",
        ),
    ],
    ids=["missing", "a file", "empty", "of another kernel"],
)
def test_unfit_modules_are_refused(tmp_path: Path, image: Path, prepare: object, problem: str) -> None:
    assert callable(prepare)
    prepare(tmp_path / "modules")
    with pytest.raises(ModulesUnusable) as caught:
        kernels.add(f"path:{image}", modules=tmp_path / "modules")
    assert problem in caught.value.message
    assert caught.value.advice.endswith(f"lib/modules/{make.RELEASE}")


@pytest.mark.parametrize("below", ["", "lib", "lib/modules", f"lib/modules/{make.RELEASE}"])
def test_modules_are_found_from_any_directory_above_them(tmp_path: Path, image: Path, below: str) -> None:
    make.module_tree(tmp_path / "out")
    given = tmp_path / "out" / below
    assert kernels.module_names(kernels.add(f"path:{image}", modules=given)) == ("one", "two")


def test_damaged_modules_are_refused(tmp_path: Path, image: Path) -> None:
    modules = make.module_tree(tmp_path)
    (modules / "kernel" / "a.ko.xz").write_bytes(b"\xfd7zXZ\0 and no more")
    with pytest.raises(ModulesUnusable, match=r"a\.ko\.xz is damaged"):
        kernels.add(f"path:{image}", modules=modules)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello\n", "it has no line like CONFIG_SMP=y"),
        (make.CONFIG.replace("6.1.190", "5.10.1"), "it is of Linux 5.10.1, the image is 6.1.0-test"),
    ],
)
def test_an_unfit_configuration_is_refused(tmp_path: Path, image: Path, text: str, problem: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigUnusable, match=problem):
        kernels.add(f"path:{image}", config=tmp_path / "config")


def test_a_missing_configuration_is_refused(tmp_path: Path, image: Path) -> None:
    with pytest.raises(ConfigUnusable, match="No such file"):
        kernels.add(f"path:{image}", config=tmp_path / "config")


def test_without_kmod_the_package_is_named(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.kernels.modules.depmod.SBIN", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing) as caught:
        kernels.add(f"path:{image}", modules=make.module_tree(tmp_path))
    assert caught.value.advice == "sudo apt-get install kmod"


def test_a_cache_that_is_a_file_is_named(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "plain"))
    with pytest.raises(CacheUnusable) as caught:
        kernels.add(f"path:{image}")
    assert str(tmp_path / "plain") in caught.value.message
    assert "KTRIAL_CACHE" in caught.value.advice


def test_a_damaged_entry_is_told_removed_and_added_again(
    tmp_path: Path, cache: Path, slow: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = kernels.add("slow:one")
    kernel.image.unlink()
    with pytest.raises(CacheDamaged, match="parts of it are missing"):
        kernels.get("slow:one")
    with pytest.warns(UserWarning, match=r"slow:one is damaged in the cache \(vmlinuz\).*fetched anew"):
        again = kernels.add("slow:one")
    assert again.image.exists()
    assert again.digest == kernel.digest
    (again.image.parent / "kernel.json").write_text("{")
    with pytest.raises(CacheDamaged) as caught:
        kernels.get("slow:one")
    assert "kernel.json" in caught.value.message
    assert kernels.remove("slow:one")[1] > 0
    assert kernels.all_kernels() == ()


def test_an_entry_from_before_boot_images_were_noted_is_read_again_and_stays(image: Path) -> None:
    kernel = kernels.add(f"path:{image}")
    record = kernel.image.parent / "kernel.json"
    noted = json.loads(record.read_text())
    image_only = BootImage.model_validate(noted.pop("boot_image"))
    assert kernel.boot_image
    assert image_only == kernel.boot_image.model_copy(update={"digest": ""})
    older = json.dumps(noted)
    record.write_text(older)
    assert kernels.get(f"path:{image}").boot_image == kernel.boot_image
    assert record.read_text() == older


def test_an_older_entry_with_a_damaged_image_is_told(image: Path) -> None:
    kernel = kernels.add(f"path:{image}")
    record = kernel.image.parent / "kernel.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot_image": None}))
    (kernel.vmlinux or kernel.image).write_bytes(b"\x7fELF")
    with pytest.raises(CacheDamaged, match="cut short"):
        kernels.get(f"path:{image}")


def test_a_damaged_name_can_be_removed(image: Path, cache: Path) -> None:
    kernel = kernels.add(f"path:{image}")
    (file,) = (cache / "kernels" / "names").glob("*.json")
    file.write_text("not json")
    with pytest.raises(CacheDamaged):
        kernels.all_kernels()
    kernels.remove(kernel.name)
    assert kernels.all_kernels() == ()


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The provider of another package, known here and to programs that are started with this environment."""
    kernel_provider.install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "fetches"))
    path = os.pathsep.join((str(tmp_path / "site"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}


def test_a_remembered_name_is_fetched_once_until_a_refresh(slow: dict[str, str], tmp_path: Path) -> None:
    first = kernels.add("slow:one")
    assert kernels.add("slow:one") == first
    assert (tmp_path / "fetches").read_text() == "one\n"
    assert kernels.add("slow:one", refresh=True).digest == first.digest
    assert (tmp_path / "fetches").read_text() == "one\none\n"


def test_a_broken_provider_warns_and_the_others_work(slow: dict[str, str]) -> None:
    with pytest.warns(UserWarning, match=r"kernel provider broken .* is broken .*No module named"):
        found = all_providers()
    assert {"build", "debian", "git", "path", "host", "rpm", "slow", "source"} == set(found)


ADD = "import sys; from ktrial import kernels; print(kernels.add(sys.argv[1]).digest)"


def test_two_processes_that_add_the_same_kernel_fetch_it_once(
    slow: dict[str, str], tmp_path: Path, cache: Path
) -> None:
    command = [sys.executable, "-c", ADD, "slow:one"]
    environment = {**slow, "SLOW_SECONDS": "1"}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(3)]
    printed = {process.communicate(timeout=300)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(printed) == 1
    assert (tmp_path / "fetches").read_text() == "one\n"
    assert [kernel.name for kernel in kernels.all_kernels()] == ["slow:one"]
    assert left_over(cache) == []


def test_processes_that_add_and_remove_different_kernels_do_not_disturb_each_other(
    slow: dict[str, str], cache: Path
) -> None:
    script = (
        "import sys\nfrom ktrial import kernels\nfor i in range(5):\n"
        "    k = kernels.add(sys.argv[1]); assert k.image.exists(); kernels.get(k.name)\n"
        "    if i < 4: kernels.remove(k.name)\n"
    )
    names = ("slow:one", "slow:two", "slow:three")
    running = [subprocess.Popen([sys.executable, "-c", script, name], env=slow) for name in names]
    assert [process.wait(timeout=300) for process in running] == [0, 0, 0]
    assert [kernel.name for kernel in kernels.all_kernels()] == sorted(names)
    assert left_over(cache) == []


STAGED = """
import sys
from ktrial import kernels

def progress(what, done=0, total=0):
    print(what, flush=True)
    if what == sys.argv[2]:
        sys.stdin.read()  # until it is killed, however long that takes

kernels.add(sys.argv[1], progress=progress)
"""


STAGES = ("fetching", "unpacking the kernel", "resolving the modules' dependencies", "writing to disk")


@pytest.mark.parametrize("stage", STAGES)
def test_a_process_killed_in_the_middle_leaves_no_kernel(
    slow: dict[str, str], tmp_path: Path, cache: Path, stage: str
) -> None:
    command = [sys.executable, "-c", STAGED, "slow:one", stage]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=slow, text=True, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert any(line.strip() == stage for line in iter(process.stdout.readline, ""))
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert kernels.all_kernels() == ()
    assert left_over(cache), "the killed process was in the middle of it"
    with pytest.raises(KernelNotFound):
        kernels.get("slow:one")
    assert kernels.add("slow:one").image.exists()
    assert left_over(cache) == []


def in_a_small_disk(
    directory: Path, size: str, script: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run Python where `directory` is a tmpfs of `size`, in mount and user namespaces of its own."""
    directory.mkdir()
    mounted = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, str(directory)]
    program = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "KTRIAL_CACHE": str(directory), "PYTHONPATH": str(ROOT)}
    return subprocess.run([*command, *program], env=environment, capture_output=True, text=True, check=False)


FILL = """
import sys
import threading
from pathlib import Path
from ktrial import kernels
from ktrial.errors import KtrialError
try:
    kernels.add(sys.argv[1], modules=Path(sys.argv[2]))
except KtrialError as error:
    print(type(error).__name__, error, error.advice, sep="\\n")
print([path.name for path in (kernels.cache_directory() / "kernels" / "work").iterdir()])
print(len(kernels.all_kernels()))
"""


@pytest.mark.parametrize("size", ["40k", "80k", "120k", "160k"])
def test_a_full_disk_is_named_and_nothing_half_written_stays(tmp_path: Path, image: Path, size: str) -> None:
    modules = make.module_tree(tmp_path, names=tuple(f"m{number}" for number in range(20)))
    done = in_a_small_disk(tmp_path / "small", size, FILL, f"path:{image}", str(modules))
    if "unshare" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip(f"this system forbids user namespaces: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    kind, message, advice, work, count = done.stdout.splitlines()
    assert kind == "CacheFull"
    assert str(tmp_path / "small") in message
    assert "needed" in message
    assert "KTRIAL_CACHE" in advice
    assert (work, count) == ("[]", "0")


def test_too_little_space_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(CacheFull) as caught, file_system_errors(tmp_path / "not"):
        require_space(tmp_path / "not" / "yet", 1 << 60)
    assert f"{tmp_path}/not is full: 1152921504.6 GB needed" in caught.value.message
    require_space(tmp_path, 1)


def test_an_error_elsewhere_is_not_blamed_on_the_cache(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), file_system_errors(tmp_path / "cache"):
        (tmp_path / "elsewhere" / "file").read_text()


def test_a_directory_is_measured_while_its_files_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "stays").write_bytes(b"1234")
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            (tmp_path / "comes").mkdir()
            (tmp_path / "comes" / "file").touch()
            shutil.rmtree(tmp_path / "comes")

    maker = threading.Thread(target=come_and_go)
    maker.start()
    try:
        assert {disk_usage(tmp_path) for _ in range(2000)} == {4}
    finally:
        ended.set()
        maker.join()


def test_part_of_a_cache_may_be_a_link_to_a_directory_elsewhere(tmp_path: Path) -> None:
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / "cache"
    elsewhere.mkdir()
    linked.symlink_to(elsewhere)
    write_atomically(linked / "facts.json", "{}")
    assert (elsewhere / "facts.json").read_text() == "{}"
