"""The report of a search: one page, and Markdown."""

import pytest
from tests.support.drawn_courses import assert_corners_are_true, assert_searches_are_true
from tests.support.page_scripts import assert_only_its_own_script_runs, without_its_script
from tests.support.report_records import HOSTILE
from tests.support.tunable import a_search
from tests.unit.report.test_report_text import rendered

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import LeftOut, Study
from ktrial.model.tuning import (
    Budget,
    Dimension,
    Effect,
    FrontPoint,
    Goal,
    Guard,
    Importance,
    Objective,
    Observation,
    Purpose,
    Range,
    Space,
    Tuned,
    TunedInteraction,
)
from ktrial.model.workload import Direction, Mode
from ktrial.optimize.deployment_files import answer_of
from ktrial.report.html import tuning
from ktrial.report.markdown import tuning as tuning_markdown

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


def a_space() -> Space:
    return Space(
        dimensions=(
            Dimension(name="vm.swappiness", range=Range(low=0, high=200), default="60"),
            Dimension(
                name="vm.vfs_cache_pressure", range=Range(low=6, high=1600, log=True), default="100", unit="%"
            ),
            Dimension(name="boot:nohz", choices=("", "off"), default=""),
        )
    )


def seen(order: int, purpose: Purpose, value: float | None, **configuration: str) -> Observation:
    named = {name.replace("__", "."): one for name, one in configuration.items()}
    return Observation(
        configuration=named,
        values={} if value is None else {"rps": value, "p99": 10.0},
        failure="it ended with exit status 3" if value is None else "",
        seconds=0.5,
        order=order,
        purpose=purpose,
    )


def a_comparison(metric: str, direction: Direction, ratio: float) -> Comparison:
    return Comparison(
        workload="bench",
        metric=metric,
        unit="",
        direction=direction,
        mode=Mode.TIMED,
        baseline="as it was",
        treatment="answer",
        baseline_value=100.0,
        value=100.0 * ratio,
        ratio=ratio,
        low=ratio - 0.01,
        high=ratio + 0.01,
        verdict=Verdict.BETTER,
    )


def a_result() -> Tuned:
    goal = Goal(
        objectives=(Objective(metric="rps", direction=HIGHER), Objective(metric="p99", direction=LOWER)),
        guards=(Guard(metric="p99", relation="<=", bound=20, unit="ms"),),
        workload="bench",
    )
    confirmed = {"vm.vfs_cache_pressure": "400", "boot:nohz": "off"}
    comparisons = (a_comparison("rps", HIGHER, 1.12), a_comparison("p99", LOWER, 0.95))
    return Tuned(
        space=a_space(),
        goal=goal,
        budget=Budget(runs=20),
        seed=1,
        baseline={"rps": 100.0, "p99": 10.0},
        observations=(
            seen(0, Purpose.CALIBRATE, 100.0),
            seen(1, Purpose.EXPLORE, 125.0, vm__vfs_cache_pressure="400"),
            seen(2, Purpose.EXPLORE, None, vm__swappiness="200"),
            seen(3, Purpose.CONFIRM, 112.0, vm__vfs_cache_pressure="400"),
        ),
        candidate=confirmed,
        confirmed=confirmed,
        comparisons=comparisons,
        kept=(
            Effect(names=("vm.vfs_cache_pressure",), values=("400",), ratio=1.09, low=1.07, high=1.11),
            Effect(names=("boot:nohz",), values=("off",), ratio=1.03, low=1.02, high=1.04),
        ),
        dropped=(
            Effect(
                names=("vm.swappiness",),
                values=("10",),
                ratio=1.0,
                low=0.99,
                high=1.01,
                reason="not worth it",
            ),
        ),
        importance=(Importance(name="vm.vfs_cache_pressure", share=0.8, low=0.7, high=0.9),),
        interactions=(
            TunedInteraction(
                first="vm.vfs_cache_pressure",
                first_values=("100", "400"),
                second="boot:nohz",
                second_values=("", "off"),
                corners=(1.0, 1.06, 1.02, 1.12),
                ratio=1.03,
                low=1.01,
                high=1.05,
            ),
        ),
        front=(FrontPoint(configuration=confirmed, ratios=(1.12, 0.95), runs=9, comparisons=comparisons),),
        noise=0.02,
        smallest_effect=0.015,
        seen=1.25,
        seconds=60.0,
        answer="2 knobs together: rps +12.0 %, confirmed on fresh runs.",
    )


def a_study(tuned: Tuned) -> Study:
    study = a_search("vm.swappiness", "vm.vfs_cache_pressure", "boot:nohz=off")
    assert study.search
    left_out = (LeftOut(name="vm.zone_reclaim_mode", reason="no largest value is known"),)
    search = study.search.model_copy(update={"space": tuned.space, "left_out": left_out, "goal": tuned.goal})
    return study.model_copy(update={"search": search})


@pytest.fixture
def texts() -> tuple[str, str]:
    """The page and the Markdown of one answer, without spaces that do not break."""
    tuned = a_result()
    study = a_study(tuned)
    answer = answer_of(study, tuned, {"vm.vfs_cache_pressure": "400"}, "6.12.1-test")
    pair = (tuning.page(study, tuned, answer), tuning_markdown.text(study, tuned, answer))
    return pair[0].replace("\u00a0", " "), pair[1].replace("\u00a0", " ")


def test_both_have_the_whole_answer(texts: tuple[str, str]) -> None:
    for text in texts:
        assert "confirmed on fresh runs." in text
        for number in ("+12.00 %", "+9.00 %", "+25.00 %", "−5.00 %"):
            assert number in text
        assert "6 … 1600 % (logarithmic)" in text
        assert "it ended with exit status 3" in text
        assert "no largest value is known" in text
        assert "not worth it" in text


def test_every_run_is_drawn_where_its_number_is() -> None:
    tuned = a_result().model_copy(update={"drift": (1.0, 1.02, 1.0, 0.99)})
    page = tuning.page(a_study(tuned), tuned)
    assert_searches_are_true(page, tuned)
    assert_corners_are_true(page, tuned)


def test_markdown_has_a_row_a_setting_and_what_is_installed(texts: tuple[str, str]) -> None:
    _, text = texts
    assert "| `vm.vfs_cache_pressure` | `100` | `400` | +9.00 % | +7.00 … +11.00 |" in text
    assert "| `boot:nohz` | – | `off` | +3.00 % | +2.00 … +4.00 |" in text
    assert "\nvm.vfs_cache_pressure = 400\n" in text
    assert "\nnohz=off\n" in text
    assert text.count("<details>") == text.count("</details>") == 6
    assert rendered(text).count("<table>") == 7


def test_markdown_of_a_search_without_a_gain_has_no_settings() -> None:
    tuned = a_result().model_copy(
        update={"confirmed": None, "comparisons": (), "kept": (), "front": (), "answer": "No gain: so it is."}
    )
    text = tuning_markdown.text(a_study(tuned), tuned)
    assert "**No gain: so it is.**" in text
    assert "Its own effect" not in text
    assert "To install it" not in text


def test_hostile_text_is_no_markup() -> None:
    tuned = a_result()
    failed = tuned.observations[2].model_copy(update={"failure": HOSTILE})
    tuned = tuned.model_copy(update={"answer": HOSTILE, "observations": (*tuned.observations, failed)})
    study = a_study(tuned).model_copy(update={"name": HOSTILE})
    html = rendered(tuning_markdown.text(study, tuned))
    assert "<script" not in html
    assert "<a " not in html
    page = tuning.page(study, tuned)
    assert_only_its_own_script_runs(page)
    assert "<script" not in without_its_script(page)
