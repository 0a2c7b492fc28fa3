"""The cache of kernels: several processes at once, one that is killed, a disk that is full."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support import kernel_images as make
from tests.support.kernel_caches import left_over, slow_provider
from tests.support.killing import begun, forked

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import (
    CacheFull,
    KernelNotFound,
)
from ktrial.kernels.files import file_system_errors, require_space
from ktrial.kernels.kernel_cache import disk_usage, held

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
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_provider(tmp_path, monkeypatch)


@pytest.mark.usefixtures("slow")
def test_a_remembered_name_is_fetched_once_until_a_refresh(tmp_path: Path) -> None:
    first = kernel_registry.add("slow:one")
    assert kernel_registry.add("slow:one") == first
    assert (tmp_path / "fetches").read_text() == "one\n"
    assert kernel_registry.add("slow:one", refresh=True).digest == first.digest
    assert (tmp_path / "fetches").read_text() == "one\none\n"


def at_once(work: Callable[[str], object], *names: str) -> list[int]:
    """Do the work for each of the names, each in a process of its own; what these end with."""

    def and_end(name: str) -> NoReturn:
        work(name)
        os._exit(0)

    processes = [forked(partial(and_end, name)) for name in names]
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]


def test_processes_that_add_the_same_kernel_fetch_it_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_provider(tmp_path, monkeypatch)
    monkeypatch.setenv("SLOW_SECONDS", "0.3")
    assert at_once(kernel_registry.add, *["slow:one"] * 3) == [0, 0, 0]
    assert (tmp_path / "fetches").read_text() == "one\n"
    assert [kernel.name for kernel in kernel_registry.all_kernels()] == ["slow:one"]
    assert left_over(cache) == []


@pytest.mark.usefixtures("slow")
def test_processes_that_add_and_remove_different_kernels_do_not_disturb_each_other(cache: Path) -> None:
    def add_and_remove(name: str) -> None:
        for _ in range(4):
            assert kernel_registry.add(name).image.exists()
            kernel_registry.remove(kernel_registry.get(name).name)
        kernel_registry.add(name)

    names = ("slow:one", "slow:two", "slow:three")
    assert at_once(add_and_remove, *names) == [0, 0, 0]
    assert [kernel.name for kernel in kernel_registry.all_kernels()] == sorted(names)
    assert left_over(cache) == []


STAGES = ("fetching", "unpacking the kernel", "resolving the modules' dependencies", "writing to disk")


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("stage", STAGES)
def test_a_process_killed_in_the_middle_leaves_no_kernel(cache: Path, stage: str) -> None:
    def add_until(pipe: int) -> None:
        def progress(step: str, *_: int) -> None:
            if step == stage:
                os.write(pipe, b"x")
                signal.pause()

        kernel_registry.add("slow:one", progress=progress)

    process = begun(add_until)
    os.kill(process, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert kernel_registry.all_kernels() == ()
    assert left_over(cache), "the killed process was in the middle of it"
    with pytest.raises(KernelNotFound):
        kernel_registry.get("slow:one")
    assert kernel_registry.add("slow:one").image.exists()
    assert left_over(cache) == []


SIZES = ("40k", "80k", "120k", "160k")
FILL = """
import subprocess
import sys
from pathlib import Path
from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry
from ktrial.errors import KtrialError
for size in sys.argv[3:]:
    disk = str(cache_directory())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
    try:
        kernel_registry.add(sys.argv[1], modules=Path(sys.argv[2]))
    except KtrialError as error:
        print(type(error).__name__, error, error.advice, sep="\\t", end="\\t")
    left = [path.name for path in (cache_directory() / "kernels" / "work").iterdir()]
    print(left, len(kernel_registry.all_kernels()), sep="\\t")
    subprocess.run(["umount", disk], check=True)
"""


def test_a_full_disk_is_named_and_nothing_half_written_stays(
    tmp_path: Path, image: Path, cache: Path
) -> None:
    """On small disks, in mount and user namespaces of their own."""
    modules = make.module_tree(tmp_path, names=tuple(f"m{number}" for number in range(20)))
    cache.mkdir()
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", FILL]
    finished = subprocess.run(
        [*command, f"path:{image}", str(modules), *SIZES],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in finished.stderr or "permission denied" in finished.stderr.lower():
        pytest.skip(f"this system forbids user namespaces: {finished.stderr.strip()}")
    assert finished.returncode == 0, finished.stderr
    assert len(finished.stdout.splitlines()) == len(SIZES)
    for line in finished.stdout.splitlines():
        kind, message, advice, work, count = line.split("\t")
        assert kind == "CacheFull"
        assert str(cache) in message
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


def test_who_waits_for_another_process_is_told_for_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.kernels.kernel_cache.WORD_SECONDS", 0.05)
    file, messages = tmp_path / "lock", list[str]()
    with file.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def progress(step: str, finished: int = 0, total: int = 0) -> None:
            messages.append(step)
            if len(messages) == 3:
                fcntl.flock(other, fcntl.LOCK_UN)

        with held(file, progress, "waiting"):
            pass
    assert messages[0] == "waiting"
    assert all(message.startswith("waiting: ") and message.endswith(" so far") for message in messages[1:])
    assert len(messages) >= 3
