"""More families of random functions (see tuning_families), on which the search was not developed.

- `bottleneck`: three wide ranges; the gain is what the tightest of them lets through;
- `either`: two knobs of which either is enough, and both together cost; a small range beside them;
- `trap`: a range with a small hill near its default and a higher one far away, and choices that mostly harm;
- `nested`: a switch lets a choice act, and that choice lets a range act;
- `opposed`: two choices whose best values depend on each other (a table with one good cell), two slopes;
- `oblique`: two ranges that have to keep a proportion, which may be any, and not quite that of the defaults.
"""

from collections.abc import Callable

import numpy as np
from tests.support.tuning_families import At, Maker, Problem, Truth, bump, drawn


def _bottleneck(made: Maker) -> Truth:
    names = [made.span(log=True) for _ in range(3)]
    made.acting += names
    ups = [made.default_place(name) < 0.5 for name in names]
    reach, gain, rest = [made.uniform(0.25, 0.6) for _ in names], made.uniform(0.12, 0.3), made.minor(1)
    start = [made.uniform(0.3, 1.0) for _ in names]

    def acts(at: At) -> float:
        through = []
        for i, name in enumerate(names):
            moved = at.place(name) - made.default_place(name)
            through.append(start[i] + max(-0.5, min(1.0, (moved if ups[i] else -moved) / reach[i])))
        return gain * min(*through, 1.3) + rest(at)

    return acts


def _either(made: Maker) -> Truth:
    names = [made.choice() if made.rng.random() < 0.5 else made.span() for _ in range(2)]
    made.acting += names
    one, two = (made.set_right(name) for name in names)
    gain, cost, rest = made.uniform(0.08, 0.2), made.uniform(0.0, 0.06), made.main(made.uniform(0.03, 0.06))

    def acts(at: At) -> float:
        first, second = one(at), two(at)
        return gain * max(first, second) - cost * first * second + rest(at)

    return acts


def _trap(made: Maker) -> Truth:
    name = made.span()
    made.acting.append(name)
    start = made.default_place(name)
    far = made.away(name, 0.35)
    near = start + (0.15 if far > start else -0.15)
    low, high = made.uniform(0.03, 0.06), made.uniform(0.1, 0.25)
    choices = [made.choice(3) for _ in range(3)]
    made.acting += choices
    worth = [
        {value: 0.0 if at == 0 else made.uniform(-0.12, 0.05) for at, value in enumerate("abcde")}
        for _ in choices
    ]

    def acts(at: At) -> float:
        place = at.place(name)
        hills = max(low * bump((place - near) / 0.08), high * bump((place - far) / 0.12))
        return hills + sum(each[at.value(choice)] for each, choice in zip(worth, choices, strict=True))

    return acts


def _nested(made: Maker) -> Truth:
    switch, choice, span = made.choice(), made.choice(3), made.span()
    made.acting += (switch, choice, span)
    on, wanted = made.other(switch), made.other(choice)
    right = made.set_right(span)
    first, second, third = made.uniform(-0.02, 0.05), made.uniform(0.04, 0.12), made.uniform(0.05, 0.15)
    rest = made.minor(2)

    def acts(at: At) -> float:
        total = rest(at)
        if at.value(switch) == on:
            total += first
            if at.value(choice) == wanted:
                total += second + third * right(at)
        return total

    return acts


def _opposed(made: Maker) -> Truth:
    one, two = made.choice(3), made.choice(3)
    made.acting += (one, two)
    cells = {(a, b): made.uniform(-0.06, 0.04) for a in "abcde" for b in "abcde"}
    cells["a", "a"] = 0.0
    cells[made.other(one), made.other(two)] = made.uniform(0.1, 0.22)
    slopes = [made.span(), made.span()]
    made.acting += slopes
    sizes = [made.uniform(0.02, 0.08) * (1 if made.rng.random() < 0.5 else -1) for _ in slopes]

    def acts(at: At) -> float:
        slope = sum(size * at.place(name) for size, name in zip(sizes, slopes, strict=True))
        return cells[at.value(one), at.value(two)] + slope

    return acts


def _oblique(made: Maker) -> Truth:
    one, two = made.span(), made.span()
    made.acting += (one, two)
    width, gain, loss = made.uniform(0.08, 0.25), made.uniform(0.12, 0.3), made.uniform(0.05, 0.2)
    start = made.default_place(one), made.default_place(two)
    sign = 1.0 if (start[0] < 0.5) == (start[1] < 0.5) else -1.0
    slope, ahead = sign * 2 ** made.uniform(-1.2, 1.2), 1.0 if start[0] < 0.5 else -1.0
    best, beside = made.uniform(0.2, 0.45), made.uniform(-0.15, 0.15) * (made.rng.random() < 0.5)
    rest = made.minor(2)

    def acts(at: At) -> float:
        along = at.place(one) - start[0]
        ridge = bump((at.place(two) - start[1] - slope * along - beside) / width)
        return gain * ridge * bump((ahead * along - best) / 0.3) - loss * (1 - ridge) + rest(at)

    return acts


_UNSEEN: dict[str, Callable[[Maker], Truth]] = {
    "bottleneck": _bottleneck,
    "either": _either,
    "trap": _trap,
    "nested": _nested,
    "opposed": _opposed,
    "oblique": _oblique,
}
UNSEEN = tuple(_UNSEEN)


def unseen(family: str, seed: int) -> Problem:
    """The function of such a family that belongs to a seed."""
    return drawn(family, seed, np.random.default_rng([seed, UNSEEN.index(family), 29]), _UNSEEN[family])
