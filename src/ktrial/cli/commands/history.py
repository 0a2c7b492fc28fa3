"""`ktrial history` and `matrix`, with `recommend` and `systems`: numbers over kernels, and over machines."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from ktrial.analysis.errors import AnalysisError, NotMeasured
from ktrial.cli.command_line import Argument, BadOption, BadUsage, Option, examples
from ktrial.cli.console import check_page, output, print_json, say, write_page
from ktrial.cli.options.arguments import (
    KernelsAndStoredWorkload,
    RangesAndWorkloads,
    WorkloadArguments,
    kernels_and_stored_workload,
    named_by,
)
from ktrial.cli.options.common import (
    Count,
    DryRun,
    GuestMemory,
    Jobs,
    Json,
    Margin,
    PageFile,
    Perturbations,
    StoreOption,
    StudyRunOptions,
    Verbose,
    margin_of,
    on_fleet,
)
from ktrial.cli.options.completion import (
    kernel_lists,
    kernel_names,
    metric_names,
    study_names,
    workload_names,
    workload_sets,
)
from ktrial.cli.options.workloads import in_sets, workload_names_of
from ktrial.cli.running.preflight import check_first, fetching_tools
from ktrial.cli.studies import DAMAGED, open_existing, open_store, registry, study_of_options, tell_left_out
from ktrial.model.notation import nearest

if TYPE_CHECKING:
    from ktrial.analysis.history.series import HasNumbers
    from ktrial.model.study import Study


@examples(
    "ktrial history fork",
    "ktrial history 5.10..7.2 fork --html fork.html",
    "ktrial history fork --commits v6.1.170..v6.1.176 --git linux",
)
def history(
    arguments: KernelsAndStoredWorkload = None,
    kernels: list[str] | None = Option(
        None,
        metavar="A..B",
        help="Versions: 5.10..7.2, or names with commas between them; the same as the arguments.",
        autocompletion=kernel_lists,
    ),
    commits: str | None = Option(
        None, metavar="BASE..TIP", help="Commits that ktrial series or ktrial watch measured."
    ),
    git: Path | None = Option(None, metavar="DIR", help="Their tree; else the one it stands in."),
    configuration: str | None = Option(
        None, "--config", metavar="C", help="Of the commits' kernels; else guest."
    ),
    option: list[str] | None = Option(None, metavar="NAME=y", help="An option of them; may be repeated."),
    metric: str | None = Option(
        None, metavar="M", help="A metric; else the first one.", autocompletion=metric_names
    ),
    by_time: bool = Option(False, "--by-time", help="In the order of measuring, not of versions."),
    margin: str | None = Option(
        None, metavar="1%", help="Exact: what is no change; else the newest study's."
    ),
    alpha: float = Option(0.05, min=1e-6, max=0.5, metavar="0.05", help="Timed: rate of false alarms."),
    verbose: Verbose = False,
    json: Json = False,
    html: PageFile = None,
    store: StoreOption = None,
) -> None:
    """Show where a metric changed over versions; list regressions.

    Without W: the regressions of all workloads, each with its id and what became of it; with an ID all that
    is known of one.

    Numbers of other machines, settings or modes are lines of their own, and never mixed. W may be written
    without its parameters where only one variant is stored. Exit code 1: a study is not what was stored; it
    is named, and the others are shown.
    """
    from ktrial.analysis.history import series as histories
    from ktrial.analysis.history.stored_numbers import garbage_kept, stored_numbers
    from ktrial.analysis.store_queries import label_of
    from ktrial.cli.render.history import print_history
    from ktrial.cli.render.next_step import same_command

    if not arguments or (len(arguments) == 1 and _REGRESSION_ID.fullmatch(arguments[0])):
        _show_regressions(arguments[0] if arguments else None, store, json=json, whole=verbose)
        return
    named, workload = kernels_and_stored_workload(arguments)
    kernels = [*named, *(kernels or ())]
    _check_commits(commits, {"--git": git, "--config": configuration, "--option": option}, kernels, by_time)
    edge = margin_of(margin)
    with garbage_kept(for_good=True), open_existing(store) as opened:
        numbers, name = stored_numbers(opened, say, leave_out=True), opened.name
        label = label_of(numbers.studies, workload)
        studies = numbers.of_one(label)
    counts: dict[str, int] = {}
    if commits:
        from ktrial.kernels.build.requests import requested
        from ktrial.kernels.patch_series import series_in_git
        from ktrial.series.commit_ranges import commit_history

        series = series_in_git(git or Path.cwd(), commits)
        base = requested(
            series.base, config=configuration or "guest", options=option or (), directory=Path.cwd()
        )
        of_range = commit_history(studies, label, series, base, metric=metric, margin=edge, alpha=alpha)
        result = of_range.history
        counts = {"commits": of_range.commits, "measured": of_range.measured}
    else:
        from ktrial.experiment.kernel_choice import chosen

        measured = histories.versions(studies, label)
        only = chosen(kernels, measured.items()) if kernels else None
        places = {} if only or by_time else _commit_places(measured)
        result = histories.history(
            studies,
            label,
            metric=metric,
            kernels=only,
            margin=edge,
            by_time=by_time,
            alpha=alpha,
            commits=places,
        )
    result = result.model_copy(update={"left_out": studies.left_out})
    if not result.lines:
        if commits:
            raise _no_commit_measured(name, label, commits, git, configuration, option)
        tell_left_out(studies.left_out)
        raise _not_measured(name, label, studies, metric, kernels or [])
    if html:
        from ktrial.report.history import history_page

        range_words = f" --commits {commits}" if commits else ""
        page_of = label if commits else workload
        write_page(html, history_page(result), f"ktrial history {page_of}{range_words} --html FILE")
    if json:
        print_json({**result.model_dump(mode="json"), **counts})
    else:
        notes = [f"{counts['measured']} of {counts['commits']} commits have a number"] if commits else []
        notes += [f"page: {html.expanduser().absolute()}"] if html else []
        print_history(
            result,
            output(),
            whole=verbose,
            notes=notes,
            more=same_command("-v"),
            store=store,
            next_step="" if html else same_command("--html", "history.html"),
        )
    if tell_left_out(studies.left_out):
        raise typer.Exit(DAMAGED)


_REGRESSION_ID = re.compile(r"(?=.*\d)[0-9a-f]{4,8}")
"""Or the beginning of one, as git takes commits."""


def _show_regressions(which: str | None, location: str | None, *, json: bool, whole: bool) -> None:
    """All regressions in the store, or one."""
    from ktrial.analysis.history.regressions import all_regressions
    from ktrial.analysis.history.stored_numbers import stored_numbers
    from ktrial.cli.render.regressions import print_regression, print_regressions
    from ktrial.cli.running.regressions import find_regression, remember
    from ktrial.report.regressions import all_as_json, as_json

    with open_existing(location) as opened:
        if which:
            tracked = find_regression(opened, which)
            print_json(as_json(tracked)) if json else print_regression(tracked, output(), whole=whole)
            return
        numbers = stored_numbers(opened, say, leave_out=True)
        every = remember(opened, all_regressions(numbers))
    if json:
        print_json(all_as_json(every))
    else:
        print_regressions(every, output(), whole=whole)
    if tell_left_out([study.name for study in numbers.left_out]):
        raise typer.Exit(DAMAGED)


def _check_commits(
    commits: str | None, options: Mapping[str, object], kernels: list[str] | None, by_time: bool
) -> None:
    """Raise BadOption where an option does not go with --commits, or without it."""
    if commits is None:
        for option, value in options.items():
            if value:
                raise BadOption(option, "it goes with --commits BASE..TIP")
    elif kernels or by_time:
        option = "--kernels" if kernels else "--by-time"
        raise BadOption(option, "commits of --commits stand in their own order")


def _commit_places(kernels: Mapping[str, str]) -> dict[str, int]:
    """The commits' own order, of kernels with their releases; what their tree no longer tells is said."""
    if not any(name.startswith(("git:", "build:")) for name in kernels):
        return {}
    from ktrial.kernels.providers.git import commit_places, unordered_trees

    places = commit_places(kernels)
    for tree in unordered_trees(kernels, places):
        say(
            f"warning: {tree} does not tell the order of its commits (any more): they stand as their study "
            "names them, and better and worse are meant so; --kernels A,B,C says another order"
        )
    return places


def _no_commit_measured(
    store: str, label: str, commits: str, git: Path | None, config: str | None, options: list[str] | None
) -> "NotMeasured":
    words = ["ktrial", "series", commits, *(["--git", str(git)] if git else [])]
    words += ["--config", config] if config and config != "guest" else []
    words += [word for text in options or () for word in ("--option", text)]
    hint = f"{shlex.join([*words, '--workload', label, '--every', '16'])} measures them"
    return NotMeasured(store=store, workload=label, detail=f" on a commit of {commits}", hint=hint)


def _not_measured(
    store: str, workload: str, studies: "HasNumbers", metric: str | None, kernels: list[str]
) -> "NotMeasured":
    """What is not there: the workload, the metric, or the kernels; and what is there instead."""
    from ktrial.analysis.history.series import metrics, versions
    from ktrial.model.kernel import version_order
    from ktrial.workloads import descriptions

    measured = metrics(studies, workload)
    if not measured:
        names = descriptions()
        if workload in names:
            return NotMeasured(store=store, workload=workload, detail="")
        hint = "ktrial list and ktrial show say what is stored"
        return NotMeasured(store=store, workload=workload, detail=nearest(workload, names), hint=hint)
    if metric and metric not in measured:
        hint = f"its metrics are {', '.join(measured)}"
        detail = f", metric {metric}{nearest(metric, measured)}"
        return NotMeasured(store=store, workload=workload, detail=detail, hint=hint)
    hint = f"measured are {', '.join(sorted(versions(studies, workload), key=version_order))}"
    return NotMeasured(store=store, workload=workload, detail=f", kernels {','.join(kernels)}", hint=hint)


@examples(
    "ktrial matrix 5.10..7.2 default --fetch",
    "ktrial matrix 6.1,6.12 fork,pipe --csv",
    "ktrial matrix --study my-matrix --html matrix.html",
)
@on_fleet
def matrix(
    arguments: RangesAndWorkloads = None,
    kernels: list[str] | None = Option(
        None, metavar="A..B", help="5.10..7.2 of the cache, or names.", autocompletion=kernel_lists
    ),
    workloads: list[str] | None = Option(
        None, metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets
    ),
    study: str | None = Option(
        None, metavar="NAME", help="A stored study: nothing is run.", autocompletion=study_names
    ),
    baseline: str | None = Option(
        None, metavar="KERNEL", help="Else the first.", autocompletion=kernel_names
    ),
    fetch: bool = Option(False, "--fetch", help="A range: of all series that Debian has."),
    flavour: Literal["cloud", "generic", "rt"] = Option(
        "cloud", metavar="F", help="Of a range: cloud, generic, rt."
    ),
    perturbations: Perturbations = None,
    margin: Margin = None,
    memory: GuestMemory = None,
    count: Count = None,
    dry_run: DryRun = False,
    verbose: Verbose = False,
    json: Json = False,
    csv: bool = Option(False, "--csv", help="Print CSV: one row a cell."),
    html: PageFile = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure versions in workloads, and show them as a heat map.

    Interrupted, the same command goes on where it stopped. With --study a stored study is shown.
    """
    from ktrial.analysis.result import load_record
    from ktrial.cli.progress import progress
    from ktrial.cli.render.matrix import print_matrix
    from ktrial.cli.render.next_step import store_option
    from ktrial.cli.running.reports import explain
    from ktrial.cli.running.study import show_plans
    from ktrial.experiment.session import run
    from ktrial.report import matrix as matrices
    from ktrial.report import study_summary, whys
    from ktrial.report.csv_and_json import csv_text
    from ktrial.report.matrix import matrix_page

    named = named_by(arguments, ranges=True).with_options(kernels, workloads)
    if bool(study) == bool(named.kernels):
        raise BadOption("--kernels or --study", "give one of the two")
    if json and csv:
        raise BadOption("--json and --csv", "give one of the two")
    check_page(html)
    planned = None
    if named.kernels:
        settings = {
            "machine": {"count": count, "memory": memory},
            "margin": margin,
            "perturbations": perturbations,
        }
        planned = _planned(
            named.kernels, named.workloads, baseline, settings, jobs, fetch=fetch, flavour=flavour
        )
    if dry_run:
        if planned is None:
            raise BadOption("--dry-run", "a stored study is shown, and nothing is run")
        show_plans({"": planned}, StudyRunOptions(store=store, jobs=jobs, json=json, dry_run=True))
        return
    with open_existing(store) if study else open_store(store) as opened:
        if planned is None:
            record = load_record(opened, opened.find(study or "").id)
        else:
            with progress() as observer:
                record = run(planned, store=opened, observer=observer, jobs=jobs)
        if html:
            page = matrix_page(matrices.matrix(record), whys(opened, record, explain))
            write_page(html, page, "the same command again, which measures nothing twice")
    result = matrices.matrix(record, all_metrics=json or csv)
    if json:
        print_json(result.model_dump(mode="json"))
    elif csv:
        typer.echo(csv_text(matrices.for_programs(result)).encode(), nl=False)
    else:
        again = shlex.join(["ktrial", "matrix", "--study", str(result.study_id), *store_option(store)])
        print_matrix(
            result,
            output(),
            whole=verbose,
            notes=[f"page: {html.expanduser().absolute()}"] if html else [],
            more=f"{again} -v",
            store=store,
            next_step="" if html else f"{again} --html matrix.html",
        )
    if planned is not None and study_summary.failed_trials(record):
        raise typer.Exit(3)


def _planned(
    kernels: Sequence[str],
    workloads: Sequence[str],
    baseline: str | None,
    settings: dict[str, Any],
    jobs: int | None,
    *,
    fetch: bool,
    flavour: str,
) -> "Study":
    """The study of these kernels and workloads. Raises KernelError, StudyError, AnalysisError."""
    from ktrial.experiment.kernel_choice import expanded

    names_of_workloads = workload_names_of(workloads)
    tools = fetching_tools() if fetch else ()
    check_first(kernels=kernels, workloads=names_of_workloads, tools=tools, jobs=jobs)

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        if not total:
            say(what)

    kernel_name = registry().kernel_name
    names = expanded(kernels, kernel_name, progress, fetch=fetch, flavour=flavour)
    first = names[0] if baseline is None else kernel_name(baseline)
    ordered = [first, *(name for name in names if name != first)]
    return study_of_options(
        {
            "question": f"How do {len(ordered)} kernels compare with {first}?",
            "factors": {"kernel": {"levels": ordered}},
            "workloads": names_of_workloads,
            **settings,
        },
        "matrix",
        {"factors": "--kernels", "workloads": "--workloads", "machine": "the machine's options"},
    )


@examples("ktrial matrix recommend fork,pipe", "ktrial matrix recommend default --margin 2%")
def recommend(
    arguments: WorkloadArguments = None,
    workloads: list[str] | None = Option(
        None, metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets
    ),
    margin: Margin = None,
    verbose: Verbose = False,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Rank kernels by their stored results in some workloads.

    It says which are best, and which to avoid. Nothing is run. The rank is the geometric mean of how far a
    kernel is behind the best one of each workload. If one workload alone decides, that is said.
    """
    from ktrial.analysis.history.recommend import recommend as ranked_kernels
    from ktrial.cli.render.recommendation import print_recommendation

    edge = margin_of(margin)
    texts = named_by(arguments).with_options((), workloads).only_workloads("all measured kernels are ranked")
    if not texts:
        raise BadUsage("Which workloads?", hint="ktrial matrix recommend fork,pipe; or default, quick")
    with open_existing(store) as opened:
        names, optional = workload_names_of(texts), in_sets(texts)
        recommendation = ranked_kernels(opened, names, edge, optional=optional)
    if json:
        print_json(recommendation.model_dump(mode="json"))
        return
    print_recommendation(recommendation, output(), whole=verbose)


@examples("ktrial matrix systems 6.1 6.12", "ktrial matrix systems 6.1 6.12 fork,pipe")
def systems(
    old: str = Argument(..., metavar="OLD", help="A kernel.", autocompletion=kernel_names),
    new: str = Argument(..., metavar="NEW", help="Another.", autocompletion=kernel_names),
    arguments: WorkloadArguments = None,
    workloads: list[str] | None = Option(
        None, metavar="W1,W2…", help="Else all that the store has.", autocompletion=workload_names
    ),
    margin: str = Option("1%", metavar="1%", help="The smallest difference that matters."),
    verbose: Verbose = False,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say whether a change is the same on all machines.

    Machine by machine, and the interaction of machine and version tested. In real time also over machines
    like these, as random effects; exact numbers are not averaged over machines.
    """
    from ktrial.analysis.history.machine_agreement import across
    from ktrial.analysis.history.stored_numbers import stored_numbers
    from ktrial.analysis.store_queries import labels_of
    from ktrial.cli.render.recommendation import print_across
    from ktrial.kernels.kernel_registry import canonical_name

    first, second = map(canonical_name, (old, new))
    texts = named_by(arguments).with_options((), workloads).only_workloads("OLD and NEW are compared")
    with open_existing(store) as opened:
        stored, name = stored_numbers(opened, say), opened.name
        labels = list(dict.fromkeys(use.label for study in stored.studies for use in study.workloads))
        if texts:
            labels = list(labels_of(stored.studies, workload_names_of(texts)))
        rows = across(stored, labels, first, second, margin_of(margin) or 0.01)
    if not rows:
        raise AnalysisError(
            f"Store {name}: no two machines have measured both {first} and {second} in one of these "
            "workloads.",
            hint=f"measure them with this store on another machine: ktrial matrix --kernels {first},{second}",
        )
    if json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    print_across(rows, output(), whole=verbose)
