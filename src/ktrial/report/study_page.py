"""The HTML page: one file, readable without ktrial and without a network.

Of a large study what is closed at first is made by the page's script when it is opened; without scripts it
stands in its place, flame graphs excepted. A page that is `whole` has all of it open, with every picture.
"""

import base64
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup

from ktrial.analysis.scaling import changes, curves, waits
from ktrial.format import number_format
from ktrial.format.sanitize import printable
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.report import (
    attribution,
    charts,
    comparisons,
    counters,
    flame_graph,
    kernel_diff,
    matrix,
    overview_chart,
    provenance,
    scaling,
    sparkline,
    study_summary,
)
from ktrial.report.attribution import Why
from ktrial.report.comparisons import of_group
from ktrial.report.proof import proofs_apart
from ktrial.report.provenance import built_kernels
from ktrial.report.templating import chart_colours, environment, page_script, style_of
from ktrial.studyfile.writer import study_toml

_CONSOLE_CHARACTERS = 6000
"""The console's last characters that a failed trial shows."""
_MOST_COMPARISONS = 60
_MOST_CHARTS = 30
"""What a page shows of several treatments, or of its workloads, before it folds them."""


class WorkloadChart(NamedTuple):
    """One metric's levels."""

    metric: study_summary.MetricLevels
    spread: str
    """The largest spread of a level over its trials, in words; empty where no level has two samples."""
    drawing: Markup


def study_page(record: StudyRecord, whys: Sequence[Why] = (), *, whole: bool = False) -> str:
    """The page as text. `whole`: with everything open and drawn, to be printed or searched."""
    templates = environment()
    templates.globals.update(console_end=console_end)
    embed = flame_graph.drawn_in_page if whole else flame_graph.frames_in_page
    title = "{}: what the difference is made of, {} to {}".format
    graphs = [
        Markup(embed(why.frames, title(why.workload, why.baseline, why.treatment))) if why.frames else None
        for why in whys
    ]
    by_workload = groupby(curves(record), key=lambda curve: curve.workload)
    page = templates.get_template("page.html.j2").render(
        **study_facts(record, whys),
        style=style_of() + chart_colours(),
        # Where the number of CPUs is a factor, the charts of scaling are the overview.
        overview=None if curves(record) else overview_chart.overview(record),
        workloads=tuple(_workloads(record)),
        # Speed-up over CPUs: a workload, and its chart.
        scaling_charts=[
            (workload, Markup(charts.scaling_chart(tuple(of_workload), f"scaling-{number}")))
            for number, (workload, of_workload) in enumerate(by_workload, start=1)
        ],
        graphs=graphs,
        flame_style=Markup(flame_graph.style()) if any(graphs) else "",
        flame_outline=Markup(flame_graph.outline()) if any(graphs) and not whole else "",
        script=page_script(flame_graphs=any(graphs)),
        whole=whole,
    )
    return packed(page)


def study_facts(record: StudyRecord, whys: Sequence[Why] = ()) -> dict[str, Any]:
    """What the templates say about a record, without pictures."""
    groups = study_summary.groups(record)
    links = {
        (comparison.workload, why.treatment, why.baseline): f"#why-{place}"
        for place, why in enumerate(whys, start=1)
        for comparison in why.comparisons
    }
    modes = study_summary.modes(record)
    without_erms = any("-erms" in trial.provenance.cpu_model for trial in record.trials)
    every = matrix.matrix(record, all_metrics=True) if len(groups) > 1 else None
    return {
        # Closed at first, each treatment or workload by itself.
        "folded": {
            "comparisons": len(groups) > 1 and len(record.result.comparisons) > _MOST_COMPARISONS,
            "charts": len(study_summary.metric_levels(record)) > _MOST_CHARTS,
        },
        "whys": [(why, attribution.functions_of_page(why)) for why in whys],
        "notices": attribution.notices(whys),
        "other_proofs": proofs_apart(record.proofs, {why.proof.difference_key for why in whys if why.proof}),
        "record": record,
        "result": record.result,
        "study": record.study,
        "groups": groups,
        "matrix": matrix.flat(every) if every else None,
        "matrix_unit": matrix.usual_unit(every) if every else "",
        "tables": [(group, of_group(record, group, links)) for group in groups],
        "verdicts": study_summary.verdict_counts(record),
        "counted": study_summary.counted(record.result.comparisons),
        "failed": study_summary.failed_trials(record),
        "warnings": study_summary.warnings(record),
        "warning_groups": study_summary.warning_groups(record),
        "modes": modes,
        "without_erms": without_erms and Mode.EXACT_CLOCK in modes,
        "counters": counters.of_study(record),
        "kernel_changes": tuple(map(kernel_diff.shown, record.kernels)),
        "kernels": provenance.kernels(record),
        "machine": provenance.machine(record),
        "recipe": provenance.recipe(record),
        "builds": built_kernels(record),
        "series": sparkline.by_workload(record),
        "interactions": comparisons.interaction_tables(record),
        "interaction_meaning": comparisons.INTERACTION_MEANING,
        "scaling": scaling.scaling_tables(curves(record), changes(record)),
        "scaling_meaning": scaling.SCALING_MEANING,
        "changes_meaning": scaling.CHANGES_MEANING,
        "waits": scaling.waits_table(waits(record)),
        "waits_meaning": scaling.WAITS_MEANING,
        "study_file": study_toml(record.study),
        "seconds": sum(trial.seconds for trial in record.trials),
        "started": min((trial.started for trial in record.trials), default=None),
        "ended": max((trial.started for trial in record.trials), default=None),
        "completed": sum(trial.outcome is Outcome.COMPLETED for trial in record.trials),
    }


def _workloads(record: StudyRecord) -> Iterator[tuple[str, tuple[WorkloadChart, ...]]]:
    number = 0
    for workload, metrics in study_summary.by_workload(study_summary.metric_levels(record)).items():
        drawn = []
        for metric in metrics:
            number += 1
            drawing = Markup(charts.level_chart(metric, f"levels-{number}"))
            drawn.append(WorkloadChart(metric, _spread(metric), drawing))
        yield workload, tuple(drawn)


def _spread(metric: study_summary.MetricLevels) -> str:
    spreads = [level.spread for level in metric.levels if level.spread is not None]
    if not spreads:
        return ""
    return f"spread at most {number_format.percentage(max(spreads))}" if max(spreads) else "no spread"


def console_end(trial: Trial) -> str:
    """The end of a trial's console log, from the start of a line."""
    text = printable(trial.console).rstrip()
    if len(text) <= _CONSOLE_CHARACTERS:
        return text
    return "…\n" + text[-_CONSOLE_CHARACTERS:].split("\n", 1)[-1]


# What a large page holds closed, packed: its script unpacks it, and makes each part when it is opened.

LARGE = 900_000
"""A page of more bytes is packed; in a smaller one browsers without scripts show all that is closed."""
_CLOSED = re.compile(r'<noscript class="later">(.*?)</noscript>', re.DOTALL)
_WORD = re.compile(r"<[^<>]*>|[A-Za-z_][A-Za-z0-9_]{3,}")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_FIRST, _MOST_WORDS = 0xE000, 6400
_OFTEN = 3
_MARK = "<!-- parts -->"
"""Where the packed parts go."""


def packed(page: str) -> str:
    """The page, smaller where it is large: its closed parts as one element of data, by their numbers."""
    if len(page.encode()) <= LARGE:
        return page.replace(_MARK, "", 1)
    parts = _CLOSED.findall(page)
    numbers = iter(range(len(parts)))
    opened = _CLOSED.sub(lambda _: f'<span class="later" data-part="{next(numbers)}"></span>', page)
    # No page has these characters: what comes from outside has its control characters written out.
    data = base64.b64encode(zlib.compress("\0".join(words_and_parts(parts)).encode(), 9)).decode()
    return opened.replace(_MARK, f'{_WITHOUT}<script type="application/zlib" id="parts">{data}</script>', 1)


def words_and_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """First a list of words, with U+0001 between them; then the parts, a character for each word of the list.

    The characters are Unicode's private ones, from U+E000, in the order of the list. Names of functions come
    again in parts that lie further from each other than deflate looks back.
    """
    text = "".join(parts)
    if _PRIVATE.search(text):
        return ("", *parts)
    counted = Counter(_WORD.findall(text)).most_common(_MOST_WORDS)
    characters = {
        word: chr(_FIRST + number) for number, (word, count) in enumerate(counted) if count >= _OFTEN
    }
    short = (_WORD.sub(lambda word: characters.get(word[0], word[0]), part) for part in parts)
    return ("\1".join(characters), *short)


_WITHOUT = (
    '<noscript><p class="notice">This page is large: what is closed is packed, and unpacked by its script, '
    "which does not run here. <code>ktrial report --whole</code> writes a page without anything closed.</p>"
    "</noscript>"
)
