"""The HTML page: one file, readable without ktrial and without a network.

Of a large study what is closed at first is made by the page's script when it is opened; without scripts it
stands in its place, flame graphs excepted. A page that is `whole` has all of it open, with every picture.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from ktrial.analysis import scaling as throughput
from ktrial.analysis import scaling as waiting
from ktrial.format import number_format
from ktrial.format.sanitize import printable
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.report.charts import flame_graph, flame_graph_data, levels, ratios, sparkline
from ktrial.report.charts import scaling as scaling_chart
from ktrial.report.html.packing import packed
from ktrial.report.html.scripts import page_script
from ktrial.report.html.templating import chart_colours, environment, style_of
from ktrial.report.tables import attribution, counters, interactions, matrix, scaling, waits
from ktrial.report.tables.comparisons import of_group
from ktrial.report.text import kernel_diff, reproduction, study_summary
from ktrial.report.text import provenance as surroundings
from ktrial.report.text.attribution import Why
from ktrial.report.text.proof import proofs_apart
from ktrial.report.text.provenance import built_kernels
from ktrial.studyfile.writer import study_toml

_CONSOLE_CHARACTERS = 6000
"""The console's last characters that a failed trial shows."""
_MOST_COMPARISONS = 60
_MOST_CHARTS = 30
"""What a page shows of several treatments, or of its workloads, before it folds them."""


class Overview(NamedTuple):
    """All ratios, drawn twice: the page shows what fits on the screen."""

    wide: tuple[tuple["Panel", ...], ...]
    """Rows of panels that stand beside each other."""
    narrow: tuple["Panel", ...]


class Panel(NamedTuple):
    """The intervals of one treatment."""

    treatment: str
    width: int
    """In pixels, as drawn."""
    drawing: Markup


class Folded(NamedTuple):
    """Which parts of a page are closed at first, each treatment or workload by itself."""

    comparisons: bool
    charts: bool


class WorkloadChart(NamedTuple):
    """One metric's levels."""

    metric: study_summary.MetricLevels
    spread: str
    """The largest spread of a level over its trials, in words; empty where no level has two samples."""
    drawing: Markup


def page(record: StudyRecord, whys: Sequence[Why] = (), *, whole: bool = False) -> str:
    """The page as text. `whole`: with everything open and drawn, to be printed or searched."""
    template = _environment().get_template("page.html.j2")
    return packed(
        template.render(**facts(record, whys), **_pictures(record), **_graphs(whys, whole=whole), whole=whole)
    )


def _links(whys: Sequence[Why]) -> dict[tuple[str, str, str], str]:
    """Workload, treatment and baseline of a comparison → where its reasons stand in the page."""
    return {
        (one.workload, why.treatment, why.baseline): f"#why-{place}"
        for place, why in enumerate(whys, start=1)
        for one in why.comparisons
    }


def _graphs(whys: Sequence[Why], *, whole: bool) -> dict[str, Any]:
    made = flame_graph.in_page if whole else flame_graph_data.in_page
    graphs = [Markup(made(why.frames, _title(why))) if why.frames else None for why in whys]
    drawn = any(graphs)
    return {
        "graphs": graphs,
        "flame_style": Markup(flame_graph.style()) if drawn else "",
        "flame_outline": Markup(flame_graph.outline()) if drawn and not whole else "",
        "script": page_script(flame_graphs=drawn),
    }


def _title(why: Why) -> str:
    return f"{why.workload}: what the difference is made of, {why.baseline} to {why.treatment}"


def _environment() -> Environment:
    made = environment()
    made.globals.update(console_end=console_end)
    return made


def facts(record: StudyRecord, whys: Sequence[Why] = ()) -> dict[str, Any]:
    """What the templates say about a record, without pictures."""
    groups, links = study_summary.groups(record), _links(whys)
    every = matrix.matrix(record, all_metrics=True) if len(groups) > 1 else None
    return {
        "folded": _folded(record),
        "whys": [(why, attribution.of_page(why)) for why in whys],
        "other_proofs": proofs_apart(record.proofs, {why.proof.difference_key for why in whys if why.proof}),
        "record": record,
        "result": record.result,
        "study": record.study,
        "groups": groups,
        "matrix": matrix.flat(every) if every else None,
        "matrix_unit": matrix.usual_unit(every) if every else "",
        "tables": [(group, of_group(record, group, links)) for group in groups],
        "verdicts": study_summary.verdict_counts(record),
        "failed": study_summary.failed_trials(record),
        "warnings": study_summary.warnings(record),
        "warning_groups": study_summary.warning_groups(record),
        "modes": study_summary.modes(record),
        "without_erms": _without_erms(record),
        "counters": counters.of_study(record),
        "kernel_changes": tuple(map(kernel_diff.shown, record.kernels)),
        "kernels": surroundings.kernels(record),
        "machine": surroundings.machine(record),
        "recipe": reproduction.recipe(record),
        "builds": built_kernels(record),
        "series": sparkline.by_workload(record),
        "interactions": interactions.tables(record),
        "interaction_meaning": interactions.MEANING,
        "scaling": scaling.both(throughput.curves(record)),
        "scaling_meaning": scaling.MEANING,
        "waits": waits.of_all(waiting.waits(record)),
        "waits_meaning": waits.MEANING,
        "study_file": study_toml(record.study),
        "seconds": sum(trial.seconds for trial in record.trials),
        "started": min((trial.started for trial in record.trials), default=None),
        "ended": max((trial.started for trial in record.trials), default=None),
        "completed": sum(trial.outcome is Outcome.COMPLETED for trial in record.trials),
    }


def _folded(record: StudyRecord) -> Folded:
    groups, metrics = study_summary.groups(record), study_summary.metric_levels(record)
    comparisons = len(record.result.comparisons)
    return Folded(len(groups) > 1 and comparisons > _MOST_COMPARISONS, len(metrics) > _MOST_CHARTS)


def _pictures(record: StudyRecord) -> dict[str, Any]:
    return {
        "style": style_of() + chart_colours(),
        "overview": _overview(record),
        "workloads": tuple(_workloads(record)),
        "scaling_charts": tuple(_scaling(record)),
    }


def _scaling(record: StudyRecord) -> Iterator[tuple[str, Markup]]:
    """Speed-up over CPUs: a workload, and its chart."""
    by_workload = groupby(throughput.curves(record), key=lambda curve: curve.workload)
    for number, (workload, curves) in enumerate(by_workload, start=1):
        yield workload, Markup(scaling_chart.draw(tuple(curves), f"scaling-{number}"))


def _overview(record: StudyRecord) -> Overview:
    every, margin = study_summary.groups(record), record.study.margin

    def panel(number: int, layout: ratios.Layout, name: str) -> Panel:
        group = every[number]
        drawing = ratios.draw(group, every, margin, layout, f"{name}-{number + 1}")
        return Panel(group.treatment, layout.left + layout.width + layout.right, Markup(drawing))

    rows = [[ratios.ALONE]] * len(every)
    if len(every) > 1:
        rows = ratios.rows_of_panels([group.treatment for group in every])
    numbers = iter(range(len(every)))
    return Overview(
        tuple(tuple(panel(next(numbers), layout, "wide") for layout in row) for row in rows),
        tuple(panel(number, ratios.NARROW, "narrow") for number in range(len(every))),
    )


def _workloads(record: StudyRecord) -> Iterator[tuple[str, tuple[WorkloadChart, ...]]]:
    number = 0
    for workload, metrics in study_summary.by_workload(study_summary.metric_levels(record)).items():
        charts = []
        for metric in metrics:
            number += 1
            drawing = Markup(levels.draw(metric, f"levels-{number}"))
            charts.append(WorkloadChart(metric, _spread(metric), drawing))
        yield workload, tuple(charts)


def _spread(metric: study_summary.MetricLevels) -> str:
    spreads = [level.spread for level in metric.levels if level.spread is not None]
    if not spreads:
        return ""
    return f"spread at most {number_format.percentage(max(spreads))}" if max(spreads) else "no spread"


def _without_erms(record: StudyRecord) -> bool:
    return any("-erms" in trial.provenance.cpu_model for trial in record.trials) and (
        Mode.EXACT_CLOCK in study_summary.modes(record)
    )


def console_end(trial: Trial) -> str:
    """The end of a trial's console log, from the start of a line."""
    text = printable(trial.console).rstrip()
    if len(text) <= _CONSOLE_CHARACTERS:
        return text
    return "…\n" + text[-_CONSOLE_CHARACTERS:].split("\n", 1)[-1]
