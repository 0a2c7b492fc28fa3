"""`ktrial history`: one metric over versions, with the places where it changed."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ktrial.analysis.errors import HistoryError
from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Count, Jobs, Json, Perturbations, StoreOption, on_fleet
from ktrial.cli.options.completion import (
    kernel_lists,
    kernel_names,
    metric_names,
    study_names,
    workload_names,
    workload_sets,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table as RichTable

    from ktrial.analysis.errors import NotMeasured
    from ktrial.analysis.history.series import HasNumbers
    from ktrial.model.comparison import Matrix
    from ktrial.model.history import KernelCandidate, Recommendation
    from ktrial.model.kernel import Build
    from ktrial.model.study import Study, StudyRecord
    from ktrial.store.store import Store
    from ktrial.studyfile.references import Registry


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
    from ktrial.analysis.history.series import history as history_of
    from ktrial.analysis.history.series import versions
    from ktrial.analysis.history.stored_numbers import garbage_kept, stored_numbers
    from ktrial.analysis.store_queries import label_of
    from ktrial.cli.console import output, print_json, say, write_page
    from ktrial.cli.options.common import margin_of
    from ktrial.cli.render.history import print_history
    from ktrial.cli.studies import DAMAGED, open_existing, tell_left_out

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
        from ktrial.report.history import history_page

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
    from ktrial.kernels.providers.git import commit_places, unordered_trees

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
    from ktrial.model.notation import nearest
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


# `ktrial history --commits`: the range that was asked for, and what is shown of it.


@dataclass(frozen=True)
class CommitsAsked:
    """A range of commits, and how their kernels were built."""

    text: str
    git: Path | None
    config: str
    options: tuple[str, ...]

    @classmethod
    def of(
        cls,
        commits: str | None,
        git: Path | None,
        config: str | None,
        options: tuple[str, ...],
        *,
        kernels: bool,
        by_time: bool,
    ) -> "CommitsAsked | None":
        """From the command's options; None where no commits are asked for. Raises BadOption."""
        from ktrial.cli.command_line import BadOption

        if commits is None:
            for name, given in (("--git", git), ("--config", config), ("--option", options)):
                if given:
                    raise BadOption(option=name, problem="it goes with --commits BASE..TIP")
            return None
        if kernels or by_time:
            other = "--kernels" if kernels else "--by-time"
            raise BadOption(option=other, problem="commits of --commits stand in their own order")
        return cls(commits, git, config or "guest", options)

    def show(
        self,
        studies: "HasNumbers",
        label: str,
        *,
        metric: str | None,
        margin: float | None,
        alpha: float,
        json: bool,
        html: Path | None,
        left_out: tuple[str, ...],
        store: str,
    ) -> None:
        """Print it. Raises BadCommitRange, NotMeasured where none of them has a number."""
        from ktrial.cli.console import output, print_json, write_page
        from ktrial.cli.render.history import print_history
        from ktrial.kernels.patch_series import series_in_git
        from ktrial.report.history import history_page
        from ktrial.series.commit_ranges import commit_history

        series = series_in_git(self.git or Path.cwd(), self.text)
        plain = self._build(series.base)
        of_range = commit_history(studies, label, series, plain, metric=metric, margin=margin, alpha=alpha)
        shown = of_range.history.model_copy(update={"left_out": left_out})
        if not shown.lines:
            raise self._nothing(store, label)
        if html:
            write_page(html, history_page(shown), f"ktrial history {label} --commits {self.text} --html FILE")
        if json:
            counts = {"commits": of_range.commits, "measured": of_range.measured}
            print_json({**shown.model_dump(mode="json"), **counts})
            return
        print_history(shown, output())
        print(f"{of_range.measured} of {of_range.commits} commits have a number.")
        if html:
            print(f"page: {html.expanduser().absolute()}")

    def _build(self, source: str) -> "Build":
        from ktrial.kernels.build.requests import requested

        return requested(source, config=self.config, options=self.options, directory=Path.cwd())

    def _nothing(self, store: str, label: str) -> "NotMeasured":
        from ktrial.analysis.errors import NotMeasured

        words = ["ktrial", "series", self.text, *(["--git", str(self.git)] if self.git else [])]
        words += ["--config", self.config] if self.config != "guest" else []
        words += [word for text in self.options for word in ("--option", text)]
        hint = f"{shlex.join([*words, '--workload', label, '--every', '16'])} measures them"
        return NotMeasured(store=store, workload=label, detail=f" on a commit of {self.text}", hint=hint)


# `ktrial matrix`: versions by workloads against a baseline, as a heat map.

_BETWEEN = re.compile(r",(?![^(]*\))")
"""A comma between workloads, and not one between the parameters of `seq-read(path=/mnt, size=8)`."""


_OPTIONS = {"factors": "--kernels", "workloads": "--workloads", "machine": "the machine's options"}


@examples(
    "ktrial matrix --kernels 5.10..7.2 --workloads default --fetch",
    "ktrial matrix --kernels debian:6.1,debian:6.12 --workloads fork,pipe --csv",
)
@on_fleet
def matrix(
    kernels: Annotated[
        list[str] | None,
        typer.Option(metavar="A..B", help="5.10..7.2 of the cache, or names.", autocompletion=kernel_lists),
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A stored study: nothing is run.", autocompletion=study_names),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="KERNEL", help="Else the first.", autocompletion=kernel_names),
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="A range: of all series that Debian has.")] = False,
    flavour: Annotated[
        Literal["cloud", "generic", "rt"], typer.Option(metavar="F", help="Of a range: cloud, generic, rt.")
    ] = "cloud",
    perturbations: Perturbations = None,
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that matters; else 1%.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="512M", help="The guest's memory; else 512M.")] = None,
    count: Count = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV: one row a cell.")] = False,
    html: PageFile = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure versions in workloads, and show them as a heat map.

    Interrupted, the same command goes on where it stopped. With --study a stored study is shown.
    """
    from ktrial.cli.running.preflight import check_first, fetching_tools
    from ktrial.cli.studies import open_existing
    from ktrial.report import study_summary, whys
    from ktrial.report.matrix import matrix as matrix_of
    from ktrial.report.matrix import matrix_page
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    _check(study, kernels, json=json, csv=csv)
    if study is None:
        check_first(
            kernels=kernels or (),
            workloads=workload_names_of(workloads),
            tools=fetching_tools() if fetch else (),
            jobs=jobs,
        )
    given = {
        "machine": _given({"count": count, "memory": memory}),
        **_given({"margin": margin, "perturbations": perturbations}),
    }
    wanted = (
        None if study else planned(kernels or [], workloads, baseline, given, fetch=fetch, flavour=flavour)
    )
    with open_existing(store) if study else open_store(store or default_location()) as opened:
        record = _measured(wanted, study or "", opened, jobs)
        if html:
            from ktrial.cli.console import write_page
            from ktrial.cli.running.reports import explain

            page = matrix_page(matrix_of(record), whys(opened, record, explain))
            write_page(html, page, "the same command again, which measures nothing twice")
    _print(matrix_of(record, all_metrics=json or csv), html, json=json, csv=csv)
    if wanted is not None and study_summary.failed_trials(record):
        raise typer.Exit(3)


def _measured(wanted: "Study | None", stored: str, store: "Store", jobs: int | None) -> "StudyRecord":
    """The record of the study that is wanted, run where that is needed; else of the stored one."""
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.progress import progress
    from ktrial.experiment.session import run

    if wanted is None:
        return record_of(store, store.find(stored).id)
    with progress() as observer:
        return run(wanted, store=store, observer=observer, jobs=jobs)


def _print(matrix: "Matrix", html: Path | None, *, json: bool, csv: bool) -> None:
    from ktrial.cli.console import output, print_json
    from ktrial.cli.render.history import print_matrix
    from ktrial.report.csv_and_json import csv_text
    from ktrial.report.matrix import for_programs

    if json:
        print_json(matrix.model_dump(mode="json"))
    elif csv:
        typer.echo(csv_text(for_programs(matrix)).encode(), nl=False)
    else:
        print_matrix(matrix, output())
        if html:
            print(f"page: {html.expanduser().absolute()}")


def _check(study: str | None, kernels: list[str] | None, *, json: bool, csv: bool) -> None:
    from ktrial.cli.command_line import BadOption

    if bool(study) == bool(kernels):
        raise BadOption(option="--kernels or --study", problem="give one of the two")
    if json and csv:
        raise BadOption(option="--json and --csv", problem="give one of the two")


def planned(
    kernels: list[str],
    workloads: list[str] | None,
    baseline: str | None,
    given: dict[str, Any],
    *,
    fetch: bool = False,
    flavour: str = "cloud",
    name: str = "matrix",
) -> "Study":
    """The study of these kernels and workloads. Raises KernelError, StudyError, HistoryError."""
    from ktrial.cli.console import say
    from ktrial.cli.studies import registry
    from ktrial.experiment.kernel_choice import expanded
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    installed = registry()

    def tell(what: str, done: int = 0, total: int = 0) -> None:
        if not total:
            say(what)

    names = expanded(kernels, installed.kernel_name, tell, fetch=fetch, flavour=flavour)
    first = _baseline(installed, baseline, names)
    ordered = [first, *(one for one in names if one != first)]
    data: dict[str, Any] = {
        "question": f"How do {len(ordered)} kernels compare with {first}?",
        "factors": {"kernel": {"levels": ordered}},
        "workloads": workload_names_of(workloads),
        **given,
    }
    return study_from(data, StudySource("command line", options=_OPTIONS), name, Path.cwd(), installed)


def _baseline(installed: "Registry", baseline: str | None, names: tuple[str, ...]) -> str:
    from ktrial.experiment.kernel_choice import full_name

    if baseline is None:
        return names[0]
    return installed.kernel_name(full_name(baseline))


def workload_names_of(texts: list[str] | None) -> list[str]:
    """`default`, `quick` and workloads, with commas between them; `default` where nothing is given."""
    sets = _sets()
    return list(dict.fromkeys(name for word in _words(texts) for name in sets.get(word, (word,))))


def in_sets(texts: list[str] | None) -> set[str]:
    """Those of the workloads that nobody named: they only belong to a set."""
    sets, words = _sets(), _words(texts)
    return {name for word in words for name in sets.get(word, ())} - set(words)


def _sets() -> dict[str, tuple[str, ...]]:
    from ktrial.workloads import DEFAULT, DISK, QUICK

    return {"default": DEFAULT, "quick": QUICK, "disk": DISK}


def _words(texts: list[str] | None) -> list[str]:
    parts = (part for text in texts or ["default"] for part in _BETWEEN.split(text))
    return [part.strip() for part in parts if part.strip()]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


# `ktrial recommend`: which of the measured kernels serve some workloads best, and which to avoid.


@examples("ktrial recommend --workloads fork,pipe")
def recommend(
    workloads: Annotated[
        list[str],
        typer.Option(metavar="W1,W2…", help="default, quick, or workloads.", autocompletion=workload_sets),
    ],
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that matters; else 1%.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say which kernels serve some workloads best.

    And which to avoid. Nothing is run. Kernels are ranked by the geometric mean of how far each is behind the
    best one of each workload; it is told where one workload decides.
    """
    from ktrial.analysis.history.recommend import recommend as recommend_from
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.common import margin_of
    from ktrial.cli.studies import open_existing
    from ktrial.format.sanitize import one_line

    edge = margin_of(margin)
    with open_existing(store) as opened:
        names, of_sets = workload_names_of(workloads), in_sets(workloads)
        recommendation = recommend_from(opened, names, edge, optional=of_sets)
    if json:
        print_json(recommendation.model_dump(mode="json"))
        return
    console = output()
    by = recommendation.measured_by
    console.print(one_line(f"how far behind the best kernel of each workload, in %, by {by}:"))
    console.print()
    console.print(_table(recommendation))
    console.print()
    for one in recommendation.candidates:
        if one.dominated_by:
            console.print(one_line(f"{one.version}: dominated by {', '.join(one.dominated_by)}"))
    if recommendation.left_out:
        console.print(one_line(f"not measured, and left out: {', '.join(recommendation.left_out)}"))
    for name, missing in recommendation.incomplete.items():
        console.print(one_line(f"{name}: not judged, it has no number of {', '.join(missing)}"))
    console.print(one_line(recommendation.answer), style="bold")


def _table(recommendation: "Recommendation") -> "RichTable":
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Cell, Column, Row, RowKind, Table, name, own
    from ktrial.model.workload import short_labels

    candidates, names = recommendation.candidates, short_labels(recommendation.workloads)
    columns = [Column("workload", "workload", wraps=True, columns=48)]
    columns += [
        Column(one.version, one.version.removeprefix("debian:"), named=True, heading_columns=18, numeric=True)
        for one in candidates
    ]

    def row(first: Cell, texts: Iterable[str], kind: RowKind = RowKind.PLAIN) -> Row:
        return Row((first, *map(own, texts)), kind)

    rows = [
        row(name(names[workload]), (_behind(one, place, recommendation.margin) for one in candidates))
        for place, workload in enumerate(recommendation.workloads)
    ]
    worst = row(own("worst"), (f"{(one.worst - 1) * 100:.2f}" for one in candidates), RowKind.SUM)
    mean = row(own("geometric mean"), (f"{(one.mean - 1) * 100:.2f}" for one in candidates), RowKind.SUM)
    return rendered(Table(tuple(columns), (*rows, *((mean,) if len(rows) > 1 else ()), worst)))


def _behind(one: "KernelCandidate", place: int, margin: float) -> str:
    """How far behind the best, in %."""
    regret = one.regrets[place]
    # `~`: inside margin and spread, as good as the best.
    mark = "~" if regret.low <= 1 + margin and regret.ratio > 1 else ""
    return f"{mark}{(regret.ratio - 1) * 100:.2f}"


# `ktrial systems OLD NEW`: is a change the same on all machines of a store?


@examples("ktrial systems debian:6.1 debian:6.12 --workloads fork,pipe")
def systems(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A kernel.", autocompletion=kernel_names)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Another.", autocompletion=kernel_names)],
    workloads: Annotated[
        list[str] | None,
        typer.Option(metavar="W1,W2…", help="Else all that the store has.", autocompletion=workload_names),
    ] = None,
    margin: Annotated[str, typer.Option(metavar="1%", help="The smallest difference that matters.")] = "1%",
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
    from ktrial.cli.console import output, print_json, say
    from ktrial.cli.options.common import margin_of
    from ktrial.cli.render.history import print_across
    from ktrial.cli.studies import open_existing
    from ktrial.experiment.kernel_choice import full_name
    from ktrial.kernels.kernel_registry import canonical_name

    first, second = (canonical_name(full_name(one)) for one in (old, new))
    with open_existing(store) as opened:
        stored, name = stored_numbers(opened, say), opened.name
        studies = stored.studies
        labels = list(dict.fromkeys(use.label for study in studies for use in study.workloads))
        wanted = labels_of(studies, workload_names_of(workloads)) if workloads else labels
        rows = across(stored, wanted, first, second, margin_of(margin) or 0.01)
    if not rows:
        raise HistoryError(
            f"Store {name}: no two machines have measured both {first} and {second} in one of these "
            "workloads.",
            hint=(
                f"measure them with this store on another machine: ktrial matrix --kernels {first},{second}"
            ),
        )
    if json:
        print_json([row.model_dump(mode="json") for row in rows])
        return
    console = output()
    for row in rows:
        print_across(row, console)
