"""The cache of kernels: several processes at once, one that is killed, a disk that is full."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support import kernel_images as make
from tests.support.kernel_caches import left_over, slow_provider
from tests.support.places import ROOT

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import (
    CacheFull,
    KernelNotFound,
)
from ktrial.kernels.files import file_system_errors, require_space
from ktrial.kernels.kernel_cache import disk_usage

pytestmark = pytest.mark.filterwarnings("ignore:kernel provider broken")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("KTRIAL_CACHE", str(directory))
    return directory


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return make.vmlinuz(tmp_path)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    return slow_provider(tmp_path, monkeypatch)


def test_a_remembered_name_is_fetched_once_until_a_refresh(slow: dict[str, str], tmp_path: Path) -> None:
    first = kernel_registry.add("slow:one")
    assert kernel_registry.add("slow:one") == first
    assert (tmp_path / "fetches").read_text() == "one\n"
    assert kernel_registry.add("slow:one", refresh=True).digest == first.digest
    assert (tmp_path / "fetches").read_text() == "one\none\n"


ADD = "import sys; from ktrial.kernels import kernel_registry; print(kernel_registry.add(sys.argv[1]).digest)"


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
    assert [kernel.name for kernel in kernel_registry.all_kernels()] == ["slow:one"]
    assert left_over(cache) == []


def test_processes_that_add_and_remove_different_kernels_do_not_disturb_each_other(
    slow: dict[str, str], cache: Path
) -> None:
    script = (
        "import sys\nfrom ktrial.kernels import kernel_registry\nfor i in range(5):\n"
        "    k = kernel_registry.add(sys.argv[1]); assert k.image.exists(); kernel_registry.get(k.name)\n"
        "    if i < 4: kernel_registry.remove(k.name)\n"
    )
    names = ("slow:one", "slow:two", "slow:three")
    running = [subprocess.Popen([sys.executable, "-c", script, name], env=slow) for name in names]
    assert [process.wait(timeout=300) for process in running] == [0, 0, 0]
    assert [kernel.name for kernel in kernel_registry.all_kernels()] == sorted(names)
    assert left_over(cache) == []


STAGED = """
import sys
from ktrial.kernels import kernel_registry

def progress(what, done=0, total=0):
    print(what, flush=True)
    if what == sys.argv[2]:
        sys.stdin.read()  # until it is killed, however long that takes

kernel_registry.add(sys.argv[1], progress=progress)
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
    assert kernel_registry.all_kernels() == ()
    assert left_over(cache), "the killed process was in the middle of it"
    with pytest.raises(KernelNotFound):
        kernel_registry.get("slow:one")
    assert kernel_registry.add("slow:one").image.exists()
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
from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry
from ktrial.errors import KtrialError
try:
    kernel_registry.add(sys.argv[1], modules=Path(sys.argv[2]))
except KtrialError as error:
    print(type(error).__name__, error, error.advice, sep="\\n")
print([path.name for path in (cache_directory() / "kernels" / "work").iterdir()])
print(len(kernel_registry.all_kernels()))
"""


@pytest.mark.parametrize("size", ["40k", "80k", "120k", "160k"])
def test_a_full_disk_is_named_and_nothing_half_written_stays(tmp_path: Path, image: Path, size: str) -> None:
    modules = make.module_tree(tmp_path, names=tuple(f"m{number}" for number in range(20)))
    finished = in_a_small_disk(tmp_path / "small", size, FILL, f"path:{image}", str(modules))
    if "unshare" in finished.stderr or "permission denied" in finished.stderr.lower():
        pytest.skip(f"this system forbids user namespaces: {finished.stderr.strip()}")
    assert finished.returncode == 0, finished.stderr
    kind, message, advice, work, count = finished.stdout.splitlines()
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
