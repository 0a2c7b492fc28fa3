"""`ktrial analyze`: what published or measured numbers from elsewhere carry."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ktrial.cli.command_line import Argument, BadOption, Option, examples
from ktrial.cli.console import messages, output, print_json
from ktrial.cli.error_handling import tell_warnings
from ktrial.cli.options.common import EstimandOption, Json, share
from ktrial.model.notation import nearest
from ktrial.studyfile.toml_files import file_of

if TYPE_CHECKING:
    from ktrial.program_outputs.units import Units


@examples(
    "ktrial analyze results.csv --group-by kernel --value seconds",
    "ktrial analyze hyperfine.json --margin 2%",
    "ktrial analyze 6.1=fio-a.json 6.12=fio-b.json",
)
def analyze(
    files: list[str] = Argument(
        ..., metavar="FILE…", help="Results of other tools; LABEL=FILE names the group of a file."
    ),
    group_by: str | None = Option(
        None, metavar="KEY,…", help="What names the groups: columns, conditions (clients), file, or header."
    ),
    value: str | None = Option(None, metavar="COLUMN", help="CSV: the column of numbers."),
    unit: list[str] | None = Option(
        None,
        metavar="NAME=UNIT",
        help="What a name of a unit means: mbit_s=Mbit/s, or widgets=widgets:higher.",
    ),
    decimal: Literal["comma", "point"] | None = Option(
        None, help="CSV: what stands before decimals, if the numbers do not say."
    ),
    baseline: str | None = Option(
        None, metavar="GROUP", help="The group to compare with; else the default one, else the first."
    ),
    better: Literal["higher", "lower"] | None = Option(
        None, help="Which direction is better, if the file does not say."
    ),
    margin: str = Option("1%", metavar="1%", help="The smallest change that matters."),
    estimand: EstimandOption = None,
    confidence: str = Option("95%", metavar="95%", help="Confidence level of all intervals."),
    json: Json = False,
) -> None:
    """Analyse results of other tools and of papers; audit them.

    Prints groups, tests and verdicts. The audit names numbers that cannot be right, or that do not support a
    conclusion.

    Reads CSV (runs, or means with standard errors), results of Phoronix, LKP and MMTests (files or
    directories), UnixBench's reports and logs, and what `ktrial workload formats` lists: what hyperfine, fio,
    perf stat and others write.
    """
    from json import loads

    from ktrial import importers
    from ktrial.analysis.imported_results import AnalysisOptions, analyse
    from ktrial.cli.render.imported_analysis import print_analysis, print_columns
    from ktrial.importers.undecided import ColumnsUndecided
    from ktrial.model.comparison import Estimand
    from ktrial.model.workload import Direction

    tell_warnings(importers.installed()[1])
    columns = tuple(name.strip() for name in (group_by or "").split(",") if name.strip())
    choices = AnalysisOptions(
        confidence=share("--confidence", confidence, least=0.5, most=0.9999),
        margin=share("--margin", margin, least=1e-6, most=0.99),
        baseline=baseline or "",
        direction=Direction(better) if better else None,
        estimand=Estimand(estimand or Estimand.TYPICAL),
    )
    of_tables = importers.Choices(
        columns,
        value or "",
        units=_units(unit or []),
        decimal=decimal or "",
        better=choices.direction,
    )
    try:
        results = importers.read_all([_named(text) for text in files], of_tables)
    except ColumnsUndecided as error:
        print_columns(error.columns, messages())
        raise
    if baseline:
        families = [family for result in results for family in result.families]
        _check_baseline(baseline, [group.label for family in families for group in family.groups])
    analysis = analyse(results, choices)
    if json:
        # By way of JSON: there an infinite F is the string "Infinity".
        print_json(loads(analysis.model_dump_json()))
    else:
        print_analysis(analysis, output())


def _units(texts: list[str]) -> "Units":
    from ktrial.program_outputs.units import units_said

    try:
        return units_said(texts)
    except ValueError as error:
        raise BadOption("--unit", error) from None


def _named(text: str) -> tuple[str, Path]:
    """Label and file of `LABEL=FILE`; a file of that whole name comes first."""
    label, equals, file = text.partition("=")
    if not equals or not file or Path(text).exists():
        return "", file_of(Path(text))
    return label, file_of(Path(file))


def _check_baseline(baseline: str, labels: list[str]) -> None:
    from ktrial.importers.errors import ImportFailed

    groups = list(dict.fromkeys(labels))
    if baseline not in groups:
        similar = nearest(baseline, groups)
        raise ImportFailed(
            f"There is no group {baseline}{similar}; there are: {', '.join(groups[:20])}.",
            hint="--baseline takes a group's label as the output shows it",
        )
