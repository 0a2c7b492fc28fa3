"""The formats of what programs print, to the terminal and as JSON."""

from collections.abc import Sequence

from rich.console import Console

from ktrial.cli.render.table import rendered
from ktrial.format.table import Field, table, text_field
from ktrial.program_outputs import OutputFormat


def print_formats(formats: Sequence[OutputFormat], console: Console) -> None:
    """A row a format; then what each leaves out and refuses."""
    fields: tuple[Field[OutputFormat], ...] = (
        text_field("format", lambda each: each.name),
        text_field("printed by", lambda each: each.summary),
        text_field("metrics", _metrics),
    )
    console.print(rendered(table(fields, formats)))
    for each in formats:
        console.print(f"{each.name}: {each.remarks}.")


def _metrics(format: OutputFormat) -> str:
    return ", ".join(f"{each.metric} ({each.unit})" if each.unit else each.metric for each in format.columns)


def as_json(format: OutputFormat) -> dict[str, object]:
    """What `workload formats --json` prints of one."""
    return {
        "name": format.name,
        "summary": format.summary,
        "metrics": [
            {"name": each.metric, "unit": each.unit, "direction": each.direction.value}
            for each in format.columns
        ],
        "remarks": format.remarks,
    }
