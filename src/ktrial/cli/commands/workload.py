"""`ktrial workload`: the workloads, and what each does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.console import output, print_json
from ktrial.cli.options.common import Json, OwnMetrics
from ktrial.cli.options.completion import workload_names

if TYPE_CHECKING:
    from ktrial.model.workload import Parameter, WorkloadDescription
    from ktrial.workloads.capture import Captured


app = command_group("List and show the workloads; capture a command of your own.")


# `ktrial workload capture`: a command of one's own becomes the file of a workload.

Command = Annotated[
    list[str],
    typer.Argument(metavar="-- COMMAND…", help="The command, and its arguments.", show_default=False),
]


def _as_json(captured: "Captured", place: Path) -> dict[str, object]:
    """What `workload capture --json` prints; docs/workloads.md names every field."""
    from ktrial.workloads.capture import table

    return {
        "file": str(place),
        "workload": table(captured.use),
        "notes": [note.model_dump() for note in captured.notes],
        "files": captured.files,
        "bytes": captured.size,
        "seconds": captured.seconds,
        "memory_mib": captured.memory_mib,
    }


def _print(captured: "Captured", place: Path, console: object) -> None:
    from ktrial.workloads.capture import USUAL_MEMORY_MIB, summary

    print(f"{place}: {summary(captured)}")
    for note in captured.notes:
        print(f"note: {note.text}")
        if note.advice:
            print(f"  {note.advice}")
    memory = ""
    if captured.memory_mib > USUAL_MEMORY_MIB:
        memory = f" --memory {captured.memory_mib}M"
        print(f"its files need a guest of {captured.memory_mib} MiB")
    named = place if place.is_absolute() else f"./{place}"
    print(f"next: ktrial compare --kernel debian:6.1 --kernel debian:6.12 --workload {named}{memory}")


@examples(
    "ktrial workload capture -- sqlite3 my.db 'select count(*) from t'",
    "ktrial workload capture --output mine.toml --include data -- ./bench.sh",
    "ktrial workload capture --metrics sysbench -- sysbench cpu --events=100 run",
)
def capture(
    command: Command,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.toml", help="Where to write it; else NAME.toml here."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call it; else as the program.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIABLE", help="A variable to take along, beside PATH and HOME; repeated."),
    ] = None,
    include: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="A file or directory to take along, keys too; repeated."),
    ] = None,
    metrics: OwnMetrics = None,
    limit: Annotated[
        str, typer.Option(metavar="10min", help="End the command after so long, with an error.")
    ] = "10min",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    json: Json = False,
) -> None:
    """Run a command once here, and write what it needs in a guest.

    Capturing sqlite3 writes sqlite3.toml, which `--workload ./sqlite3.toml` and study files take. The command
    runs under strace, without input, with PATH and HOME and no other variable of yours. Keys and passwords
    are left out, and told.
    """
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import output as out
    from ktrial.cli.console import print_json, say, write_text
    from ktrial.cli.options.common import duration
    from ktrial.cli.options.own_command import check_name, file_text
    from ktrial.cli.studies import registry
    from ktrial.program_outputs import find
    from ktrial.workloads.capture import CaptureOptions, capture_command, name_of, with_format

    if metrics:
        find(metrics)
    taken = frozenset(registry().workloads)
    called = check_name(name, taken) if name else name_of(command[0], taken)
    place = output or Path(f"{called}.toml")
    if place.exists() and not force:
        raise BadOption(option="--output", problem=f"{place} is there already: name another, or --force")
    if not json:
        say(f"running it once here, under strace: {' '.join(command)}")
    options = CaptureOptions(
        called, tuple(env or ()), tuple(str(path) for path in include or ()), duration("--limit", limit)
    )
    captured = with_format(capture_command(tuple(command), Path.cwd(), options), metrics)
    write_text(place, file_text(captured))
    if json:
        print_json(_as_json(captured, place))
        return
    _print(captured, place, out())


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
