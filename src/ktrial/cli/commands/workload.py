"""`ktrial workload`: the workloads, and what each does."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.commands.workload_capture import capture
from ktrial.cli.console import output, print_json
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import workload_names

if TYPE_CHECKING:
    from ktrial.model.workload import Parameter, WorkloadDescription

app = command_group("List and show the workloads; capture a command of your own.")
app.command("capture", cls=KtrialCommand)(capture)


@app.command("list", cls=KtrialCommand)
@examples("ktrial workload list")
def list_workloads(json: Json = False) -> None:
    """List the workloads.

    Built-in ones, and programs that are run where they are installed.
    """
    from ktrial.workloads import descriptions

    known = descriptions()
    if json:
        print_json([description.model_dump(mode="json") for description in known.values()])
        return
    for group in dict.fromkeys(description.group for description in known.values()):
        _print_group(group, [one for one in known.values() if one.group == group])


def _print_group(group: str, known: "list[WorkloadDescription]") -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field

    names = [{parameter.name for parameter in one.parameters} for one in known]
    shared = set.intersection(*names) if len(names) > 1 else set()

    def own_parameters(description: "WorkloadDescription") -> str:
        return ", ".join(one.name for one in description.parameters if one.name not in shared)

    fields: tuple[Field[WorkloadDescription], ...] = (
        text_field(group, lambda one: one.name),
        text_field("one operation", lambda one: one.summary),
        text_field("parameters", own_parameters),
    )
    output().print(rendered(table(fields, known)))
    if shared:
        output().print(f"every one of them also has: {', '.join(sorted(shared))}")
    output().print()


@app.command("formats", cls=KtrialCommand)
@examples("ktrial workload formats")
def formats(json: Json = False) -> None:
    """List what a command's metrics can be read from.

    `metrics = "fio-json"` in a workload's file or a study takes what fio prints with --output-format=json.
    `ktrial analyze` reads files of the same formats.
    """
    from ktrial import program_outputs
    from ktrial.cli.error_handling import tell
    from ktrial.cli.render.output_formats import as_json, print_formats

    known, warnings = program_outputs.installed()
    for warning in warnings:
        tell(warning.text, warning.advice, kind="warning")
    if json:
        print_json([as_json(each) for each in known.values()])
        return
    print_formats(list(known.values()), output())


@app.command("show", cls=KtrialCommand)
@examples("ktrial workload show fork")
def show(
    name: Annotated[str, typer.Argument(help="A workload's name.", autocompletion=workload_names)],
    json: Json = False,
) -> None:
    """Show what a workload does, counts and can be told."""
    from ktrial.model.workload import WorkloadUse
    from ktrial.workloads import find

    description = find(WorkloadUse(name=name)).description
    if json:
        print_json(description.model_dump(mode="json"))
        return
    console = output()
    console.print(f"{description.name}: {description.summary}\n", style="bold")
    console.print(f"{description.does}\n")
    facts = {
        "system calls": ", ".join(description.system_calls) or "none",
        "metrics": "; ".join(
            f"{metric.name} ({metric.unit}), {metric.direction} is better" for metric in description.metrics
        ),
        "source": description.source or "ktrial",
        "group": description.group,
    }
    for what, value in facts.items():
        console.print(f"{what}: {value}")
    for parameter in description.parameters:
        console.print(f"parameter {parameter.name}: {parameter.summary} ({_allowed(parameter)})")


def _allowed(parameter: "Parameter") -> str:
    """`from 1 to 64, else 1`, `pipe or socket, else pipe`."""
    bounds = [
        f"{word} {bound:,.10g}"
        for word, bound in (("from", parameter.minimum), ("to", parameter.maximum))
        if bound is not None
    ]
    allowed = " or ".join(parameter.choices) or " ".join(bounds)
    return ", ".join(part for part in (allowed, f"else {parameter.default}") if part)
