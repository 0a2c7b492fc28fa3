"""One ledger of numbers: the same change has the same number wherever it is shown, and names its trials.

A store of ten studies is compared as terminal, page, site, history, matrix, JSON and Python show it. Their
numbers depend on the perturbation, so that whoever divides unlike perturbations by each other shows another
number.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import CommandLine
from tests.support.making import a_sample, a_study
from tests.support.report_records import FIVE, a_value, provenance

import ktrial
from ktrial.analysis.history.change_points import paired
from ktrial.analysis.history.series import history, kernel_pairs
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.analysis.result import load_record, pair_record
from ktrial.format.number_format import change
from ktrial.model.history import Line, Point
from ktrial.model.study import Study, Timing, plan, treatments
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES, Mode
from ktrial.report.site.pages import Pages
from ktrial.stats.sequential.typical_block import typical_ratio
from ktrial.stats.verdict_rules import paired_ratio
from ktrial.store.store import Store, open_store

OLD, NEW, NEWER = FIVE[1:4]
"""6.1, 6.12 and 6.18."""
EXACT_WORKLOADS = ("fork", "pipe", "getppid")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def measured(study: Study, hour: int, **noted: Any) -> Iterator[Trial]:
    """Every trial of the study. What a perturbation does depends on its seed, and on the kernel."""
    begin = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=hour)
    for planned in plan(study).trials:
        kernel, seed = str(planned.treatment.levels["kernel"]), planned.perturbation.layout_seed
        moved = 1 + (seed % 101 if planned.perturbation.number else 0) * 1e-4 * (1 + FIVE.index(kernel) / 3)
        mode = Mode.TIMED if study.timing else Mode.EXACT_CLOCK
        unit = "ns" if study.timing else "instructions/operation"
        yield Trial(
            planned=planned,
            outcome=Outcome.COMPLETED,
            samples=tuple(
                a_sample(use.name, a_value(use.name, kernel, 0) * moved, mode=mode, unit=unit)
                for use in study.workloads
            ),
            provenance=provenance(kernel).model_copy(
                update={"machine": study.machine.kind, "seed": 1, **noted}
            ),
            started=begin + timedelta(seconds=planned.order),
            seconds=1.0,
        )


def add(store: Store, study: Study, *, without: int = 0, **noted: Any) -> int:
    """Its number in the store. `without`: so many of its last trials are not there."""
    number = store.study(study)
    trials = list(measured(study, number, **noted))
    for trial in trials[: len(trials) - without]:
        store.add_trial(number, trial)
    return number


def programs(build: str) -> dict[str, Any]:
    return {"executed": {"workloads": build * 64}}


def ten_studies(directory: Path) -> Path:
    """Of five kernels, under unlike perturbations and seeds, with unlike programs, on several machines."""
    path = directory / "results.db"
    timed: dict[str, Any] = {"machine": {"kind": "kvm"}, "timing": Timing(blocks=12)}
    with open_store(path) as store:
        add(store, a_study("quick", (OLD, NEW), EXACT_WORKLOADS), **programs("a"))
        add(store, a_study("versions", FIVE, ("fork", "pipe")), **programs("a"))
        add(store, a_study("many", (NEW, NEWER), ("fork",), perturbations=5), **programs("a"))
        add(store, a_study("seeded", (OLD, NEW), ("fork",), seed=7), **programs("a"))
        add(store, a_study("large", (OLD, NEWER), ("fork",), machine={"memory_mib": 1024}), **programs("a"))
        add(store, a_study("rebuilt", (NEW, NEWER), ("fork", "getppid")), **programs("b"))
        add(store, a_study("elsewhere", (OLD, NEWER), ("fork",)), qemu="10.0.2", **programs("a"))
        add(store, a_study("interrupted", (OLD, NEW), ("pipe",), perturbations=4), without=1)
        add(store, a_study("timed", (OLD, NEW, NEWER), ("fork",), **timed))
        add(store, a_study("timed-again", (NEWER, FIVE[4]), ("fork",), **timed))
    return path


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    with open_store(path, read_only=True) as store:
        yield store


def baseline_pairs(path: Path) -> list[tuple[str, str, str, str, float]]:
    """Study, workload, baseline, treatment and ratio of each comparison that has one: the reference."""
    with opened(path) as store:
        records = [load_record(store, stored.id) for stored in store.studies()]
    assert len(records) == 10
    return [
        (record.study.name, comparison.workload, comparison.baseline, comparison.treatment, comparison.ratio)
        for record in records
        for comparison in record.result.comparisons
        if comparison.ratio is not None
    ]


def ratio_in_study(store: Store, number: int, workload: str, before: str, after: str) -> float | None:
    """Of any two kernels of a study, as a study of just these two has it."""
    stored = store.find(number)
    sides = {treatment.label: treatment for treatment in treatments(stored.study)}
    if not {before, after} <= sides.keys():
        return None
    trials = store.trials(number)
    if stored.study.timing is None:
        record = pair_record(store, stored, trials, sides[before], sides[after])
        return next(row.ratio for row in record.result.comparisons if row.workload == workload)
    values = {
        side: {
            trial.planned.block: trial.samples[0].value
            for trial in trials
            if trial.planned.treatment.label == side
        }
        for side in (before, after)
    }
    blocks = sorted(values[before])
    return typical_ratio(*([values[side][block] for block in blocks] for side in (before, after)))


def neighbours(line: Line) -> list[tuple[Point, Point]]:
    return list(pairwise(line.points))


def test_an_unrelated_study_does_not_move_the_number_of_a_change(tmp_path: Path, cli: CommandLine) -> None:
    """6.12 was measured under three perturbations, 6.12 and 6.18 under five, then 6.12 under one."""
    path = tmp_path / "results.db"
    with open_store(path) as store:
        add(store, a_study("quick", (OLD, NEW), ("fork",)))
        number = add(store, a_study("compare", (NEW, NEWER), ("fork",), perturbations=5))
        (comparison,) = load_record(store, number).result.comparisons
        add(store, a_study("again", (OLD, NEW), ("fork",), perturbations=1))
    printed = plain(cli("history", "fork", "-v", "--store", str(path)).output)
    lines = json.loads(cli("history", "fork", "--store", str(path), "--json").output)["lines"]
    of_both = {
        (line["points"][place - 1]["version"], point["version"]): (point["ratio"], line)
        for line in lines
        for place, point in enumerate(line["points"])
        if place and {one["study"] for one in line["points"]} == {"compare"}
    }
    ratio, line = of_both[NEW, NEWER]
    assert ratio == comparison.ratio
    assert f"{NEWER}: {plain(change(comparison.ratio))} against {NEW}, worse" in printed
    assert line["trials"] == "10 trials, 5 perturbations of each kernel: study 2 (compare)"
    assert line["trials"] in printed
    assert [one["alone"] for one in lines[1:]] == ["measured with a different set of perturbations"] * 2
    assert printed.count("not compared with the lines above: measured with a different set of") == 2


def test_numbers_of_other_programs_are_not_divided(tmp_path: Path) -> None:
    with open_store(tmp_path / "results.db") as store:
        add(store, a_study("first", (OLD, NEW), ("fork",)), **programs("a"))
        add(store, a_study("second", (NEW, NEWER), ("fork",)), **programs("b"))
        add(store, a_study("third", (NEW, FIVE[4]), ("fork",)))  # it notes nothing, as imported ones
        lines = history(stored_numbers(store), "fork").lines
    kernels = {frozenset(point.version for point in line.points) for line in lines}
    assert kernels == {frozenset({OLD, NEW, FIVE[4]}), frozenset({NEW, NEWER})}
    assert lines[1].alone == "measured with a different build of ktrial's workloads"


def test_a_study_does_not_divide_what_it_cannot_pair(tmp_path: Path) -> None:
    """One trial failed: the other kernel's mean is over other perturbations."""
    with open_store(tmp_path / "results.db") as store:
        number = add(store, a_study("quick", (OLD, NEW), ("fork",)), without=1)
        (comparison,) = load_record(store, number).result.comparisons
    assert None not in (comparison.baseline_value, comparison.value)
    assert (comparison.ratio, comparison.low, comparison.high) == (None, None, None)
    assert comparison.reason.endswith("1 of 3 trials have not run yet")


def test_in_real_time_blocks_of_one_study_are_paired_and_others_are_not(tmp_path: Path) -> None:
    path = ten_studies(tmp_path)
    with opened(path) as store:
        (line,) = (line for line in history(stored_numbers(store), "fork").lines if line.mode is Mode.TIMED)
        timed, again = (store.find(name).id for name in ("timed", "timed-again"))
        assert [(point.version, point.study_id) for point in line.points] == [
            *((OLD, timed), (NEW, timed), (NEWER, timed), (NEWER, again), (FIVE[4], again)),
        ]
        assert [point.ratio is None for point in line.points] == [True, False, False, True, False]
        assert line.ratio is None, "the first and the last have no block in common"


def test_each_ratio_of_a_history_is_that_of_a_study_that_measured_both(tmp_path: Path) -> None:
    """And each comparison of a study is in a history, with the same number."""
    path = ten_studies(tmp_path)
    shown: set[tuple[str, str, str, float | None]] = set()
    with opened(path) as store:
        numbers = stored_numbers(store)
        for workload in EXACT_WORKLOADS:
            for line in history(numbers, workload).lines:
                studies = {point.study_id for point in line.points}
                for before, after in neighbours(line):
                    references = [
                        ratio_in_study(store, study, workload, before.version, after.version)
                        for study in studies
                    ]
                    references = [reference for reference in references if reference is not None]
                    if before.study_id == after.study_id or line.mode in EXACT_MODES:
                        assert after.ratio is not None
                        assert references, "no other study can have been divided"
                        assert set(references) == {after.ratio}
                for first in line.points:
                    for second in line.points:
                        ratio_shown = paired(first, second, line.mode)
                        shown.add((workload, first.version, second.version, ratio_shown))
    for name, workload, old, new, ratio in baseline_pairs(path):
        near = (one[3] for one in shown if one[:3] == (workload, old, new) and one[3] is not None)
        assert any(one == pytest.approx(ratio, rel=1e-12) for one in near), (name, workload)


def pages_of(path: Path) -> Pages:
    store = open_store(path, read_only=True)
    numbers = stored_numbers(store)
    return Pages(numbers, store.studies(), served=True)


def test_every_change_has_the_same_number_wherever_it_is_shown(tmp_path: Path, cli: CommandLine) -> None:
    path = ten_studies(tmp_path)
    pages, store = pages_of(path), str(path)
    by_study: dict[str, list[tuple[str, str, str, float]]] = {}
    for name, *comparison in baseline_pairs(path):
        by_study.setdefault(name, []).append(tuple(comparison))  # type: ignore[arg-type]
    assert len(by_study) == 9, "one is interrupted: its two sides cannot be paired"
    for name, comparisons in by_study.items():
        page_file = tmp_path / f"{name}.html"
        cli("report", name, "--html", str(page_file), "--store", store)
        matrix = cli("matrix", "--study", name, "--store", store).output
        assert f"trials of study {name_of(path, name)} ({name})" in plain(matrix)
        texts = {
            "show -v": cli("show", name, "-v", "--store", store).output,
            "report": page_file.read_text(),
            "markdown": cli("report", name, "--markdown", "--store", store).output,
            "site": pages.text(f"results/{name_of(path, name)}.html") or "",
            "matrix": matrix,
        }
        documents = {
            "show": json.loads(cli("show", name, "--json", "--store", store).output)["comparisons"],
            "matrix": in_matrix(
                json.loads(cli("matrix", "--study", name, "--json", "--store", store).output)
            ),
            "site": json.loads(pages.text(f"results/{name_of(path, name)}.json") or "")["comparisons"],
            "python": in_python(path, name),
        }
        if (
            len({treatment for _, _, treatment, _ in comparisons}) == 1
        ):  # of several the first screen has the sum
            texts["show"] = cli("show", name, "--store", store).output
        for workload, _, treatment, ratio in comparisons:
            for where, text in texts.items():
                assert change(ratio, percent=False) in text, (name, where, workload, treatment)
            for where, rows in documents.items():
                (row,) = (row for row in rows if (row["workload"], row["treatment"]) == (workload, treatment))
                assert row["ratio"] == ratio, (name, where, workload, treatment)


def plain(text: str) -> str:
    """With single spaces that break."""
    return " ".join(text.split())


def name_of(path: Path, name: str) -> int:
    with opened(path) as store:
        return store.find(name).id


def in_matrix(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell["comparison"] for row in document["rows"] for cell in row["cells"] if cell["comparison"]]


def in_python(path: Path, name: str) -> list[dict[str, Any]]:
    with ktrial.open_store(path, read_only=True) as store:
        return [
            {"workload": row.workload, "treatment": row.treatment, "ratio": row.ratio}
            for row in store.result(name).comparisons
        ]


def test_the_pages_of_history_and_of_two_kernels_show_the_numbers_of_the_histories(
    tmp_path: Path, cli: CommandLine
) -> None:
    path = ten_studies(tmp_path)
    pages = pages_of(path)
    with opened(path) as store:
        numbers = stored_numbers(store)
        pasts = [history(numbers, workload) for workload in EXACT_WORKLOADS]
    front = plain(pages.text("index.html") or "")
    for past in pasts:
        page = plain(pages.text(f"history/{past.workload}.html") or "")
        brief = plain(cli("history", past.workload, "--store", str(path)).output)
        printed = plain(cli("history", past.workload, "-v", "--store", str(path)).output)
        for text in (brief, page, printed):
            assert past.answer in text
        first_changes = [change(point.ratio) for point in past.lines[0].points if point.ratio is not None]
        assert all(plain(text) in brief for text in first_changes)
        for line in past.lines:
            assert line.trials in page
            assert line.trials in printed
            for _, after in neighbours(line):
                text = "not paired" if after.ratio is None else plain(change(after.ratio))
                assert text in page
                assert text in printed
        assert plain(change(past.lines[0].ratio)) in front
    pairs = kernel_pairs(pasts)
    assert json.loads(pages.text("compare.json") or "") == json.loads(pairs.model_dump_json())
    names = [kernel.name for kernel in pairs.kernels]
    by_line = {
        (past.workload, line.trials): {point.version: point for point in line.points}
        for past in pasts
        for line in past.lines
        if line.mode in EXACT_MODES
    }
    exact = [line for line in pairs.lines if line.mode in EXACT_MODES]
    assert exact
    for pair_line in exact:
        points = by_line[pair_line.workload, pair_line.trials]
        values = {name: value for name, value in zip(names, pair_line.values, strict=True) if value}
        for old in values:
            for new in values:
                both = (points[old].by_perturbation, points[new].by_perturbation)
                assert values[new] / values[old] == paired_ratio(*both)
