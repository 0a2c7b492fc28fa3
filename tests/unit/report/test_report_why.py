"""The report's 'why': which comparisons have one, that its rows add up, how each kind of report shows it."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.support.drawings import assert_only_its_own_script_runs, without_its_script
from tests.support.profiles import a_profile, with_calls
from tests.support.report_records import a_counted_matrix, a_counted_record, explained_by, whys_for
from tests.unit.report.test_flame_graph import AFTER, BEFORE

from ktrial import report
from ktrial.analysis.errors import NotCounted
from ktrial.cli.render.next_step import next_steps, prove_command
from ktrial.cli.render.study_result import print_whys
from ktrial.errors import KtrialError
from ktrial.experiment.explain import stored_explanations
from ktrial.kernels.errors import KernelError
from ktrial.model.attribution import CounterDifference, Differences
from ktrial.model.comparison import Verdict
from ktrial.model.design import FactorKind
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord
from ktrial.report.attribution import TOP, Why, explained, sections
from ktrial.report.csv_and_json import whys_as_json
from ktrial.store.store import Store, open_store

CHANGED = {Verdict.BETTER, Verdict.WORSE, Verdict.INCONCLUSIVE}


@pytest.fixture(scope="module")
def record() -> StudyRecord:
    return a_counted_record()


@pytest.fixture(scope="module")
def whys(record: StudyRecord) -> tuple[Why, ...]:
    return whys_for(record)


@pytest.fixture(scope="module")
def page(record: StudyRecord, whys: tuple[Why, ...]) -> str:
    return report.study_html(record, whys)


def frames_in(page: str) -> list[dict[str, Any]]:
    """The data of the flame graphs that the page's script draws."""
    graphs = re.findall(r'<script type="application/json" class="frames">(.*?)</script>', page, re.DOTALL)
    return [json.loads(graph) for graph in graphs]


def many_functions(kernel: str, step: int) -> Profile:
    functions = {(f"function_{number}", ""): 1000 + step * number for number in range(40)}
    return a_profile(functions, kernel=kernel)


def stored(record: StudyRecord, store: Store) -> StudyRecord:
    """The study in a store, each trial with a profile of each of its workloads."""
    number = store.study(record.study)
    for trial in record.trials:
        second = trial.planned.treatment.label == "debian:6.12"
        calls = with_calls(AFTER if second else BEFORE, kernel=trial.planned.treatment.label)
        labels = dict.fromkeys(sample.workload for sample in trial.samples)
        profiles = tuple(calls.model_copy(update={"workload": label}) for label in labels)
        store.add_trial(number, trial.model_copy(update={"profiles": profiles}))
    return record.model_copy(update={"id": number})


def test_the_rows_add_up_to_the_whole_difference(record: StudyRecord) -> None:
    comparison = record.result.comparisons[0]
    why = explained(
        [comparison], explained_by(many_functions("debian:6.1", 0), many_functions("debian:6.12", 7))
    )
    assert len(why.parts) == TOP
    above = why.rows[:-1]
    assert sum(part.difference for part in above) == pytest.approx(why.total.difference)
    assert sum(part.share or 0 for part in above) == pytest.approx(1)
    # One function did not change at all; the user's program is a row, too.
    assert why.remainder.name == "26\u00a0other rows"
    assert why.unexplained == 0


def test_without_calls_there_is_no_flame_graph(record: StudyRecord) -> None:
    comparison = record.result.comparisons[0]
    why = explained(
        [comparison], explained_by(many_functions("debian:6.1", 0), many_functions("debian:6.12", 7))
    )
    assert why.frames is None
    page = report.study_html(record, (why,))
    assert "function_39" in page
    assert 'class="frames"' not in page
    assert 'id="flame"' not in page
    assert "Differential flame graph" not in page


def test_what_has_changed_or_may_have_is_explained_and_nothing_else(
    record: StudyRecord, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        reasons = report.whys(store, stored(record, store), stored_explanations)
    changed = [
        comparison.workload for comparison in record.result.comparisons if comparison.verdict in CHANGED
    ]
    assert [why.workload for why in reasons] == changed
    assert len(changed) < len(record.result.comparisons)
    for why in reasons:
        assert (why.baseline, why.treatment) == ("debian:6.1", "debian:6.12")
        assert why.total.difference == pytest.approx(0.8)
        assert why.frames


def test_that_kernels_are_missing_in_the_cache_is_told_in_every_form(
    record: StudyRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without their images less is known of which function is which: rows may be others, in another order."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "nothing"))
    with open_store(str(tmp_path / "store.db")) as store:
        reasons = report.whys(store, stored(record, store), stored_explanations)
    assert reasons
    console = Console(width=300, record=True, file=io.StringIO())
    print_whys(reasons, console)
    texts = (
        console.export_text(),
        report.study_markdown(record, reasons),
        report.study_html(record, reasons),
    )
    for text in texts:
        assert "the kernel of debian:6.1 is not in the cache" in text
    assert texts[0].count("warning: functions:") == 1
    assert "kernel of debian:6.1 is not" in whys_as_json(reasons)[0]["notice"]


def test_where_both_kernels_are_there_nothing_is_told(record: StudyRecord, whys: tuple[Why, ...]) -> None:
    assert "is not in the cache" not in report.study_markdown(record, whys)


def test_a_study_without_profiles_has_none(record: StudyRecord, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        number = store.study(record.study)
        for trial in record.trials:
            store.add_trial(number, trial)
        assert report.whys(store, record.model_copy(update={"id": number}), stored_explanations) == ()


def test_the_page_has_each_why_linked_from_its_comparison(page: str, whys: tuple[Why, ...]) -> None:
    links = re.findall(r'class="to-why" href="#(why-\d+)"', page)
    assert links == [f"why-{number}" for number in range(1, len(whys) + 1)]
    assert all(f'id="{link}"' in page for link in links)
    assert len(frames_in(page)) == len(whys)


def test_a_whole_page_has_every_flame_graph_drawn_and_every_section_open(
    record: StudyRecord, whys: tuple[Why, ...]
) -> None:
    whole = report.study_html(record, whys, whole=True)
    assert whole.count('<svg xmlns="http://www.w3.org/2000/svg" class="flame"') == len(whys)
    assert frames_in(whole) == []
    assert "<noscript" not in whole
    assert [tag for tag in re.findall(r"<details[^>]*>", whole) if " open" not in tag] == []


def test_the_frames_of_a_page_are_those_of_the_drawing(page: str, whys: tuple[Why, ...]) -> None:
    for data, why in zip(frames_in(page), whys, strict=True):
        assert why.frames
        assert [frame_[:2] for frame_ in data["frames"]] == [
            [frame_.name, frame_.parent] for frame_ in why.frames.frames
        ]
        for values, frame in zip(data["frames"], why.frames.frames, strict=True):
            inclusive, exclusive = values[2:5], values[5:8] or values[2:5]
            assert inclusive == pytest.approx([*frame.inclusive, frame.inclusive.difference])
            assert exclusive == pytest.approx([*frame.exclusive, frame.exclusive.difference])


def test_what_else_differs_is_said_beside_the_functions(page: str) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for line in (
        "kernel: debian:6.1 → debian:6.12",
        "+init_on_alloc=1",
        "+LRU_GEN (mm)",
        "HZ 250 → 1000 (timers)",
        "block/ram0/queue/read_ahead_kb: 128 → 8192",
        "vmstat.pgfault: 4.5 → 5.25",
        "settings: those of debian:6.1 were not read",
    ):
        assert line in text
    assert "UNRELATED" not in text


def test_of_many_differences_the_first_are_shown_and_the_others_counted() -> None:
    many = tuple(CounterDifference(counter=f"c{n}", before=1, after=2) for n in range(20))
    (section,) = sections(Differences(counters=many))
    assert len(section.lines) == 12
    assert section.left_out == 8


def test_only_the_page_s_own_script_may_run(page: str) -> None:
    assert_only_its_own_script_runs(page)


def test_a_hostile_function_s_name_stays_a_name(record: StudyRecord) -> None:
    name = "</script><script>alert(1)</script>"
    before, after = a_profile({(name, ""): 100}), a_profile({(name, ""): 200})
    why = explained([record.result.comparisons[0]], explained_by(before, after))
    for whole in (False, True):
        page = without_its_script(report.study_html(record, (why,), whole=whole))
        assert "<script>" not in page
        assert "alert(1)</script>" not in page
    assert f"`{name}`" in report.study_markdown(record, (why,))


@pytest.mark.nightly
def test_the_page_of_five_kernels_stays_below_a_megabyte() -> None:
    record = a_counted_matrix()
    whys = whys_for(record)
    assert len(whys) == 4 * 21
    assert len(report.study_html(record, whys).encode()) < 1_000_000


def test_the_same_study_gives_the_same_page(record: StudyRecord, whys: tuple[Why, ...], page: str) -> None:
    assert report.study_html(record, whys_for(record)) == page


def test_markdown_has_the_heaviest_functions_and_the_sum(record: StudyRecord, whys: tuple[Why, ...]) -> None:
    text = report.study_markdown(record, whys)
    assert "Why: fork, debian:6.12: +0.8 instructions per operation" in text
    assert "| `copy` | 4 | 7 | +3 | 375.0 |" in text
    assert "| `gone` | 3 | – | −3 | −375.0 |" in text
    assert "| the sum | 10 | 10.8 | +0.8 | 100.0 |" in text


def test_markdown_s_rows_add_up(record: StudyRecord) -> None:
    why = explained(
        [record.result.comparisons[0]], explained_by(many_functions("a", 0), many_functions("b", 7))
    )
    text = report.study_markdown(record, (why,))
    rows = re.findall(r"^\| (.+?) \| \S+ \| \S+ \| ([+−]?[\d.,]+) \|", text, re.MULTILINE)
    numbers = {name: float(number.replace("−", "-").replace(",", "")) for name, number in rows}
    shown = [number for name, number in numbers.items() if name != "the sum" and "function_" in name]
    assert sum(shown) + numbers["all others"] == pytest.approx(numbers["the sum"])


def test_the_terminal_has_a_line_for_each(whys: tuple[Why, ...]) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    print_whys(whys, console)
    text = console.export_text()
    assert "  fork +0.8 (10 → 10.8): new +0.8" in text, "copy +3 and gone −3 cancel"
    assert len([line for line in text.splitlines() if line.startswith("  ")]) == len(whys)


def test_json_has_the_rows_and_what_is_left(whys: tuple[Why, ...]) -> None:
    (why, *_) = whys_as_json(whys)
    assert why["difference"] == pytest.approx(0.8)
    parts = [*why["functions"], why["others"]]
    assert sum(part["difference"] for part in parts) == pytest.approx(0.8)
    assert why["functions"][0] == {
        "function": "copy",
        "subsystem": "other",
        "match": "same",
        "from": 4,
        "to": 7,
        "difference": 3,
        "share": pytest.approx(3.75),
        "string_bytes_difference": 0,
    }


@pytest.mark.parametrize(
    "problem",
    [
        NotCounted(study="quick", treatment="debian:6.12", workload="fork", problem=""),
        KernelError(name="debian:6.12", problem="it is damaged"),
    ],
)
def test_a_reason_that_cannot_be_told_is_no_reason_for_no_report(
    problem: KtrialError, record: StudyRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain_record(*_: object) -> None:
        raise problem

    monkeypatch.setattr("ktrial.experiment.explain.explain_record", explain_record)
    with open_store(str(tmp_path / "store.db")) as store:
        assert report.whys(store, stored(record, store), stored_explanations) == ()


def test_the_next_command_measures_the_first_change_that_is_not_measured(whys: tuple[Why, ...]) -> None:
    study = a_counted_record()
    command = prove_command(study, whys, "some.db")
    assert command == f"ktrial explain {study.id} --workload fork --prove --store some.db"
    three = a_counted_matrix()
    assert "--to debian:6.12 --prove" in prove_command(three, whys, None)


def test_the_next_command_is_of_the_largest_change(whys: tuple[Why, ...]) -> None:
    (why, *_), study = whys, a_counted_record()
    faster = why.total._replace(before=2000.0, after=1900.0, difference=-100.0)
    slower = why.total._replace(before=200.0, after=230.0, difference=30.0)
    several = (why._replace(workload="pipe", total=faster), why._replace(workload="fork", total=slower))
    assert "--workload fork " in prove_command(study, several, None)
    assert "--workload fork " in prove_command(study, several[::-1], None)
    new = why._replace(workload="mmap", total=why.total._replace(before=None, difference=3.0))
    assert "--workload mmap " in prove_command(study, (*several, new), None)


def test_where_a_side_has_no_numbers_nothing_is_to_be_explained() -> None:
    record = a_counted_record()
    assert next_steps(record, None)[0][0] == f"ktrial explain {record.id} --workload fork"
    without = [row.model_copy(update={"ratio": None}) for row in record.result.comparisons]
    failed = record.result.model_copy(update={"comparisons": tuple(without)})
    ((command, _),) = next_steps(record.model_copy(update={"result": failed}), "some.db")
    assert command == f"ktrial show {record.id} -v --store some.db"


def test_where_no_kernel_differs_no_command_is_named(record: StudyRecord, whys: tuple[Why, ...]) -> None:
    factors = tuple(factor.model_copy(update={"kind": FactorKind.BOOT}) for factor in record.study.factors)
    settings = record.model_copy(update={"study": record.study.model_copy(update={"factors": factors})})
    assert prove_command(settings, whys, None) == ""
    assert prove_command(record, (), None) == ""
