"""How often change points are found in noise, and steps where they are; Apache Otava and PELT beside ktrial.

Otava wants its own versions of numpy and scipy, so it runs in its own environment: the Python of the program
`otava` in PATH (`pipx install apache-otava`). PELT is that of ruptures, where the same environment has it
(`pipx inject apache-otava ruptures`): normal costs, at least 3 points a segment, penalty 3 log n.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from tests.support.noise_models import MEMORY, NEAR, Values, noise, with_steps
from tests.support.noisy_series import KINDS, share_placed

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
_PELT = """
import json, sys
import numpy as np
import ruptures
found = []
for series in json.load(sys.stdin):
    values = np.array(series)
    noise = np.median(np.abs(np.diff(values))) / 0.6745 / 2**0.5
    fitted = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(values / noise)
    found.append(fitted.predict(pen=3 * np.log(len(values)))[:-1])
print(json.dumps(found))
"""
Found = list[list[int]]
Finder = Callable[[Sequence[Values]], Found]


def rows() -> Iterator[Row]:
    """How long series of 100 and of 100,000 points take."""
    rng = np.random.default_rng(1)
    short, _ = with_steps(rng, noise(rng, SERIES, POINTS, 0.0))
    other = _finder(_OTAVA)
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
    """Of 200 series of 100 points: how many of pure noise show a change; of how many a step is found.

    And of 200 of 120 points: levels that come back, steps in a row, walks.
    """
    finders: dict[str, Finder] = {"ktrial": _ktrial}
    for name, script in (("Otava, p < 0.001", _OTAVA), ("PELT", _PELT)):
        if other := _finder(script):
            finders[name] = other
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
    others = Table("series", *finders, title=f"{SERIES} series of 120 points: changes within ±{NEAR}")
    for name, draw in KINDS.items():
        series, ends = draw(np.random.default_rng(3), SERIES)
        changes = {finder: find(list(series)) for finder, find in finders.items()}
        if any(ends):
            cells = [f"{100 * share_placed(ends, seen, NEAR):.1f} %" for seen in changes.values()]
            others.add_row(name, *cells)
        else:
            others.add_row(
                f"{name}: any change", *(_share(list(map(bool, seen))) for seen in changes.values())
            )
    yield others


def _near(placed: Found, places: Sequence[int]) -> list[bool]:
    pairs = zip(placed, places, strict=True)
    return [any(abs(one - place) <= NEAR for one in ones) for ones, place in pairs]


def _share(seen: list[bool]) -> str:
    return f"{100 * sum(seen) / len(seen):.1f} %"


def _ktrial(series: Sequence[Values]) -> Found:
    return [[shift.place for shift in shifts(one)] for one in series]


def _finder(script: str) -> Finder | None:
    """What the script finds in Otava's environment; None where there is none, or it lacks a package."""
    program = shutil.which("otava")
    first = Path(program).read_bytes().partition(b"\n")[0] if program else b""
    if not first.startswith(b"#!"):
        return None
    python = first[2:].decode().split()
    tried = subprocess.run([*python, "-c", script], input="[]", capture_output=True, text=True, check=False)
    if tried.returncode:
        return None

    def find(series: Sequence[Values]) -> Found:
        asked = json.dumps([list(one) for one in series])
        done = subprocess.run(
            [*python, "-c", script],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
            timeout=60 * _MINUTES,
        )
        answer: Found = json.loads(done.stdout)
        return answer

    return find
