"""What a trial reads was damaged: `profile` has the undamaged number, mostly with a warning, or refuses.

A mutation of the second test costs 4 s of CPU, and 12 where a snapshot has to be made anew; by night alone.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.support.real_runs import KTRIAL, SHARED, environment, ktrial

from ktrial.cli.error_handling import BUG
from ktrial.installation import cache_directory, package_directory
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


# One damage after another, drawn at random, of each of the four kinds of files that a trial reads.

MUTATIONS = 25
"""Of each kind."""


def flipped(file: Path, draw: random.Random) -> None:
    with file.open("r+b") as opened:
        at = draw.randrange(file.stat().st_size)
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ (1 << draw.randrange(8))]))


def flipped_in_its_old_time(file: Path, draw: random.Random) -> None:
    status = file.stat()
    flipped(file, draw)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def zeroed(file: Path, draw: random.Random) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(draw.randrange(size))
        opened.write(bytes(min(4096, size - opened.tell())))


def cut(file: Path, draw: random.Random) -> None:
    os.truncate(file, draw.randrange(file.stat().st_size))


def emptied(file: Path, _draw: random.Random) -> None:
    os.truncate(file, 0)


def gone(file: Path, _draw: random.Random) -> None:
    file.unlink()


CHANGES = (flipped, flipped_in_its_old_time, zeroed, cut, emptied, gone)
KINDS: Mapping[str, str] = {
    "kernel": "cache/kernels/by-digest/*/*",
    "snapshot": "cache/snapshots/*/[ars]*",
    "symbols": "cache/**/kallsyms",
    "programs": "ktrial/_guest/x86_64/*",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(7200)
def test_no_mutation_makes_another_number(kind: str, cache: Path) -> None:
    """But for ktrial's own programs: another program may have another number, and then that is told."""
    here, draw = cache.parent, random.Random(kind)
    shutil.copytree(package_directory(), here / "ktrial")
    variables = environment(cache) | {"PYTHONPATH": str(here), "KTRIAL_STORE": str(here / "store.db")}

    def measured() -> tuple[int, str, str]:
        # A process of its own: the package that it reads is another one.
        command = (KTRIAL, "profile", "--kernel", NAME, "--workload", "syscall")
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode != BUG, done.stderr
        return done.returncode, done.stdout, done.stderr

    status, number, _ = measured()
    assert status == 0
    for name in ("cache", "ktrial"):
        shutil.copytree(here / name, here / "whole" / name, symlinks=True)
    refused = told = 0
    for turn in range(MUTATIONS):
        for name in ("cache", "ktrial"):
            shutil.rmtree(here / name)
            shutil.copytree(here / "whole" / name, here / name, symlinks=True)
        file = draw.choice(sorted(file for file in here.glob(KINDS[kind]) if file.is_file()))
        change = CHANGES[turn % len(CHANGES)]
        change(file, draw)
        status, output, messages = measured()
        what = f"{turn}: {change.__name__} of {file.relative_to(here)}: {status}\n{output}\n{messages}"
        print(what.splitlines()[0], flush=True)
        refused += status != 0
        told += "damaged" in messages
        if status:
            assert "error:" in messages, what
        elif output != number:
            assert kind == "programs", what
            assert "published" in messages, what
    print(f"{kind}: {MUTATIONS} mutations, {told} told, {refused} of them refused", flush=True)
