"""`ktrial history`: one metric over versions, with the places where it changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import kernel_lists, metric_names, workload_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrial.analysis.errors import NotMeasured
    from ktrial.analysis.history.series import HasNumbers

Kernels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A..B",
        help="Versions: 5.10..7.2, or names with commas between them.",
        autocompletion=kernel_lists,
    ),
]
PageFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page here too.")]


@examples(
    "ktrial history fork",
    "ktrial history fork --kernels 5.10..7.2 --html fork.html",
    "ktrial history fork --commits v6.1.170..v6.1.176 --git linux",
)
def history(
    workload: Annotated[str, typer.Argument(metavar="W", autocompletion=workload_names, help="A workload.")],
    kernels: Kernels = None,
    commits: Annotated[
        str | None,
        typer.Option(metavar="BASE..TIP", help="Commits that ktrial series or ktrial watch measured."),
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", metavar="DIR", help="Their tree; else the one it stands in.")
    ] = None,
    configuration: Annotated[
        str | None, typer.Option("--config", metavar="C", help="Of the commits' kernels; else guest.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=y", help="An option of them; may be repeated."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="M", help="A metric; else the first one.", autocompletion=metric_names),
    ] = None,
    by_time: Annotated[
        bool, typer.Option("--by-time", help="In the order of measuring, not of versions.")
    ] = False,
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="Exact: what is no change; else the newest study's.")
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.5, metavar="0.05", help="Timed: rate of false alarms.")
    ] = 0.05,
    json: Json = False,
    html: PageFile = None,
    store: StoreOption = None,
) -> None:
    """Show one metric over versions, and where it changed.

    Numbers of other machines, settings or modes are lines of their own, and never mixed. W may be written
    without its parameters where only one variant is stored. Exit code 1: a study is not what was stored; it
    is named, and the others are shown.
    """
    from ktrial.analysis.history.collector_pause import garbage_kept
    from ktrial.analysis.history.series import history as history_of
    from ktrial.analysis.history.series import versions
    from ktrial.analysis.history.stored_numbers import stored_numbers
    from ktrial.analysis.store_queries import label_of
    from ktrial.cli.console import output, print_json, say
    from ktrial.cli.damaged_studies import DAMAGED, tell_left_out
    from ktrial.cli.files import write_page
    from ktrial.cli.options.duration_size_share import margin_of
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.cli.render.history import print_history
    from ktrial.cli.running.commit_history import CommitsAsked

    edge = margin_of(margin)
    asked = CommitsAsked.of(
        commits, git, configuration, tuple(option or ()), kernels=bool(kernels), by_time=by_time
    )
    with garbage_kept(for_good=True), open_existing(store) as opened:
        numbers, name = stored_numbers(opened, say, leave_out=True), opened.name
        label = label_of(numbers.studies, workload)
        studies = numbers.of_one(label)
    left_out = studies.left_out
    if asked:
        asked.show(
            studies,
            label,
            metric=metric,
            margin=edge,
            alpha=alpha,
            json=json,
            html=html,
            left_out=left_out,
            store=name,
        )
        if tell_left_out(left_out):
            raise typer.Exit(DAMAGED)
        return
    if kernels:
        from ktrial.experiment.kernel_choice import chosen
    measured = versions(studies, label)
    only = chosen(kernels, measured.items()) if kernels else None
    result = history_of(
        studies,
        label,
        metric=metric,
        kernels=only,
        margin=edge,
        by_time=by_time,
        alpha=alpha,
        commits={} if only or by_time else _commits(measured),
    ).model_copy(update={"left_out": left_out})
    if not result.lines:
        tell_left_out(left_out)
        raise _nothing(name, label, studies, metric, kernels or [])
    if html:
        from ktrial.report.html.history import history_page

        write_page(html, history_page(result), f"ktrial history {workload} --html FILE")
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        print_history(result, output())
        if html:
            print(f"page: {html.expanduser().absolute()}")
    if tell_left_out(left_out):
        raise typer.Exit(DAMAGED)


def _commits(kernels: "Mapping[str, str]") -> dict[str, int]:
    """The commits' own order, of kernels with their releases; what their tree no longer tells is said."""
    if not any(name.startswith(("git:", "build:")) for name in kernels):
        return {}
    from ktrial.cli.console import say
    from ktrial.kernels.commit_order import commit_places, unordered_trees

    places = commit_places(kernels)
    for tree in unordered_trees(kernels, places):
        say(
            f"warning: {tree} does not tell the order of its commits (any more): they stand as their study "
            "names them, and better and worse are meant so; --kernels A,B,C says another order"
        )
    return places


def _nothing(
    store: str, workload: str, studies: "HasNumbers", metric: str | None, kernels: list[str]
) -> "NotMeasured":
    """What is not there: the workload, the metric, or the kernels; and what is there instead."""
    from ktrial.analysis.errors import NotMeasured
    from ktrial.analysis.history.series import metrics, versions
    from ktrial.model.kernel import version_order
    from ktrial.model.suggestions import nearest
    from ktrial.workloads import descriptions

    there = metrics(studies, workload)
    if not there:
        known = descriptions()
        if workload in known:
            return NotMeasured(store=store, workload=workload, detail="")
        hint = "ktrial list and ktrial show say what is stored"
        return NotMeasured(store=store, workload=workload, detail=nearest(workload, known), hint=hint)
    if metric and metric not in there:
        hint = f"its metrics are {', '.join(there)}"
        detail = f", metric {metric}{nearest(metric, there)}"
        return NotMeasured(store=store, workload=workload, detail=detail, hint=hint)
    hint = f"measured are {', '.join(sorted(versions(studies, workload), key=version_order))}"
    return NotMeasured(store=store, workload=workload, detail=f", kernels {','.join(kernels)}", hint=hint)
