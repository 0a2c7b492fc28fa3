"""`ktrial report`: what a study has measured, for people and for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli import output_cache, show_cache
from ktrial.cli.command_line import BadOption, examples
from ktrial.cli.console import json_text, output, print_json, say
from ktrial.cli.options.common import Json, Signers, StoreOption, StudyOrBundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ktrial.model.study import StudyRecord
    from ktrial.report.site.site import Site
    from ktrial.store.integrity import StudyName
    from ktrial.store.quick_reader import StudyRow


@examples("ktrial report quick --html quick.html", "ktrial report quick --markdown")
def report(
    study: StudyOrBundle = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the page here; else to reports/ beside the store."
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="A page with every section open and every picture drawn, for printing."),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request, instead.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead: one row a comparison.")] = False,
    samples: Annotated[bool, typer.Option("--samples", help="With --csv: one row a sample.")] = False,
    series: Annotated[
        bool, typer.Option("--series", help="With --csv: one row a moment of what was read over time.")
    ] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="With --csv: one row a number of CPUs.")] = False,
    signers: Signers = None,
    store: StoreOption = None,
) -> None:
    """Write a study's report: one HTML page, Markdown or CSV. Nothing is run."""
    from ktrial import report as reports
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.running.reports import default_report, explain, write_report
    from ktrial.cli.studies import is_bundle, open_named
    from ktrial.store.location import default_location

    rows = {"--samples": samples, "--series": series, "--scaling": scaling}
    _check(html, rows, whole=whole, markdown=markdown, csv=csv)
    location = store or default_location()
    if study is not None and is_bundle(study) and not html:
        html = Path(study).with_suffix(".html").absolute()
    with open_named(store, study, signers) as (opened, stored):
        if stored.study.search and not csv:
            from ktrial.cli.running.search_answer import markdown_of_search, report_search

            if markdown:
                typer.echo(markdown_of_search(stored, opened), nl=False)
            else:
                print(f"report: {report_search(stored, opened, html, whole=whole)}")
            return
        record = record_of(opened, stored.id)
        if stored.study.search and not any(rows.values()):
            from ktrial.cli.running.search_answer import with_confirmation

            record = with_confirmation(record, stored, opened)
        reasons = () if csv else reports.whys(opened, record, explain)
    if markdown:
        typer.echo(reports.study_markdown(record, reasons), nl=False)
    elif csv:
        # As bytes: text would have its CR LF turned into the platform's line ends.
        makers = (reports.samples_csv, reports.series_csv, reports.scaling_csv)
        made = next((it for it, asked in zip(makers, rows.values(), strict=True) if asked), None)
        made = made or reports.comparisons_csv
        table = made(record)
        typer.echo(table.encode(), nl=False)
    else:
        path = html or default_report(record, location)
        print(f"report: {write_report(record, path, reasons, whole=whole)}")


def _check(html: Path | None, rows: dict[str, bool], *, whole: bool, markdown: bool, csv: bool) -> None:
    """Raise BadParameter where the options contradict each other."""
    chosen = [
        name
        for name, given in (("--html", html is not None), ("--markdown", markdown), ("--csv", csv))
        if given
    ]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)}: one report at a time")
    if whole and (markdown or csv):
        raise typer.BadParameter("--whole goes with the page")
    asked = [option for option, given in rows.items() if given]
    if len(asked) > 1:
        raise typer.BadParameter(f"{' and '.join(asked)}: one table at a time")
    if asked and not csv:
        raise typer.BadParameter(f"{asked[0]} goes with --csv")


# `ktrial show`: what a study in the store has measured.


@examples("ktrial show", "ktrial show quick --json", "ktrial show quick.zip")
def show(
    study: StudyOrBundle = None,
    console: Annotated[
        bool, typer.Option("--console", help="Show the consoles of trials that failed, instead.")
    ] = False,
    signers: Signers = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Show a study's verdicts again; nothing is run."""
    from ktrial.cli.studies import is_bundle
    from ktrial.store.location import default_location

    location = store or default_location()
    form = "consoles" if console else "json" if json else "text"
    key = None if console or is_bundle(study) else show_cache.key_of(location, study, form)
    printed = key and output_cache.get(key)
    if not printed:
        with output_cache.warnings_heard() as warned:
            printed = _worked_out(store, study, form, signers)
        # While it was worked out, a trial may have ended.
        if printed and key and not warned and key == show_cache.key_of(location, study, form):
            output_cache.put(key, printed)
    if printed and json:
        print(printed, end="")
    elif printed:
        from ktrial.cli.render.recorded import replay

        replay(printed, output())


def _worked_out(store: str | None, study: str | None, form: str, signers: Path | None) -> str:
    """The JSON, or the record of what is printed; empty where it was printed right away."""
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.render.recorded import recorded
    from ktrial.cli.render.study_result import MOST_WORKLOADS
    from ktrial.cli.running.reports import explain
    from ktrial.cli.studies import open_named
    from ktrial.report import whys
    from ktrial.report.csv_and_json import record_as_json

    with open_named(store, study, signers) as (opened, stored):
        if stored.study.search and form != "consoles":
            from ktrial.cli.running.search_answer import show_search

            show_search(stored, opened, json=form == "json")
            return ""
        record = record_of(opened, stored.id)
        if form == "consoles":
            _print_consoles(record)
            return ""
        most = None if form == "json" else MOST_WORKLOADS + 1
        name, reasons = opened.name, whys(opened, record, explain, most, graphs=False)
    return (
        json_text(record_as_json(record, name, whys=reasons)) if form == "json" else recorded(record, reasons)
    )


def _print_consoles(record: "StudyRecord") -> None:
    from ktrial.cli.render.study_result import failure
    from ktrial.format.sanitize import printable
    from ktrial.report import study_summary

    failed = study_summary.failed_trials(record)
    if not failed:
        print(f"no trial of {record.study.name} failed")
    for trial in failed:
        print(f"--- {failure(trial)}")
        print(printable(trial.console).rstrip() or "(the console is empty)")


# `ktrial list`: the studies in the store.

All = Annotated[
    bool,
    typer.Option("--all", help="Also what check, watch, baseline and bisect measured for themselves."),
]


@examples("ktrial list", "ktrial list --all")
def list_studies(store: StoreOption = None, all_: All = False, json: Json = False) -> None:
    """List the studies in the store.

    Exit code 1: a study is not what was stored; it is named, and the others are listed.
    """
    name, every, damaged = _studies(store)
    shown = [one for one in every if all_ or one.is_a_users]
    if json:
        print_json([_data(one, name) for one in shown])
    else:
        if shown:
            _print(shown)
        elif not (every or damaged):
            say(f"there is no study in {name} yet; run one: ktrial run STUDY.toml")
        if hidden := len(every) - len(shown):
            say(f"{hidden} more that ktrial measured for check, watch, baseline or bisect: ktrial list --all")
    _tell_damaged(damaged)


def _studies(store: str | None) -> "tuple[str, list[_Listed], Sequence[StudyName]]":
    """The store's name, its studies and the damaged ones: read quickly where that can be done.

    Raises StoreError.
    """
    from ktrial.store.location import default_location
    from ktrial.store.quick_reader import NoQuickReading, quick_reader, row_of

    try:
        with quick_reader(store or default_location()) as reader:
            return reader.name, [_Listed(one) for one in reader.studies()], ()
    except NoQuickReading:
        from ktrial.cli.studies import open_existing

        with open_existing(store) as opened:
            sound, damaged = opened.readable_studies()
            return opened.name, [_Listed(row_of(one)) for one in sound], damaged


def _tell_damaged(damaged: "Sequence[StudyName]") -> None:
    """A warning for each; where there is one, `list` ends here."""
    from ktrial.cli.studies import DAMAGED, tell_left_out

    if tell_left_out([f"study {one.id}, {one.name}" for one in damaged], "listed"):
        raise typer.Exit(DAMAGED)


class _Listed:
    """A study, and what is said of it beside what its row has."""

    def __init__(self, row: "StudyRow") -> None:
        self.row = row
        self.planned = row.planned
        # A study file can choose no name with a colon, and has a search or at least two treatments.
        self.is_a_users = row.is_search or (":" not in row.name and row.treatment_count > 1)


def _data(one: _Listed, store: str) -> dict[str, Any]:
    return {
        "id": one.row.id,
        "study": one.row.name,
        "question": one.row.question,
        "created": one.row.created.isoformat(),
        "planned": one.planned,
        "finished": one.row.finished,
        "failed": one.row.failed,
        "store": store,
    }


def _print(studies: list[_Listed]) -> None:
    from ktrial.cli.render.table import print_table
    from ktrial.format import number_format
    from ktrial.format.sanitize import one_line

    def cells(one: _Listed) -> tuple[str, ...]:
        row = one.row
        failed = f", {row.failed} failed" if row.failed else ""
        trials = f"{row.finished}/{one.planned or '?'}{failed}"
        made = number_format.moment(row.created)
        return str(row.id), one_line(row.name), made, trials, one_line(row.question)

    print_table(("id", "study", "made", "trials", "question"), list(map(cells, studies)), output())


# `ktrial site`: a static site of everything in the store.


@examples("ktrial site public", "ktrial site public --full all")
def site(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory, or an earlier site's.")],
    full: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="How many more results get whole pages now; else 50."),
    ] = None,
    whys: Annotated[bool, typer.Option("--whys/--no-whys", help="Say what changes are made of.")] = True,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a static site of all results.

    An index, a matrix, a history for each workload, a page for each result: the newest whole, and where there
    are more than --full the others in brief, with their verdicts. Each run makes more of them whole.

    All links are relative: it opens from disk, and any web server can show it.
    """
    from ktrial.cli.console import print_json, say
    from ktrial.cli.running.reports import explain
    from ktrial.cli.studies import open_existing
    from ktrial.report.site.site import MOST_AT_ONCE, build

    most = MOST_AT_ONCE if full is None else _most(full)
    with open_existing(store) as opened:
        place = directory.expanduser().absolute()
        built = build(opened, place, explain=explain if whys else None, full=most, tell=say)
    if json:
        facts = {"pages": built.pages, "made": built.rendered, "results": built.results}
        print_json({"index": str(built.front), **facts, "in_brief": built.in_brief, "lists": built.lists})
    else:
        print(f"site: {built.front} ({built.pages} pages)")
        if built.in_brief:
            print(_in_brief(built))
        if built.lists:
            print(_lists(built))


def _most(text: str) -> int | None:
    """`50` → 50; `all` → None. Raises BadOption."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadOption(option="--full", problem=f"{text} is neither a number of results nor all")
    return int(text)


def _in_brief(built: "Site") -> str:
    are = "is" if built.in_brief == 1 else "are"
    return (
        f"{built.in_brief} of {built.results} results {are} in brief, with their verdicts alone: "
        "the same command makes the newest of these whole, --full all makes all of them; "
        "ktrial serve shows each one whole"
    )


def _lists(built: "Site") -> str:
    from ktrial.report.site.front_page import A_PAGE

    return (
        f"the front page has the newest {A_PAGE} of {built.results} results; {built.lists} pages in lists/ "
        "have them all, lists/names.html their names"
    )


# `ktrial serve`: the store's studies in a browser.


@examples("ktrial serve", "ktrial serve --store lab.db --port 8001", "ktrial serve --no-whys")
def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Where to listen; 0: at any port that is free.")
    ] = 8000,
    address: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Another address than this machine's own: whoever reaches it reads all."
        ),
    ] = "127.0.0.1",
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="HOST", help="A name that requests may be for, behind a proxy; may be repeated."
        ),
    ] = None,
    whys: Annotated[bool, typer.Option("--whys/--no-whys", help="Say what changes are made of.")] = True,
    store: StoreOption = None,
) -> None:
    """Show the store in a browser; studies that run are live.

    The pages of ktrial site and the reports, made when asked for. Nothing is changed, and nobody logs in.
    Ctrl-C ends it.
    """
    from contextlib import suppress
    from threading import Event

    from ktrial import interruption
    from ktrial.cli.console import say
    from ktrial.cli.running.serving import serving

    stop = Event()
    with (
        serving(store, address, port, names or (), stop.set, reasons=whys) as server,
        suppress(KeyboardInterrupt),
        interruption.listening(stop.set),
    ):
        server.start()
        print(f"serving at {server.url} (Ctrl-C ends it)", flush=True)
        stop.wait()
    say("ktrial: stopped")
