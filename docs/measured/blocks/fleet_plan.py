"""docs/fleet.md: what 10,000 workers, and every commit of mainline in a year, would need: worked out.

Fleets of other sizes are simulated: one client that hands out trials, one after another, and workers.
"""

import heapq
import random

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import count, decimal, prose, table

_COMMITS = 90_000
"""Of mainline in a year, merges left out."""
_BUILD, _MORE = 17.0, 0.3
"""CPU seconds: an incremental build with its link (6.1, configuration guest); a restored trial."""
_SNAPSHOT = 5.0
"""CPU seconds of the first boot of a kernel, which all its trials are restored from."""
_TRIALS = 25 * 3
"""Of a kernel: the built-in workloads, each with three perturbations."""
_HANDED_OUT = 0.00166
"""CPU seconds of client, scheduler and store for a trial (`make bench BENCH=fleet`, 2026-11-24)."""
_WORKERS = 10_000
_DAY, _YEAR = 86_400.0, 365 * 86_400.0
_SIZES = (10, 50, 100, 150, 200, 400, 1_000)
_PERFORMED = 20_000
"""Trials that each simulated fleet performs."""


def _text(measuring: Measuring) -> str:
    del measuring
    parts = (
        ("build", _BUILD),
        ("first boot and its snapshot", _SNAPSHOT),
        (f"{_TRIALS} trials", _TRIALS * _MORE),
    )
    kernel = sum(seconds for _, seconds in parts)
    handed = _TRIALS * _HANDED_OUT
    rows = [(what, decimal(each, 1), _days(each)) for what, each in parts]
    rows.append(("together", decimal(kernel, 1), _days(kernel)))
    rows.append(("client, scheduler, store", decimal(handed, 2), _days(handed)))
    heads = ("part", "CPU seconds a commit", f"core days for {count(_COMMITS, ',')} commits")
    worked_out = table(heads, rows, right=True) + "\n" + prose(_PROSE, **_figures(kernel))
    return (
        worked_out + "\n" + prose(_SIMULATED, more=f"{_MORE:g}", trials=count(_PERFORMED, ",")) + _simulated()
    )


def _simulated() -> str:
    heads = ("workers", "trials a second", "of the workers' time")
    rates = [(size, _rate(size)) for size in _SIZES]
    rows = [
        (count(size, ","), count(rate, ","), f"{100 * rate * _MORE / size:.0f} %") for size, rate in rates
    ]
    return "\n" + table(heads, rows, right=True)


def _rate(workers: int) -> float:
    """Trials a second of a fleet that begins with nothing: who is free waits for the client, first come first
    served; it takes the same time for each trial, and a trial half to one and a half times its mean.
    """
    drawn = random.Random(workers)
    free = [0.0] * workers
    client = 0.0
    for _ in range(_PERFORMED):
        client = max(client, heapq.heappop(free)) + _HANDED_OUT
        heapq.heappush(free, client + _MORE * drawn.uniform(0.5, 1.5))
    return _PERFORMED / max(free)


_PROSE = """
- **Every commit of mainline** ({commits} a year) takes {cores} cores all year round. Commits of a range are
built one after another, as only then a build is incremental: the cores are best as so many workers with a
range each.
- **What hands out trials** is one core, and takes {handed} ms of it a trial: {rate} trials a second. Of
{more} s each it keeps {kept} workers of one trial at a time busy.
- **{workers} workers** of such trials therefore need {clients} clients and schedulers, each with its part of
the kernels and a store that is merged afterwards (`ktrial store merge`): one PostgreSQL for all would have to
take {stored} trials a second. They measure the year's commits, once these are built, in {minutes} minutes.
- One client is enough for {workers} workers where a trial takes {long} s or more.
"""

_SIMULATED = """
Fleets of one client were simulated with these figures: {trials} trials of {more} s each in the mean, half to
one and a half times that, whose workers wait for the client when they are free.
"""


def _figures(kernel: float) -> dict[str, str]:
    rate = 1 / _HANDED_OUT
    return {
        "commits": count(_COMMITS, ","),
        "cores": decimal(_COMMITS * kernel / _YEAR, 2),
        "handed": decimal(1000 * _HANDED_OUT, 2),
        "rate": count(rate, ","),
        "more": f"{_MORE:g}",
        "kept": count(rate * _MORE, ","),
        "workers": count(_WORKERS, ","),
        "clients": count(_WORKERS / (rate * _MORE) + 0.5, ","),
        "stored": count(_WORKERS / _MORE, ","),
        "minutes": decimal(_COMMITS * (_SNAPSHOT + _TRIALS * _MORE) / _WORKERS / 60, 1),
        "long": decimal(_WORKERS / rate, 1),
    }


def _days(seconds: float) -> str:
    return decimal(_COMMITS * seconds / _DAY, 1)


BLOCKS = (Block("fleet-plan", "docs/fleet.md", _text, simulated=True),)
