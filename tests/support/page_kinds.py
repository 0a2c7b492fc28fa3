"""Every kind of page that ktrial makes, of small and of large studies, for tests of how pages look."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.grown_studies import growing_study, trials_of
from tests.support.report_records import (
    FIVE,
    VALUES,
    a_counted_record,
    a_factorial,
    a_matrix,
    a_record,
    a_single_comparison,
    a_study_with_failures,
    a_study_without_comparisons,
    whys_for,
)
from tests.support.scripted import ScriptedMachine
from tests.support.series import SeriesBuilder, a_series, answer, runs
from tests.support.tuning import a_result
from tests.support.tuning import a_study as a_search
from tests.unit.analysis.test_fidelity import COUNTED, LIKE_IT, measured
from tests.unit.report.test_report_proofs import a_proof
from tests.unit.series.test_series_page import SOURCE, counted

from ktrial import report
from ktrial.analysis.fidelity import fidelity
from ktrial.analysis.replication import compared
from ktrial.analysis.result import result
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.kernel import Build, KernelDifference, KernelSide, OptionChange, Respect
from ktrial.model.replication import Circumstance, KernelHad
from ktrial.model.study import Measurement, StudyRecord
from ktrial.model.workload import WorkloadUse
from ktrial.report.fidelity import fidelity_page
from ktrial.report.patch_series_page import series_page
from ktrial.report.replication import replication_page
from ktrial.report.tuning import tuning_page
from ktrial.series.run import SeriesRun
from ktrial.store.store import open_store

CHANGES = (1.1378, 2.8889, 0.1184, 1.0102, 0.9669, 1.0)
"""What no axis has room for beside a margin of 1 % that is to be seen."""


def a_grown_record(treatments: int, workloads: int, *, timed: bool = False) -> StudyRecord:
    """Of so many treatments beside the baseline, with numbers from their own seeds, in ns."""
    study = growing_study(treatments + 1, workloads=workloads, timed=timed, blocks=6)
    trials = tuple(trials_of(study, environments=timed))
    return StudyRecord(
        id=7,
        study=study,
        study_digest="5e" * 32,
        created=datetime(2026, 11, 21, 9, 29, tzinfo=UTC),
        planned=len(trials),
        trials=trials,
        result=result(study, trials, lambda _use: ()),
    )


def wide_ranging(record: StudyRecord) -> StudyRecord:
    """The same with changes of a few per cent beside such as no axis has room for, and bytes beside them."""
    changes = cycle(CHANGES)
    changed = tuple(_by(comparison, next(changes)) for comparison in record.result.comparisons)
    beside = tuple(
        _by(comparison, 6.0).model_copy(update={"metric": "string-bytes", "unit": "bytes"})
        for comparison in record.result.comparisons
    )
    both = record.result.model_copy(update={"comparisons": (*changed, *beside)})
    return record.model_copy(update={"result": both})


def _by(comparison: Comparison, ratio: float) -> Comparison:
    verdict = Verdict.EQUIVALENT if abs(ratio - 1) < 0.01 else Verdict.WORSE if ratio > 1 else Verdict.BETTER
    value = None if comparison.baseline_value is None else comparison.baseline_value * ratio
    ends = {"low": ratio * 0.97, "high": ratio * 1.04}
    return comparison.model_copy(update={"ratio": ratio, "value": value, "verdict": verdict, **ends})


def a_proved_record() -> StudyRecord:
    """With a proof of its first comparison, and one between two treatments that it does not compare."""
    counted = a_counted_record()
    comparison = counted.result.comparisons[0]
    proofs = (
        a_proof(comparison.workload, comparison.baseline, comparison.treatment),
        a_proof(comparison.workload, comparison.treatment, "debian:7.2"),
    )
    return counted.model_copy(update={"proofs": proofs})


def a_tuning() -> str:
    tuned = a_result()
    return tuning_page(a_search(tuned), tuned)


def an_explanation() -> str:
    record = a_proved_record()
    return report.study_html(record, whys_for(record), whole=True)


def a_kernel_difference() -> str:
    """Two kernels with long names, and more options than a sheet has lines."""
    before, after = (
        KernelSide(
            name=name,
            release=f"{name[7:]}.0-46-cloud-amd64",
            compiler=f"x86_64-linux-gnu-gcc-{version}",
            digest="a" * 64,
        )
        for version, name in ((10, "debian:5.10"), (14, "debian:6.12"))
    )
    options = tuple(
        OptionChange(option=f"CONFIG_AN_OPTION_OF_A_DRIVER_{at:03}", before="m", after="y", menu=("Drivers",))
        for at in range(120)
    )
    difference = KernelDifference(before=before, after=after, respects=(Respect.OPTIONS,), options=options)
    return report.kernel_difference_html(difference)


def a_replication() -> str:
    """Of five kernels, with numbers that differ by some digits."""
    before = a_record(FIVE, tuple(VALUES))
    now = before.model_copy(
        update={
            "trials": tuple(
                trial.model_copy(
                    update={
                        "samples": tuple(
                            sample.model_copy(update={"value": sample.value * 1.0123456789})
                            for sample in trial.samples
                        )
                    }
                )
                for trial in before.trials
            )
        }
    )
    had = tuple(
        KernelHad(asked=name, digest="ab" * 32, how="the cache", release="6.12.117+deb13-cloud-amd64")
        for name in FIVE
    )
    differs = Circumstance(what="guest program lockstep", before="3afd59290f8d", now="b24281e21b5f")
    replication = compared(before, now, had).model_copy(update={"circumstances": (differs,)})
    return replication_page(replication, before, now)


def a_fidelity() -> str:
    pair = measured("exact", COUNTED, cycles=True), measured("host", LIKE_IT, 0.003)
    return fidelity_page(fidelity([pair]), "two")


def a_series_of_patches() -> str:
    """Three patches: one that makes fork slower, with its flame graph; in pipe nothing of it ran."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        place = Path(name)
        patch.setenv("KTRIAL_CACHE", str(place / "cache"))
        series = series_in_quilt(a_series(place / "q", "doc", "cost-fork-50", "cost-pipe-30"), SOURCE)
        measurement = Measurement((WorkloadUse(name="fork"), WorkloadUse(name="pipe")), perturbations=1)
        with open_store(str(place / "x.db")) as store:
            series_runs = runs(store, SeriesBuilder(), ScriptedMachine(answer))
            made = SeriesRun(series, Build(source=SOURCE), measurement, series_runs, lambda _: None).run()
    cells = tuple(replace(cell, is_idle=cell.workload == "pipe") for cell in counted(made).cells)
    return series_page(replace(made, cells=cells, built_again=(3,)), "ktrial series --quilt q")


Page = Callable[[], str]


def _page_of(record: Callable[[], StudyRecord]) -> Page:
    return lambda: report.study_html(record())


PAGES: dict[str, Page] = {
    "one workload": _page_of(a_single_comparison),
    "several workloads": _page_of(lambda: wide_ranging(a_record())),
    "4 treatments": _page_of(lambda: wide_ranging(a_record(FIVE, tuple(VALUES)))),
    "in real time": _page_of(lambda: a_grown_record(1, 3, timed=True)),
    "two factors": _page_of(a_factorial),
    "failures": _page_of(a_study_with_failures),
    "nothing compared": _page_of(a_study_without_comparisons),
    "an explanation": an_explanation,
    "a search": a_tuning,
    "two kernels": a_kernel_difference,
    "a series": a_series_of_patches,
    "a replication": a_replication,
    "fidelity": a_fidelity,
}
"""Looked at after each change."""

MORE_PAGES: dict[str, Page] = {
    "a matrix": _page_of(a_matrix),
    "60 workloads": _page_of(lambda: a_grown_record(1, 60)),
    "40 treatments": _page_of(lambda: a_grown_record(40, 1)),
    "4 treatments, 60 workloads": _page_of(lambda: a_grown_record(4, 60)),
    "40 treatments, 6 workloads": _page_of(lambda: wide_ranging(a_grown_record(40, 6))),
    "40 treatments, 60 workloads": _page_of(lambda: a_grown_record(40, 60)),
    "several treatments in real time": _page_of(lambda: a_grown_record(4, 3, timed=True)),
}
"""Looked at in the night as well."""
