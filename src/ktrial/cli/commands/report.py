"""`ktrial report`: what a study has measured, for people and for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.bundled_study import Signers, StudyOrBundle, is_bundle, open_named
from ktrial.cli.options.common import StoreOption


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
    from ktrial.cli.running.search_answer import markdown_of_search, report_search, with_confirmation
    from ktrial.cli.running.study import default_report, write_report
    from ktrial.store import default_location

    rows = {"--samples": samples, "--series": series, "--scaling": scaling}
    _check(html, rows, whole=whole, markdown=markdown, csv=csv)
    location = store or default_location()
    if study is not None and is_bundle(study) and not html:
        html = Path(study).with_suffix(".html").absolute()
    with open_named(store, study, signers) as (opened, stored):
        if stored.study.search and not csv:
            if markdown:
                typer.echo(markdown_of_search(stored, opened), nl=False)
            else:
                print(f"report: {report_search(stored, opened, html, whole=whole)}")
            return
        record = record_of(opened, stored.id)
        if stored.study.search and not any(rows.values()):
            record = with_confirmation(record, stored, opened)
        reasons = () if csv else reports.whys(opened, record)
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
