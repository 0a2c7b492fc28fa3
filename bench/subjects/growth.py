"""What each step from trial to page costs as a study, or the store, grows: processor time, and the exponent.

The exponent is the slope of a line through log(size) and log(processor time): 1 where twice as much costs
twice as much. Sizes at which a step takes next to nothing say nothing about it, and are left out.
"""

import gc
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.support.grown_studies import growing_study, grown_store, trials_of

from bench.row import Row, told
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.analysis.result import load_record, result
from ktrial.cli.render.matrix import print_matrix
from ktrial.cli.render.study_result import print_result
from ktrial.experiment.explain import stored_explanations
from ktrial.model.study import Study, plan, treatments
from ktrial.report import comparisons_csv, samples_csv, study_html, study_markdown
from ktrial.report.history import history_page
from ktrial.report.matrix import matrix, matrix_page
from ktrial.report.site.site import build
from ktrial.store.store import Store, open_store

LARGE = "KTRIAL_BENCH_LARGE"
"""Where it is set to 1 in the environment, stores of up to a million trials are measured too."""
SIZES = (30, 100, 300)
"""Treatments of one workload, and workloads of three treatments."""
STORE_SIZES = (1_000, 10_000, 100_000)
SITE_SIZES = (300, 1_000, 3_000)
PAGE_SIZES = (4, 12, 36)
"""Treatments of one workload: their page has charts, which take a hundred times as long as its text."""
BLOCKS = 6
LINEAR = 1.0
TOLERANCE = 0.3
"""Of an exponent: sorting, caches of the processor, and what else the machine does."""
_SHORTEST = 0.02
"""Seconds below which a step's time is not its work's, but that of what all sizes have in common."""

_LONG = 0.5
"""Seconds from which one round will do."""

Steps = dict[str, float]
"""A step's name → its processor seconds."""


@dataclass(frozen=True)
class Growth:
    """A step at growing sizes."""

    what: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float | None:
        """None where the step takes next to nothing at all sizes but one."""
        pairs = [
            (size, took) for size, took in zip(self.sizes, self.seconds, strict=True) if took >= _SHORTEST
        ]
        if len(pairs) < 2:
            return None
        sizes, took = np.log(np.array(pairs)).T
        return float(np.polyfit(sizes, took, 1)[0])

    def row(self) -> Row:
        """For the table of all subjects: the processor time at the largest size."""
        most = LINEAR + TOLERANCE
        return Row(self.what, self.seconds[-1], exponent=self.exponent, most_exponent=most)


_MEASURED: list[Growth] = []


def rows() -> Iterator[Row]:
    """Each step's processor time at the largest size, with its exponent."""
    with _scratch() as scratch:
        for each in _all(scratch):
            _MEASURED.append(each)
            yield each.row()


def tables() -> Iterator[Table]:
    """Each step's processor time at every size."""
    for sizes in dict.fromkeys(each.sizes for each in _MEASURED):
        drawn = Table(
            "step", *(f"{size:,}" for size in sizes), "exponent", title="processor time, as it grows"
        )
        for each in _MEASURED:
            if each.sizes == sizes:
                exponent = "" if each.exponent is None else f"{each.exponent:.2f}"
                drawn.add_row(each.what, *map(told, each.seconds), exponent)
        yield drawn


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        yield Path(directory)


def _all(scratch: Path) -> Iterator[Growth]:
    for kind, timed in (("real time", True), ("exact", False)):
        yield from _grown(f"treatments, {kind}", SIZES, partial(_of_treatments, timed=timed))
        yield from _grown(f"workloads, {kind}", SIZES, partial(_of_workloads, timed=timed))
    yield from _grown("treatments", PAGE_SIZES, _of_page)
    large = (1_000_000,) if os.environ.get(LARGE) == "1" else ()
    yield from _grown("trials in the store", STORE_SIZES + large, partial(_of_store, scratch))
    yield from _grown("trials in the site", SITE_SIZES, partial(_of_site, scratch))


def _grown(what: str, sizes: Sequence[int], steps: Callable[[int], Steps]) -> Iterator[Growth]:
    steps(sizes[0])  # what is loaded and worked out once is no part of any size
    by_size = [steps(size) for size in sizes]
    for step in by_size[0]:
        yield Growth(f"{what}: {step}", tuple(sizes), tuple(each[step] for each in by_size))


def _cpu(action: Callable[[], object], rounds: int = 3) -> float:
    """Processor seconds of the fastest round: what else the machine does only adds to them."""
    took = []
    for _ in range(rounds):
        gc.collect()
        before = time.process_time()
        action()
        took.append(time.process_time() - before)
        if took[-1] > _LONG:
            break
    return min(took)


def _of_treatments(size: int, *, timed: bool) -> Steps:
    return _of_study(growing_study(size, timed=timed, blocks=BLOCKS))


def _of_workloads(size: int, *, timed: bool) -> Steps:
    return _of_study(growing_study(3, workloads=size, timed=timed, blocks=BLOCKS))


def _of_study(study: Study) -> Steps:
    """One study, from its plan to its pages."""
    trials = tuple(trials_of(study, environments=bool(study.timing)))
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as scratch,
        open_store(Path(scratch) / "one.db") as store,
    ):
        number = store.study(study)
        steps = {
            "plan": _cpu(lambda: plan(study)),
            "stored": _cpu(lambda: [store.add_trial(number, trial) for trial in trials], rounds=1),
            "read": _cpu(lambda: store.trials(number)),
            "result": _cpu(lambda: result(study, trials)),
        }
        return steps | _pages(store, number)


def _pages(store: Store, number: int) -> Steps:
    recorded, studies = load_record(store, number), stored_numbers(store)
    cells = matrix(recorded)
    label = recorded.study.workloads[0].label
    labels = [use.label for use in recorded.study.workloads]
    return {
        "show": _cpu(lambda: print_result(recorded, _nowhere())),
        "report, Markdown": _cpu(lambda: study_markdown(recorded)),
        "report, CSV": _cpu(lambda: (comparisons_csv(recorded), samples_csv(recorded))),
        "matrix": _cpu(lambda: print_matrix(matrix(recorded), _nowhere())),
        "matrix, page": _cpu(lambda: matrix_page(cells)),
        "history": _cpu(lambda: [history(studies, each) for each in labels]),
        "history, page": _cpu(lambda: history_page(history(studies, label))),
    }


def _of_page(size: int) -> Steps:
    study = growing_study(size, timed=False)
    with _scratch() as scratch, open_store(scratch / "one.db") as store:
        number = store.study(study)
        for trial in trials_of(study):
            store.add_trial(number, trial)
        stored = load_record(store, number)
        return {"report, HTML": _cpu(lambda: study_html(stored), rounds=1)}


def _nowhere() -> Console:
    return Console(file=io.StringIO(), width=120)


def _of_store(scratch: Path, trials: int) -> Steps:
    """A store of so many trials, 100 a study."""
    path = scratch / f"{trials}.db"
    if not path.exists():
        grown_store(scratch, trials)
    with open_store(path) as store:
        return {
            "list": _cpu(lambda: [len(treatments(one.study)) for one in store.studies()]),
            "one study found": _cpu(lambda: [store.find(1) for _ in range(20)]),
            "one study shown": _cpu(lambda: load_record(store, 1)),
            "history": _cpu(lambda: history(stored_numbers(store), "load-0000")),
        }


def _of_site(scratch: Path, trials: int) -> Steps:
    path = scratch / f"{trials}.db"
    if not path.exists():
        grown_store(scratch, trials)
    with open_store(path) as store, _scratch() as directory:

        def build_it() -> None:
            build(store, directory / "site", explain=stored_explanations, notes=directory / "notes")

        return {"site": _cpu(build_it, rounds=1), "site, again": _cpu(build_it, rounds=1)}
