"""What reports are put together from: figures, printable text, levels, counters, the study file."""

import io
import math
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.support.making import a_sample
from tests.support.places import ROOT
from tests.support.report_records import a_matrix, a_record, a_study_with_failures

from ktrial.cli.render.study_result import print_result
from ktrial.cli.studies import registry
from ktrial.format import number_format
from ktrial.format.sanitize import beginning, one_line, printable, shortened
from ktrial.model.comparison import Comparison
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Sample
from ktrial.report import charts, counters, overview_chart, provenance, study_summary
from ktrial.report import markdown as as_markdown
from ktrial.report import study_page as as_html
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (163150, "163,150"),
        (2510.04, "2,510"),
        (2510.56, "2,510.6"),
        (320.5, "320.5"),
        (0.002137, "0.002137"),
        (0, "0"),
        (-3.25, "−3.25"),
        (1.5e-13, "1.5e-13"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_a_number_is_read_at_a_glance(value: float | None, text: str) -> None:
    assert number_format.number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (31_020_920, "ns", "31.0 ms"),
        (12_863, "ns", "12.9 µs"),
        (999_600, "ns", "1.00 ms"),
        (850, "ns/operation", "850 ns"),
        (0.316, "ns", "0.316 ns"),
        (99.96, "usecs", "100 µs"),
        (1.5, "s", "1.50 s"),
        (12_345, "seconds", "12,345 s"),
        (-2_500_000, "ns", "−2.50 ms"),
        (0, "ns", "0"),
        (None, "ns", "–"),
        (math.inf, "ns", "∞"),
        (163150, "instructions", "163,150"),
        (163150, "requests/s", "163,150"),
    ],
)
def test_a_time_is_read_in_three_digits_whatever_it_was_measured_in(
    value: float | None, unit: str, text: str
) -> None:
    assert number_format.quantity(value, unit).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.358, "+35.80 %"),
        (0.979, "−2.10 %"),
        (1.0, "0.00 %"),
        (0.99999, "0.00 %"),
        (26.5, "+2,550 %"),
        (None, "–"),
        (math.inf, "∞"),
    ],
)
def test_a_ratio_is_shown_as_a_change(ratio: float | None, text: str) -> None:
    assert number_format.change(ratio).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.31, "0.31 s"), (14.2, "14 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_a_duration_is_shown_in_fitting_units(seconds: float, text: str) -> None:
    assert number_format.duration(seconds).replace("\u00a0", " ") == text


def test_a_moment_is_shown_in_utc() -> None:
    noon = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert number_format.moment(noon) == "2026-11-21 10:00 UTC"
    assert number_format.moment(datetime(2026, 11, 21, 12, 0, tzinfo=UTC)) == "2026-11-21 12:00 UTC"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("bell\x07 nul\x00", r"bell\x07 nul\x00"),
        ("a\r\nb", "a\nb"),
        ("\u202eevil", r"\u202eevil"),
        ("\ud800", r"\ud800"),
        ("مرحبا", "مرحبا"),
    ],
)
def test_control_characters_are_written_out(raw: str, text: str) -> None:
    assert printable(raw) == text


@given(st.text())
def test_printable_text_encodes_and_is_printable_again(raw: str) -> None:
    text = printable(raw)
    text.encode()
    assert printable(text) == text


@given(st.text(), st.integers(min_value=3, max_value=40))
def test_shortened_text_fits(raw: str, columns: int) -> None:
    text = shortened(raw, columns)
    assert len(text.replace("…", "")) <= len(one_line(raw))
    if one_line(raw).isascii():
        assert len(text) <= columns


def test_shortening_keeps_both_ends() -> None:
    assert shortened("hackbench(groups=2, processes=1)", 21) == "hackbench(…rocesses=1)"[:10] + "…ocesses=1)"


def test_levels_come_baseline_first_with_a_sample_a_trial() -> None:
    fork = study_summary.metric_levels(a_matrix())[0]
    assert [level.treatment for level in fork.levels][:2] == ["debian:5.10", "debian:6.1"]
    assert all(len(level.samples) == 3 for level in fork.levels)
    assert fork.levels[0].comparison is None
    spread = fork.levels[0].spread
    assert spread is not None
    assert 0 < spread < 0.001


def test_a_level_without_numbers_is_drawn_empty() -> None:
    by_name = {metric.workload: metric for metric in study_summary.metric_levels(a_study_with_failures())}
    assert "– " not in charts.level_description(by_name["fork"])
    assert "debian:6.12: –" in charts.level_description(by_name["fork"])
    assert "debian:6.12</text>" in charts.level_chart(by_name["fork"], "x")


def a_group(low: float | None, ratio: float | None, high: float | None) -> study_summary.TreatmentComparisons:
    first = a_record(workloads=("fork",)).result.comparisons[0]
    changed: Comparison = first.model_copy(update={"low": low, "ratio": ratio, "high": high})
    return study_summary.TreatmentComparisons(first.baseline, first.treatment, (changed,))


@pytest.mark.parametrize(
    ("low", "ratio", "high"),
    [(0.0, 1.0, math.inf), (1e-9, 1e-6, 1e9), (None, None, None), (math.nan,) * 3, (1.0, 1.0, 1.0)],
)
@pytest.mark.parametrize("layout", [overview_chart.ALONE, overview_chart.NARROW])
def test_extreme_ratios_are_drawn(
    low: float | None, ratio: float | None, high: float | None, layout: overview_chart.Layout
) -> None:
    group = a_group(low, ratio, high)
    axis = overview_chart.ratio_axis((group,), 0.01, layout.width)
    assert "NaN" not in overview_chart.ratio_chart(group, axis, layout, "x")


RATIOS = st.floats(1e-6, 1e6) | st.floats(0.9, 1.1)


@given(
    st.lists(RATIOS, min_size=1, max_size=40),
    st.sampled_from([0.0001, 0.001, 0.01, 0.05, 0.5, 0.99]),
    st.sampled_from([147, 274, 320, 420]),
)
def test_the_margin_s_band_is_seen_and_what_is_beyond_the_axis_is_at_its_edge(
    ratios: list[float], margin: float, width: int
) -> None:
    groups = [a_group(ratio, ratio, ratio) for ratio in ratios]
    axis = overview_chart.ratio_axis(groups, margin, width)
    band = axis.place(1 + margin) - axis.place(1 / (1 + margin))
    assert band >= overview_chart.LEAST_BAND - 1e-6
    assert axis.low < 1 / (1 + margin) < 1 + margin < axis.high
    assert axis.is_whole == all(axis.low <= ratio <= axis.high for ratio in ratios)
    for ratio in ratios:
        assert -1e-6 <= axis.place(axis.clamped(ratio)) <= width + 1e-6


def test_one_change_beyond_the_axis_leaves_the_others_their_room() -> None:
    groups = [a_group(ratio, ratio, ratio) for ratio in (0.97, 1.02, 1.05, 30.0)]
    axis = overview_chart.ratio_axis(groups, 0.01, 420)
    assert not axis.is_whole
    assert 0.95 < axis.low < 0.97
    assert 1.05 < axis.high < 1.07


def test_the_axis_serves_the_workloads_own_metrics() -> None:
    instructions = a_group(1.13, 1.14, 1.15)
    (row,) = instructions.comparisons
    cycles = row.model_copy(update={"metric": "modelled-cycles", "ratio": 2.9, "low": 2.9, "high": 2.9})
    both = instructions._replace(comparisons=(row, cycles))
    alone, beside = (overview_chart.ratio_axis([group], 0.01, 420) for group in (instructions, both))
    assert alone == beside
    assert beside.high < 1.2
    drawn = overview_chart.ratio_chart(both, beside, overview_chart.ALONE, "x")
    assert "+190.00" in drawn


@pytest.mark.parametrize(
    ("most", "margin", "width"),
    [
        (1.03, 0.01, 147),
        (1.03, 0.01, 420),
        (2.0, 0.01, 420),
        (1.5, 0.05, 274),
        (900.0, 0.5, 420),
        (1, 0.001, 320),
    ],
)
def test_the_axis_marks_no_change_and_some_round_changes(most: float, margin: float, width: int) -> None:
    axis = overview_chart.ratio_axis([a_group(most, most, most)], margin, width)
    ticks = overview_chart.ticks_on(axis)
    assert "0" in [tick.label for tick in ticks]
    assert 2 <= len(ticks) <= 8
    assert all(axis.low < tick.at < axis.high for tick in ticks)


@pytest.mark.parametrize("count", [2, 4, 5, 6, 9, 12, 40])
@pytest.mark.parametrize(
    ("name", "most"), [("debian:6.12", 3), ("debian:6.12 · swappiness=100", 3), ("x" * 99, 1)]
)
def test_panels_of_a_row_fill_it_together(count: int, name: str, most: int) -> None:
    group = a_group(0.99, 1.0, 1.01)._replace(treatment=name)
    rows = overview_chart.rows_of_panels([group] * count, 0.01)
    assert sum(map(len, rows)) == count
    assert max(map(len, rows)) <= most
    for row in rows:
        assert row[0].cells > 0
        assert all(panel.cells == 0 for panel in row[1:])
        assert sum(panel.left + panel.width + panel.right for panel in row) <= 980


def test_counters_are_ranked_by_ratio_with_small_counts_damped() -> None:
    changed_most = counters.most_different(a_matrix())
    assert [workload.workload for workload in changed_most][:2] == ["fork", "pipe"]
    names = [counter.name for counter in changed_most[0].counters]
    assert names == ["vmstat.slabs_scanned", "rusage.minflt", "vmstat.pgfault", "vmstat.pgalloc_normal"]
    assert changed_most[0].treatments[0] == "debian:5.10"


def test_what_differs_between_trials_is_shown_with_its_treatments() -> None:
    plain = a_record()
    record = plain.model_copy(update={"trials": plain.trials[::-1]})
    facts = provenance.machine(record)
    assert [fact.treatments for fact in facts if fact.name == "QEMU"] == [()]
    assert [fact.treatments for fact in facts if fact.name == "Snapshot"] == [
        ("debian:6.1",),
        ("debian:6.12",),
    ]
    assert [kernel.release for kernel in provenance.kernels(record)] == [
        "6.1.0-50-cloud-amd64",
        "6.12.57+deb13-cloud-amd64",
    ]


def test_the_recipe_adds_the_kernels_and_runs_the_study() -> None:
    assert provenance.recipe(a_record()).commands == (
        "ktrial --version  # ktrial 0.1.0",
        "ktrial kernel add debian:6.1",
        "ktrial kernel add debian:6.12",
        "ktrial run quick.toml",
        "ktrial report quick --html quick.html",
    )


STUDIES = sorted(ROOT.glob("studies/*.toml"))
_EVERYTHING = """
name = "everything"
question = 'Does "quoting" hold? \\ ü'
margin = "2 %"
perturbations = 4
design = "one-factor-at-a-time"
seed = 7
[machine]
kernel = "debian:6.12"
memory = "1G"
boot = ["mitigations=off", 'dyndbg="file sched.c +p"']
modules = ["loop"]
settle_seconds = 1.5
limit_seconds = 60
[factors.swap]
kind = "setting"
target = "vm.swappiness"
levels = [60, 10, 100]
baseline = 10
[factors.alloc]
kind = "boot"
target = "init_on_alloc"
levels = ["0", "1"]
[[workloads]]
name = "hackbench"
groups = 2
[[workloads]]
name = "mine"
command = ["/bin/sh", "-c", "echo 1 'two'"]
metrics = [{ name = "rate", unit = "lines/s", direction = "higher", regex = '([0-9]+) "two"' }]
repeats = 5
[[workloads]]
name = "clocked"
command = "true"
"""


def test_there_are_studies_to_try() -> None:
    assert STUDIES


@pytest.mark.parametrize("text", [*(path.read_text() for path in STUDIES), _EVERYTHING])
def test_the_study_file_in_the_report_is_the_same_study(text: str, tmp_path: Path) -> None:
    written, again = tmp_path / "study.toml", tmp_path / "again.toml"
    written.write_text(text)
    patch = tmp_path / "my.patch"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-VERSION = 6\n+VERSION = 7\n")
    study = load(written, registry(), [str(patch)] if '"?"' in text else [])
    again.write_text(study_toml(study))
    assert tomllib.loads(again.read_text())["name"] == study.name
    assert load(again, registry()) == study


def test_a_row_names_its_metric_where_the_workload_has_several_and_bytes_always_do() -> None:
    places = [("fork", "instructions"), ("fork", "string-bytes"), ("mine", "rate"), ("mine", "latency")]
    assert study_summary.row_names(places) == ("fork", "fork, string-bytes", "mine, rate", "mine, latency")


def test_bytes_of_string_instructions_are_left_out_where_there_were_none() -> None:
    record = a_record(workloads=("fork",))
    none = a_sample("fork", 0.0).model_copy(update={"metric": "string-bytes", "unit": "bytes"})
    some = none.model_copy(update={"value": 4096.0})

    def with_sample(sample: Sample) -> list[str]:
        trials = tuple(
            trial.model_copy(update={"samples": (*trial.samples, sample)}) for trial in record.trials
        )
        levels = study_summary.metric_levels(record.model_copy(update={"trials": trials}))
        return [metric.metric for metric in levels]

    assert with_sample(none) == ["instructions"]
    assert with_sample(some) == ["instructions", "string-bytes"]


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 3), (30, 3)])
def test_many_warnings_of_one_kind_are_folded_and_none_is_lost(count: int, shown: int) -> None:
    wide = [
        DataWarning(kind=WarningKind.WIDE_SPREAD, text=f"metric {number} moves", advice="take a wider margin")
        for number in range(count)
    ]
    boot = DataWarning(kind=WarningKind.PLAIN_BOOT, text="booted plainly")
    plain = a_record()
    result = plain.result.model_copy(update={"warnings": (*wide, boot)})
    record = plain.model_copy(update={"result": result})
    first, second = study_summary.warning_groups(record)
    assert (len(first.shown), [*first.shown, *first.more]) == (shown, wide)
    assert second.shown == (boot,)
    terminal = io.StringIO()
    print_result(record, Console(file=terminal, width=120, markup=False, emoji=False))
    for text in (as_html.study_page(record), as_markdown.study_markdown(record)):
        assert all(warning.text in text for warning in (*wide, boot))
    assert terminal.getvalue().count("metric ") == shown
    assert (f"and {count - shown} more like these" in terminal.getvalue()) == (count > shown)


def test_an_answer_is_cut_at_its_end_between_words() -> None:
    assert beginning("fork by 22.6 %, 3 got better", 20) == "fork by 22.6 %, 3…"
    assert beginning("fork by 22.6 %, 3 got better", 17) == "fork by 22.6 %…"
    assert beginning("fork", 4) == "fork"
    assert beginning("a" * 30, 10) == "a" * 9 + "…"
