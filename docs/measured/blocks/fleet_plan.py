"""docs/fleet.md: what 10,000 workers, and every commit of mainline in a year, would need: worked out."""

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
    return table(heads, rows, right=True) + "\n" + prose(_PROSE, **_figures(kernel))


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
