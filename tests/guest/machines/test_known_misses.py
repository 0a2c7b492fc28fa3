"""The model against programs of which it is known what they miss: through QEMU and the plugin, within 1 %."""

import subprocess
from pathlib import Path

import pytest
from tests.support.guests import boot_of, versions
from tests.support.places import SUPPORT

from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import CarriedFile
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.target import Run

pytestmark = pytest.mark.guest

ROUNDS = 2
"""Of the loop, in the region; one before it warms."""
DEPTH = 16
"""Return addresses that the machine desktop keeps."""
CALLS, COINS = 1000, 50_000

TABLE_LINES = 4096 // 8

AROUND = 15
"""What interrupts, and what is around the loop, miss where the loop misses nothing."""

Misses = dict[str, float]

PROGRAMS: dict[tuple[str, ...], Misses] = {
    # 16 KiB are in the first level of 32 KiB, and 4 pages in that of 64.
    ("stride", "16384", "64"): {"data_misses": 0, "translation_misses": 0},
    # 128 KiB are not: each of 2048 lines comes from the second level, where the prefetcher has put it.
    ("stride", "131072", "64"): {"data_misses": 2048, "last_misses": 0, "translation_misses": 0},
    # A line of each of 1024 pages: all in one set of the first level; the second level has the translations.
    ("stride", "4194304", "4096"): {"data_misses": 1024, "translation_misses": 1024, "walks": 0},
    # 16 MiB: lines come from memory only where a page begins. Its translation does, too: a line of tables
    # has eight.
    ("stride", "16777216", "64"): {
        "data_misses": 262_144 + TABLE_LINES,
        "second_misses": 4096 + TABLE_LINES,
        "last_misses": 4096 + TABLE_LINES,
        "walks": 4096,
    },
    # Every third line: the next one is never read, but the prefetcher of strides has the one that is.
    ("stride", "16777216", "192"): {
        "data_misses": 87_382 + TABLE_LINES,
        "second_misses": 4096 + TABLE_LINES,
        "walks": 4096,
    },
    ("deep", "12"): {"mispredictions": 0},
    # What the return stack has lost, and the end of a recursion that is longer than the history.
    ("deep", "40"): {"mispredictions": CALLS * (40 - DEPTH + 1)},
    ("coin", str(COINS)): {"mispredictions": COINS / 2},
}


@pytest.fixture(scope="module", params=versions("debian:6.1", "debian:7.2"))
def counted(
    request: pytest.FixtureRequest, snapshots: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, ...], Misses]:
    """Of each program, what its own instructions missed in a round."""
    program = tmp_path_factory.mktemp("known") / "known"
    source = SUPPORT / "known_misses.c"
    subprocess.run(["gcc", "-O2", "-static", "-o", program, source], check=True)
    boot = boot_of(
        kernel_registry.add(request.param),
        files=(CarriedFile(host=program, guest="/known", mode=0o755),),
        model=machine_model("desktop", Path()),
    )
    steps = tuple(Run(argv=("/known", *arguments)) for arguments in PROGRAMS)
    with ExactMachine(cache=snapshots).instrumented(boot) as target:
        results = target.counted(steps)
    rates = {}
    for arguments, result in zip(PROGRAMS, results, strict=True):
        assert result.region
        rows = [page.modelled.model_dump() for page in result.region.pages if page.modelled]
        rates[arguments] = {name: sum(row[name] for row in rows) / ROUNDS for name in rows[0]}
    return rates


@pytest.mark.nightly
@pytest.mark.parametrize("arguments", PROGRAMS, ids=" ".join)
def test_a_program_misses_what_closed_form_says(
    arguments: tuple[str, ...], counted: dict[tuple[str, ...], Misses]
) -> None:
    for name, expected in PROGRAMS[arguments].items():
        missed = counted[arguments][name]
        assert missed == pytest.approx(expected, rel=0.01, abs=0 if expected else AROUND), name
