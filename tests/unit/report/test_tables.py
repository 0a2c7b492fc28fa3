"""A table is said once: what is added to it is on the terminal, in Markdown, HTML, CSV and JSON."""

import csv
import io

import pytest
from rich.console import Console
from tests.support.report_records import a_record

from ktrial.cli.render import table as terminal
from ktrial.format.table import Cell, Column, Field, Kind, Output, Row, Table, row, table
from ktrial.model.comparison import Verdict
from ktrial.report import csv_and_json as as_csv
from ktrial.report import markdown
from ktrial.report.comparisons import FIELDS, ComparisonRow
from ktrial.report.templating import environment

_NEW = Field[ComparisonRow](
    Column("energy", "energy", "J", numeric=True), lambda row: Cell(f"{row.comparison.workload} 17", "17")
)


def printed(shown: Table) -> str:
    text = io.StringIO()
    Console(file=text, width=200, markup=False, emoji=False, highlight=False).print(terminal.rendered(shown))
    return text.getvalue()


def page(shown: Table) -> str:
    template = environment().from_string('{% from "table.html.j2" import drawn %}{{ drawn(made) }}')
    return template.render(made=shown)


def comparisons(*more: Field[ComparisonRow]) -> Table:
    return table((*FIELDS, *more), map(ComparisonRow, a_record().result.comparisons), "comparisons")


def test_a_field_that_is_added_is_in_every_output() -> None:
    shown = comparisons(_NEW)
    assert "energy, J" in printed(shown)
    assert "| Energy, J |" in markdown.grid(shown)
    assert "Energy, J</th>" in page(shown)
    assert next(csv.DictReader(io.StringIO(as_csv.csv_text(shown), newline="")))["energy"] == "fork 17"
    assert shown.data()[0]["energy"] == "fork 17"


def test_json_of_the_comparisons_is_the_comparisons() -> None:
    record = a_record()
    assert comparisons().data() == [
        comparison.model_dump(mode="json") for comparison in record.result.comparisons
    ]


@pytest.mark.parametrize("output", [Output.TERMINAL, Output.MARKDOWN, Output.HTML, Output.CSV])
def test_a_column_is_shown_only_where_it_says(output: Output) -> None:
    shown = table([Field[str](Column("only", "only", outputs=output), Cell)], ["here"])
    drawn = {
        Output.TERMINAL: printed(shown),
        Output.MARKDOWN: markdown.grid(shown),
        Output.HTML: page(shown),
        Output.CSV: as_csv.csv_text(shown),
    }
    assert {place for place, text in drawn.items() if "nly" in text} == {output}
    assert shown.data() == [{}]


def test_words_come_before_numbers_in_markdown() -> None:
    columns = (Column("value", "value", numeric=True), Column("verdict", "verdict"))
    shown = Table(columns, (Row((Cell(1, "1"), Cell("worse", "worse"))),))
    assert markdown.grid(shown).splitlines() == ["| Verdict | Value |", "| --- | --: |", "| worse | 1 |"]


def test_names_are_no_markup_anywhere() -> None:
    hostile = Cell("<b>|`x`\x1b[31m", "<b>|`x`\x1b[31m", Kind.NAME)
    shown = Table((Column("name", "name"),), (Row((hostile,)),))
    assert "<b>" not in page(shown)
    assert "\x1b" not in printed(shown)
    assert markdown.grid(shown).splitlines()[-1] == "| `` <b>\\|`x` `` |"


def test_a_row_may_have_a_few_cells_only() -> None:
    columns = (Column("a"), Column("b"), Column("c"))
    assert [cell.text for cell in row(columns, {"b": Cell(text="here")}).cells] == ["", "here", ""]


def test_a_row_has_a_cell_for_every_column() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells in 2 columns"):
        Table((Column("a"), Column("b")), (Row((Cell(),)),))


def test_verdicts_are_coloured_and_never_by_colour_alone() -> None:
    cell = Cell(Verdict.WORSE, "✗ worse", Kind.VERDICT, Verdict.WORSE)
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system="standard")
    console.print(terminal.rendered(Table((Column("verdict", "verdict"),), (Row((cell,)),))))
    assert "\x1b[31m✗ worse" in text.getvalue()
