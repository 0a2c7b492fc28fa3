"""Caches against another simulator, on user code: Cachegrind's misses with the same geometry, within 3 %.

The last level has as many sets as a page has lines: Cachegrind sees virtual addresses, the model others.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.guests import boot_of
from tests.support.places import SUPPORT

from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import CarriedFile
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.target import Run

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

PROGRAMS = ("matrix", "heap", "chase", "hash", "copies")
MODEL = """\
[machines.cachegrind]
like = "desktop"
l2 = { size = "128K", ways = 32, source = "chosen: 64 sets" }
llc = { size = "128K", ways = 32, source = "chosen: never has what the second level does not" }
prefetch = { value = 0, source = "Cachegrind prefetches nothing" }
strides = { value = 0, source = "Cachegrind prefetches nothing" }
"""
GEOMETRY = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=131072,32,64")
Misses = dict[str, float]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("valgrind") is None:
        pytest.skip("not installed: valgrind (setup/system-packages slow)")
    made = tmp_path_factory.mktemp("cached") / "cached"
    subprocess.run(["gcc", "-O2", "-static", "-o", made, SUPPORT / "cached_programs.c"], check=True)
    return made


@pytest.fixture(scope="module")
def modelled(program: Path, snapshots: Path) -> dict[str, Misses]:
    """What the programs' own instructions missed in a guest, from their start to their end."""
    (program.parent / "model.toml").write_text(MODEL)
    machine = machine_model("model.toml", program.parent)
    assert machine
    boot = boot_of(
        kernel_registry.add("debian:6.12"),
        files=(CarriedFile(host=program, guest="/cached", mode=0o755),),
        # Cachegrind walks no page tables.
        model=machine.model_copy(update={"paging": None}),
    )
    misses = {}
    with ExactMachine(cache=snapshots).instrumented(boot) as target:
        results = target.counted(tuple(Run(argv=("/cached", name)) for name in PROGRAMS))
    for name, result in zip(PROGRAMS, results, strict=True):
        assert result.region
        assert result.exit == 0
        rows = [page.modelled for page in result.region.pages if page.modelled]
        misses[name] = {
            "first": float(sum(row.data_misses for row in rows)),
            "last": float(sum(row.second_misses for row in rows)),
            "instructions": float(result.region.program),
        }
    return misses


def by_cachegrind(program: Path, name: str, directory: Path) -> Misses:
    """The same by Cachegrind."""
    out = f"--cachegrind-out-file={directory / 'out'}"
    words = ("valgrind", "--tool=cachegrind", "--cache-sim=yes", *GEOMETRY, out, program, name)
    said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    numbers = {key: int(value.replace(",", "")) for key, value in re.findall(r"== (.+?):\s+([\d,]+)", said)}
    return {
        "first": numbers["D1  misses"],
        "last": numbers["LL misses"],
        "instructions": numbers["I   refs"],
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_many_misses_as_cachegrind_counts(
    name: str, program: Path, modelled: dict[str, Misses], tmp_path: Path
) -> None:
    expected = by_cachegrind(program, name, tmp_path)
    assert modelled[name]["instructions"] == pytest.approx(expected["instructions"], rel=0.01)
    assert expected["last"] > 50_000
    for level in ("first", "last"):
        assert modelled[name][level] == pytest.approx(expected[level], rel=0.03), level
