"""The report of a search: one page, and Markdown."""

import pytest
from tests.support.drawings import assert_only_its_own_script_runs, without_its_script
from tests.support.drawn_courses import assert_corners_are_true, assert_searches_are_true
from tests.support.report_records import HOSTILE
from tests.support.tuning import a_result, a_study
from tests.unit.report.test_report_text import rendered

from ktrial.optimize.deployment_files import answer_of
from ktrial.optimize.deployment_files import texts as installed
from ktrial.report.tuning import picture, tuning_markdown, tuning_page


@pytest.fixture
def texts() -> tuple[str, str]:
    """The page and the Markdown of one answer, without spaces that do not break."""
    tuned = a_result()
    study = a_study(tuned)
    answer = answer_of(study, tuned, {"vm.vfs_cache_pressure": "400"}, "6.12.1-test")
    assert answer
    page = tuning_page(study, tuned, answer.in_force)
    markdown = tuning_markdown(study, tuned, answer.in_force, installed(answer))
    return page.replace("\u00a0", " "), markdown.replace("\u00a0", " ")


def test_both_have_the_whole_answer(texts: tuple[str, str]) -> None:
    for text in texts:
        assert "confirmed on fresh runs." in text
        for number in ("+12.00 %", "+9.00 %", "+25.00 %", "−5.00 %"):
            assert number in text
        assert "6 … 1600 % (logarithmic)" in text
        assert "it ended with exit status 3" in text
        assert "no largest value is known" in text
        assert "not worth it" in text


def test_both_tell_what_fresh_runs_show_alone_and_what_the_search_let_expect(texts: tuple[str, str]) -> None:
    for text in texts:
        assert "Fresh runs alone show +11.10 %, the runs of the search let expect +13.30 %" in text
    without = a_result().model_copy(update={"finalists": ()})
    assert "Fresh runs alone" not in tuning_page(a_study(without), without)


def test_every_run_is_drawn_where_its_number_is() -> None:
    tuned = a_result().model_copy(update={"drift": (1.0, 1.02, 1.0, 0.99)})
    page = tuning_page(a_study(tuned), tuned)
    assert_searches_are_true(page, tuned)
    assert_corners_are_true(page, tuned)


def test_the_axis_of_a_search_has_round_numbers() -> None:
    tuned = a_result()
    for ratios in ((0.9137, 1.0412), (1.0, 1.00031), (0.31, 7.77)):
        values = dict(zip(("low", "high"), ratios, strict=True))
        metric, before = tuned.goal.objectives[0].metric, 200.0
        runs = tuple(
            one.model_copy(update={"values": {metric: before * ratio}})
            for one, ratio in zip(tuned.observations, values.values(), strict=False)
        )
        drawn = picture(
            tuned.model_copy(update={"observations": runs, "baseline": {metric: before}, "drift": ()})
        )
        assert drawn is not None
        texts = [tick.text for tick in drawn.ticks]
        assert 3 <= len(texts) <= 6, texts
        assert "0\u00a0%" in texts
        assert all(len(text.strip("+\u2212").removesuffix("\u00a0%").strip("0.")) <= 2 for text in texts), (
            texts
        )


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
    text = tuning_markdown(a_study(tuned), tuned)
    assert "**No gain: so it is.**" in text
    assert "Its own effect" not in text
    assert "To install it" not in text


def test_hostile_text_is_no_markup() -> None:
    tuned = a_result()
    failed = tuned.observations[2].model_copy(update={"failure": HOSTILE})
    tuned = tuned.model_copy(update={"answer": HOSTILE, "observations": (*tuned.observations, failed)})
    study = a_study(tuned).model_copy(update={"name": HOSTILE})
    html = rendered(tuning_markdown(study, tuned))
    assert "<script" not in html
    assert "<a " not in html
    page = tuning_page(study, tuned)
    assert_only_its_own_script_runs(page)
    assert "<script" not in without_its_script(page)
