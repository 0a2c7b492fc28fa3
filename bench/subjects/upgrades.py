"""The study of kernel upgrades: five kernels from the cache by 25 workloads, on all cores."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, seconds
from ktrial.cli.studies import registry
from ktrial.experiment.session import run
from ktrial.kernels import kernel_registry
from ktrial.model.trial import Outcome
from ktrial.store.store import open_store
from ktrial.studyfile.reader import load

STUDY = Path(__file__).parents[2] / "studies" / "kernel-upgrades.toml"
LONGEST = 15 * 60.0
"""Seconds on two idle cores."""


def rows() -> Iterator[Row]:
    """One run of the whole study, in a store of its own; what is booted the first time is in it."""
    study = load(STUDY, registry())
    (kernel,) = study.factors
    for level in kernel.levels:
        kernel_registry.add(str(level))
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, open_store(f"{scratch}/store.db") as store:
        took = seconds(lambda: run(study, store=store))
        (stored,) = store.studies()
        failed = sum(trial.outcome is not Outcome.COMPLETED for trial in store.trials(stored.id))
    note = f"{failed} of its trials failed" if failed else ""
    what = f"{STUDY.stem}: {len(kernel.levels)} kernels × {len(study.workloads)} workloads"
    yield Row(what, took, most_seconds=LONGEST, note=note)
