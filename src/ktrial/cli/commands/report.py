"""`ktrial report`, `show`, `list`, `site` and `serve`: what the store has. Nothing is run."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial import interruption
from ktrial.cli.command_line import Argument, BadOption, Option, examples
from ktrial.cli.console import output, print_json, say
from ktrial.cli.error_handling import save_bug_report, tell
from ktrial.cli.options.common import Json, Signers, StoreOption, StudyOrBundle, Verbose
from ktrial.cli.studies import DAMAGED, is_bundle, open_existing, open_named, open_store, tell_left_out
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.installation import how_to_add
from ktrial.serve.errors import ServeError
from ktrial.store.errors import StoreForbidden
from ktrial.store.location import default_location
from ktrial.store.quick_reader import NoQuickReading, quick_reader, row_of

if TYPE_CHECKING:
    from ktrial.model.study import StudyRecord
    from ktrial.serve.server import Server
    from ktrial.store.integrity import StudyName
    from ktrial.store.quick_reader import StudyRow

Whys = Annotated[bool, typer.Option("--whys/--no-whys", help="Show which functions make up the changes.")]


@examples("ktrial report quick --html quick.html", "ktrial report quick --markdown")
def report(
    study: StudyOrBundle = None,
    html: Path | None = Option(
        None, metavar="FILE", help="Write the page here; else to reports/ beside the store."
    ),
    whole: bool = Option(
        False, "--whole", help="A page with every section open and every picture drawn, for printing."
    ),
    markdown: bool = Option(False, "--markdown", help="Print Markdown, for a pull request, instead."),
    csv: bool = Option(False, "--csv", help="Print CSV instead: a row for each comparison."),
    samples: bool = Option(False, "--samples", help="With --csv: a row for each sample."),
    series: bool = Option(
        False, "--series", help=("With --csv: a row for each moment at which monitors read values.")
    ),
    scaling: bool = Option(False, "--scaling", help="With --csv: a row for each number of CPUs."),
    signers: Signers = None,
    store: StoreOption = None,
) -> None:
    """Write a study's report: one HTML page, Markdown or CSV. Nothing is run."""
    from ktrial import report as reports
    from ktrial.analysis.result import load_record
    from ktrial.cli.running.reports import default_report, explain, write_report

    _check_options(
        {"--html": html is not None, "--markdown": markdown, "--csv": csv},
        {"--samples": samples, "--series": series, "--scaling": scaling},
        printable=whole,
    )
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
        record = load_record(opened, stored.id)
        if stored.study.search and not (samples or series or scaling):
            from ktrial.cli.running.search_answer import with_confirmation

            record = with_confirmation(record, stored, opened)
        whys = () if csv else reports.whys(opened, record, explain)
    if markdown:
        typer.echo(reports.study_markdown(record, whys), nl=False)
    elif csv:
        table_of = (
            reports.samples_csv
            if samples
            else reports.series_csv
            if series
            else reports.scaling_csv
            if scaling
            else reports.comparisons_csv
        )
        # As bytes: text would have its CR LF turned into the platform's line ends.
        typer.echo(table_of(record).encode(), nl=False)
    else:
        path = html or default_report(record, store or default_location())
        print(f"report: {write_report(record, path, whys, whole=whole)}")


def _check_options(forms: dict[str, bool], rows: dict[str, bool], *, printable: bool) -> None:
    """Raise BadOption where the options contradict each other."""
    form = [option for option, is_set in forms.items() if is_set]
    if len(form) > 1:
        raise BadOption(" and ".join(form), "give one of them: one report at a time")
    if printable and form not in ([], ["--html"]):
        raise BadOption("--whole", "it goes with the HTML page")
    table = [option for option, is_set in rows.items() if is_set]
    if len(table) > 1:
        raise BadOption(" and ".join(table), "give one of them: one table at a time")
    if table and form != ["--csv"]:
        raise BadOption(table[0], "it goes with --csv")


@examples("ktrial show", "ktrial show quick --json", "ktrial show quick.zip")
def show(
    study: StudyOrBundle = None,
    console: bool = Option(False, "--console", help="Show the consoles of trials that failed, instead."),
    signers: Signers = None,
    verbose: Verbose = False,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Show a study's answer again; nothing is run."""
    from ktrial.analysis.result import load_record
    from ktrial.cli.running.reports import explain
    from ktrial.report import whys

    with open_named(store, study, signers) as (opened, stored):
        if stored.study.search and not console:
            from ktrial.cli.running.search_answer import show_search

            show_search(stored, opened, json=json, whole=verbose)
            return
        record = load_record(opened, stored.id)
        if console:
            _print_consoles(record)
            return
        if json:
            from ktrial.report.csv_and_json import record_as_json

            print_json(record_as_json(record, opened.name, whys=whys(opened, record, explain, graphs=False)))
            return
        from ktrial.cli.render.study_result import MOST_WORKLOADS, print_study

        reasons = whys(opened, record, explain, MOST_WORKLOADS + 1, graphs=False)
        print_study(record, reasons, store, verbose=verbose)


def _print_consoles(record: "StudyRecord") -> None:
    from ktrial.cli.render.study_result import failure
    from ktrial.report import study_summary

    failed = study_summary.failed_trials(record)
    if not failed:
        print(f"no trial of {record.study.name} failed")
    for trial in failed:
        print(f"--- {failure(trial)}")
        print(printable(trial.console).rstrip() or "(the console is empty)")


@examples("ktrial list", "ktrial list --all")
def list_studies(
    store: StoreOption = None,
    all_: bool = Option(
        False, "--all", help="Also list studies that commands made: check, bisect, explain --prove."
    ),
    json: Json = False,
) -> None:
    """List the studies in the store.

    Exit code 1: a study is damaged. It is named, and the others are listed.
    """
    name, rows, damaged = _stored_studies(store)
    shown = [row for row in rows if all_ or not row.made_by]
    if json:
        print_json(
            [
                {
                    "id": row.id,
                    "study": row.name,
                    "question": row.question,
                    "made_by": row.made_by,
                    "created": row.created.isoformat(),
                    "planned": row.planned,
                    "finished": row.finished,
                    "failed": row.failed,
                    "store": name,
                }
                for row in shown
            ]
        )
    elif shown:
        _print_list(shown)
    elif not (rows or damaged):
        say(f"there is no study in {name} yet; run one: ktrial run STUDY.toml")
    if not json and len(rows) > len(shown):
        hidden = Counter(row.made_by for row in rows if row.made_by)
        commands = ", ".join(f"{command} {count}" for command, count in sorted(hidden.items()))
        hidden_count = len(rows) - len(shown)
        say(f"{hidden_count} more studies that commands made ({commands}): ktrial list --all")
    if damaged:
        tell_left_out([f"study {study.id}, {study.name}" for study in damaged], "listed")
        raise typer.Exit(DAMAGED)


def _stored_studies(store: str | None) -> "tuple[str, Sequence[StudyRow], Sequence[StudyName]]":
    """The store's name, its studies and the damaged ones: without SQLAlchemy, where it is a sound file.

    Raises StoreError.
    """
    try:
        with quick_reader(store or default_location()) as reader:
            return reader.name, reader.studies(), ()
    except NoQuickReading:
        with open_existing(store) as opened:
            sound, damaged = opened.readable_studies()
            return opened.name, [row_of(study) for study in sound], damaged


def _print_list(rows: "list[StudyRow]") -> None:
    from ktrial.cli.render.table import print_table

    cells = [
        (
            str(row.id),
            one_line(row.name),
            number_format.moment(row.created),
            f"{row.finished}/{row.planned or '?'}" + (f", {row.failed} failed" if row.failed else ""),
            one_line(row.question),
        )
        for row in rows
    ]
    print_table(("id", "study", "made", "trials", "question"), cells, output())


@examples("ktrial site public", "ktrial site public --full all")
def site(
    directory: Path = Argument(..., metavar="DIR", help="A new directory, or an earlier site's."),
    full: str | None = Option(
        None, metavar="N|all", help="How many more results get whole pages now; else 50."
    ),
    url: str | None = Option(None, "--url", metavar="URL", help="Its address, for the links of its feed."),
    whys: Whys = True,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a static site of all results.

    It has an index, a matrix, a history of each workload, and a page for each regression, with an Atom feed,
    and each result. The newest results are whole. Beyond --full, the others are in brief, with their
    verdicts; each run makes more of them whole.

    All links are relative: the site opens from disk, and any web server can show it.
    """
    from ktrial.cli.running.reports import explain
    from ktrial.report.site.front_page import A_PAGE
    from ktrial.report.site.site import MOST_AT_ONCE, build

    most = MOST_AT_ONCE if full is None else _most(full)
    with open_existing(store) as opened:
        place = directory.expanduser().absolute()
        built = build(opened, place, explain=explain if whys else None, full=most, tell=say, url=url or "")
    if json:
        facts = {"pages": built.pages, "made": built.rendered, "results": built.results}
        print_json({"index": str(built.front), **facts, "in_brief": built.in_brief, "lists": built.lists})
        return
    print(f"site: {built.front} ({built.pages} pages)")
    if built.in_brief:
        are = "is" if built.in_brief == 1 else "are"
        print(
            f"{built.in_brief} of {built.results} results {are} in brief, with verdicts only: the same "
            "command makes the newest of them whole, and --full all makes all whole; ktrial serve shows "
            "each one whole"
        )
    if built.lists:
        print(
            f"the front page lists the newest {A_PAGE} of {built.results} results; {built.lists} pages in "
            "lists/ list all, and lists/names.html lists their names"
        )


def _most(text: str) -> int | None:
    """`50` → 50; `all` → None. Raises BadOption."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadOption("--full", f"{text} is neither a number of results nor all")
    return int(text)


@examples("ktrial serve", "ktrial serve --store lab.db --port 8001", "ktrial serve --no-whys")
def serve(
    port: int = Option(8000, min=0, max=65535, metavar="N", help="The port to listen on; 0: any free one."),
    address: str = Option(
        "127.0.0.1",
        metavar="ADDRESS",
        help="The address to listen on; whoever reaches it can read everything.",
    ),
    names: list[str] | None = Option(
        None,
        "--name",
        metavar="HOST",
        help="A host name to answer for, behind a proxy; may be repeated.",
    ),
    whys: Whys = True,
    store: StoreOption = None,
) -> None:
    """Show the store in a browser; studies that run are live.

    It makes the pages of ktrial site and the reports on request. Nothing is changed, and there is no login.
    Ctrl-C ends it.
    """
    from threading import Event

    stop = Event()
    with (
        _serving(store, address, port, names or (), stop.set, whys=whys) as server,
        suppress(KeyboardInterrupt),
        interruption.listening(stop.set),
    ):
        server.start()
        print(f"serving at {server.url} (Ctrl-C ends it)", flush=True)
        stop.wait()
    say("ktrial: stopped")


@contextmanager
def _serving(
    store: str | None,
    address: str,
    port: int,
    names: Collection[str],
    stop: Callable[[], None],
    *,
    whys: bool,
) -> "Iterator[Server]":
    """A server of the store that listens, to be started. It has stopped, and the store is closed, at the end.

    Raises ServeError, StoreError.
    """
    from importlib import import_module

    from ktrial.cli.running.reports import explain
    from ktrial.store.store import Store

    for package in ("starlette", "uvicorn"):  # of an optional part of ktrial
        try:
            import_module(package)
        except ImportError as error:
            raise ServeError(
                f"ktrial serve needs {package}, which is not installed.",
                hint=f"install it: {how_to_add('serve')}",
            ) from error
    from ktrial.serve.content import Content
    from ktrial.serve.live import Live
    from ktrial.serve.server import Served, Server, application, is_loopback

    if not is_loopback(address):
        tell(
            f"whoever reaches {address} can read all that is in the store: there is no login",
            "a reverse proxy can ask for one: ktrial help serve",
            kind="warning",
        )
    location = store or default_location()
    with suppress(StoreForbidden):  # one that may only be read stays as it is
        open_store(location, existing=store is not None).close()

    def opened() -> Store:
        return open_store(location, read_only=True, followed=True)

    def tell_bug(error: Exception) -> None:
        bug, file = save_bug_report(error)
        tell(f"this is a bug in ktrial: {bug}", f"please report it, with the traceback in {file}")

    opened().close()
    served = Served(Content(opened, explain if whys else None), Live(opened), names, tell_bug)
    server = Server(application(served), address, port, stop)
    try:
        yield server
    finally:
        served.stopping.set()
        server.stop()
        served.content.close()
        served.live.close()
