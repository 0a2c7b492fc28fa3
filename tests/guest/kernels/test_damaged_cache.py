"""A kernel that was damaged in the cache: `profile` has the undamaged number and a warning, or refuses."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.support.real_runs import SHARED, environment, ktrial

from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

NAME = "debian:6.12"
FUNCTION = "__task_pid_nr_ns"
AFTER_ENDBR64, NOPS = 4, b"\x90" * 5


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Of its own: nothing in it is a link to what others use, apart from packages that were fetched."""
    kernel, cache = kernel_registry.add(NAME), tmp_path / "cache"
    usual = cache_directory() / "kernels"
    for part in ("names", f"by-digest/{kernel.digest}"):
        shutil.copytree(usual / part, cache / "kernels" / part)
    for name in set(SHARED) - {"kernels"}:
        (cache / name).mkdir()
    return cache


def home(cache: Path) -> Path:
    (only,) = (cache / "kernels" / "by-digest").iterdir()
    return only


def without_a_call(cache: Path) -> None:
    """The call of ftrace at the beginning of a function becomes nops: five bytes of code that runs."""
    symbols = (home(cache) / "kallsyms").read_bytes()
    (address,) = (
        int(line.split()[0], 16) for line in _lines(symbols) if line.split()[2] == FUNCTION.encode()
    )
    vmlinux = home(cache) / "vmlinux"
    with vmlinux.open("rb") as file:
        (segment,) = (
            one
            for one in ELFFile(file).iter_segments("PT_LOAD")
            if one["p_vaddr"] <= address < one["p_vaddr"] + one["p_filesz"]
        )
        offset = segment["p_offset"] + address - segment["p_vaddr"] + AFTER_ENDBR64
    _written(vmlinux, offset, NOPS)


def _lines(symbols: bytes) -> list[bytes]:
    return [line for line in symbols.splitlines() if len(line.split()) >= 3]


def _written(path: Path, offset: int, new: bytes) -> None:
    """Size and modification time stay."""
    before, data = path.stat(), bytearray(path.read_bytes())
    assert data[offset : offset + len(new)] != new
    data[offset : offset + len(new)] = new
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def one_bit(path: Path) -> None:
    middle = path.stat().st_size // 2
    _written(path, middle, bytes([path.read_bytes()[middle] ^ 1]))


def every_module(cache: Path) -> None:
    modules = list(home(cache).rglob("*.ko*"))
    assert modules
    for each in modules:
        one_bit(each)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "code that runs": without_a_call,
    "a symbol": lambda cache: one_bit(home(cache) / "kallsyms"),
    "half of the symbols": lambda cache: os.truncate(home(cache) / "kallsyms", 1_000_000),
    "no symbols": lambda cache: os.truncate(home(cache) / "kallsyms", 0),
    "modules": every_module,
}


def profiled(cache: Path) -> tuple[int, str, str]:
    done = ktrial(("profile", "--kernel", NAME, "--workload", "syscall"), environment(cache))
    return done.returncode, done.stdout, done.stderr


def test_never_another_number(cache: Path) -> None:
    status, whole, said = profiled(cache)
    assert (status, "damaged" in said) == (0, False)
    for what, damage in DAMAGES.items():
        damage(cache)
        status, output, said = profiled(cache)
        if status == 0:
            assert output == whole, what
            # Modules of which none is loaded are looked at when one is.
            assert "damaged" in said or what == "modules", what
        else:
            assert "damaged" in said, what
            assert not output, what
