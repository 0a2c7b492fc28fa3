"""The page of fidelity: signs, figures, a scatter plot a count, disagreements. No network, no script."""

from dataclasses import replace

from ktrial.format.number_format import number
from ktrial.format.table import of_texts
from ktrial.model.fidelity import CrossSection, Fidelity, FidelityResult, SizeBand
from ktrial.report.charts import fidelity as chart
from ktrial.report.html.templating import chart_colours, environment, style_of
from ktrial.report.text import fidelity as words

_HEADINGS = (
    "count", "pairs", "undecided in time", "decided only in time", "decided in both", "same sign", "Spearman",
    "Pearson", "RMS error", "slope",
)  # fmt: skip
_ACROSS_HEADINGS = ("count", "workloads", "Spearman", "scatter")


def page(result: FidelityResult, name: str) -> str:
    """The page as text; `name`: of the studies."""
    charts = [
        (one.count, chart.draw(result.pairs, one.count, f"scatter-{number}"))
        for number, one in enumerate(result.all)
        if one.pairs
    ]
    wrong = [
        (one.count, [words.disagreement(pair, one.count) for pair in one.disagreements])
        for one in result.all
        if one.disagreements
    ]
    return (
        environment()
        .get_template("fidelity.html.j2")
        .render(
            title=name,
            eyebrow="ktrial fidelity",
            question="Do changes that exact mode counts agree with those in real time?",
            sentences=[one.sentence for one in result.all],
            figures=replace(of_texts(_HEADINGS, map(row, result.all)), name="figures"),
            held_out=replace(of_texts(_HEADINGS, map(row, result.held_out)), name="figures"),
            bands=of_texts(("change", "count", "same sign", "undecided in time"), band_rows(result)),
            across=of_texts(_ACROSS_HEADINGS, map(across_row, result.across)) if result.across else None,
            workloads=of_texts(*workload_rows(result)) if result.workloads else None,
            charts=charts,
            wrong=wrong,
            fit=list(words.fit_lines(result.fitted)) if result.fitted else [],
            left_out=result.left_out,
            crumbs=(),
            sheet="",
            style=style_of() + chart_colours(),
            foot=f"Made by ktrial fidelity, seed {result.seed}. Intervals of correlations: 95 %, by "
            "bootstrap over treatments.",
        )
    )


def row(one: Fidelity) -> list[str]:
    """A count's row of the table of figures."""
    of_decided = f"{one.same_sign} of {one.decided}"
    numbers = (one.pairs, one.undecided_in_time, one.undecided_in_exact, one.decided)
    error = "" if one.rms_error is None else f"{one.rms_error:.3f}"
    slope = "" if one.slope is None else f"{one.slope:.2f}"
    return [
        one.count, *map(str, numbers), of_decided, words.interval(one.spearman),
        words.interval(one.pearson), error, slope,
    ]  # fmt: skip


def across_row(one: CrossSection) -> list[str]:
    """A count's row of the table of workloads beside each other."""
    scatter = "" if one.scatter is None else f"{one.scatter:.2f}-fold"
    return [one.count, str(one.workloads), words.interval(one.spearman), scatter]


def workload_rows(result: FidelityResult) -> tuple[list[str], list[list[str]]]:
    """Headings, and what an operation of each workload costs by each count and in real time."""
    counts = [one.count for one in result.across]
    return ["workload", *counts, "time, ns"], [
        [one.workload, *(number(one.exact.get(count)) for count in counts), number(one.time)]
        for one in result.workloads
    ]


def band_rows(result: FidelityResult) -> list[list[str]]:
    """Of each count and size of change: how often the sign was right."""
    return [
        [band_name(band), one.count, f"{band.same_sign} of {band.decided}", str(band.undecided)]
        for one in result.all
        for band in one.bands
        if band.decided or band.undecided
    ]


def band_name(band: SizeBand) -> str:
    """The sizes of changes in a band, as ratios."""
    return f"{band.low:g} to {band.high:g}" if band.high else f"beyond {band.low:g}"
