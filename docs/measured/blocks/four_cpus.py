"""docs/schedulers.md: schedulers and allocators on four CPUs, by the results that are kept of two studies."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.study_result import kept
from docs.measured.wording import count, percent, prose, table

_PAGE = "docs/schedulers.md"
_ROWS = (
    ("hackbench", "run"),
    ("hackbench", "run delay, median"),
    ("hackbench", "run delay, p99"),
    ("hackbench", "run delay, largest"),
    ("wakeup1", "wakeup p50"),
    ("wakeup1", "wakeup p99"),
    ("context-switch1", "round trip"),
    ("futex3", "lock, unlock"),
    ("malloc1", "allocate, free"),
    ("fork", "fork, exit, wait"),
    ("fork", "run delay, median"),
    ("loop1", "100 steps"),
)
_TEXT = """
Guest time on 4 CPUs against `{baseline}`, in percent: {trials} trials, at least {seeds} of each
treatment, each of these under another seed (none failed). `≈` is equivalent within 2 %, `?` stands before
what is not decided.
"""


def _text(measuring: Measuring, name: str, head: Callable[[dict[str, Any], str], str]) -> str:
    """The table of a study; `head` says what stands above a treatment's column."""
    told = kept(name)
    measuring.claim(set(told["outcomes"]) == {"completed"}, "no trial failed")
    others = [each for each in told["trials"] if each != told["baseline"]]
    treatments = sorted(others, key=lambda each: _with_numbers(head(told, each)))
    values = {
        "baseline": head(told, told["baseline"]),
        "trials": str(sum(told["trials"].values())),
        "seeds": str(min(told["trials"].values())),
    }
    heads = ("", f"`{values['baseline']}`", *(head(told, each) for each in treatments))
    return f"{prose(_TEXT, **values)}\n{table(heads, _rows(told, treatments), right=True)}"


def _with_numbers(text: str) -> list[tuple[int, str]]:
    """A key that sorts 6.12 after 6.1, and before 6.18."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def _rows(told: dict[str, Any], treatments: list[str]) -> Iterator[tuple[str, ...]]:
    of = {(one["workload"], one["metric"], one["treatment"]): one for one in told["comparisons"]}
    for workload, metric in _ROWS:
        cells = [of[workload, metric, each] for each in treatments if (workload, metric, each) in of]
        if cells:
            baseline = f"{count(cells[0]['baseline_value'])} {cells[0]['unit']}"
            yield (f"{workload}, {metric}", baseline, *map(_cell, cells))


def _cell(one: dict[str, Any]) -> str:
    """The change in percent, with what is decided of it."""
    if one["ratio"] is None:
        return "no value"
    mark = {"equivalent": "≈ ", "inconclusive": "? "}.get(one["verdict"], "")
    return f"{mark}{percent(one['ratio'])}"


def _kernel_and_model(told: dict[str, Any], treatment: str) -> str:
    """`debian:6.1 · preempt=full` → `6.1, full`: the preemption model that was in force."""
    kernel = treatment.partition(" · ")[0].removeprefix("debian:")
    return f"{kernel}, {told['settings'][treatment]['preempt']}"


def _allocator_and_scheduler(told: dict[str, Any], treatment: str) -> str:
    """`scheduler=muqss-5.10.262.patch · SLAB=y` → `SLAB, MuQSS`."""
    del told
    scheduler, allocator = treatment.split(" · ")
    return f"{allocator.removesuffix('=y')}, {'MuQSS' if 'muqss' in scheduler else 'CFS'}"


BLOCKS = (
    Block(
        "schedulers-4-cpus",
        _PAGE,
        partial(_text, name="schedulers_4_cpus", head=_kernel_and_model),
        simulated=True,
    ),
    Block(
        "slab-muqss-4-cpus",
        _PAGE,
        partial(_text, name="slab_muqss_4_cpus", head=_allocator_and_scheduler),
        simulated=True,
    ),
)
