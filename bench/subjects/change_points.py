"""How often change points are found in noise, and steps where they are: ktrial, and Apache Otava beside it.

Otava wants its own versions of numpy and scipy, so it runs in its own environment: the Python of the program
`otava` in PATH (`pipx install apache-otava`).
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from tests.support.noise_models import MEMORY, NEAR, Values, noise, with_steps

from bench.row import Row, median, seconds
from ktrial.stats.change_points import shifts

SERIES, POINTS, LONG = 200, 100, 100_000
_MINUTES = 5
_NOTE = "Apache Otava: not installed (pipx install apache-otava puts the program otava in PATH)"
_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
found = []
for series in json.load(sys.stdin):
    points, _ = compute_change_points(series, window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    found.append([int(point.index) for point in points])
print(json.dumps(found))
"""
Found = list[list[int]]
Finder = Callable[[Sequence[Values]], Found]


def rows() -> Iterator[Row]:
    """How long series of 100 and of 100,000 points take."""
    rng = np.random.default_rng(1)
    short, _ = with_steps(rng, noise(rng, SERIES, POINTS, 0.0))
    other = _otava_finder()
    yield Row(
        f"change points of {SERIES} series of {POINTS} points",
        seconds(lambda: _ktrial(list(short))),
        against="Otava" if other else "",
        other_seconds=seconds(lambda: other(list(short))) if other else None,
        note="" if other else _NOTE,
    )
    long = rng.standard_normal(LONG) + 2.0 * (np.arange(LONG) >= LONG // 2)
    took = median([seconds(lambda: shifts(long)) for _ in range(3)])
    yield Row(f"change points of one series of {LONG:,} points", took, most_seconds=2.0)


def tables() -> Iterator[Table]:
    """Of 200 series of 100 points: how many of pure noise show a change; of how many a step is found."""
    finders: dict[str, Finder] = {"ktrial": _ktrial}
    if other := _otava_finder():
        finders["Otava, p < 0.001"] = other
    drawn = Table(
        "noise",
        *(f"{name}: false" for name in finders),
        *(f"{name}: within ±{NEAR}" for name in finders),
        title=f"{SERIES} series of {POINTS} points: any change in noise; steps of 2 SD found",
    )
    for name, phi in MEMORY.items():
        rng = np.random.default_rng(2)
        plain = noise(rng, SERIES, POINTS, phi)
        stepped, places = with_steps(rng, noise(rng, SERIES, POINTS, phi))
        false = [_share([bool(one) for one in find(list(plain))]) for find in finders.values()]
        shares = [_share(_near(find(list(stepped)), list(places))) for find in finders.values()]
        drawn.add_row(name, *false, *shares)
    yield drawn


def _near(placed: Found, places: Sequence[int]) -> list[bool]:
    pairs = zip(placed, places, strict=True)
    return [any(abs(one - place) <= NEAR for one in ones) for ones, place in pairs]


def _share(seen: list[bool]) -> str:
    return f"{100 * sum(seen) / len(seen):.1f} %"


def _ktrial(series: Sequence[Values]) -> Found:
    return [[shift.place for shift in shifts(one)] for one in series]


def _otava_finder() -> Finder | None:
    program = shutil.which("otava")
    first = Path(program).read_bytes().partition(b"\n")[0] if program else b""
    if not first.startswith(b"#!"):
        return None
    python = first[2:].decode().split()

    def find(series: Sequence[Values]) -> Found:
        asked = json.dumps([list(one) for one in series])
        done = subprocess.run(
            [*python, "-c", _OTAVA],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
            timeout=60 * _MINUTES,
        )
        answer: Found = json.loads(done.stdout)
        return answer

    return find
