"""`ktrial workload`: the workloads, what each does, and a command of the user's as one."""

from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.cli.command_line import Argument, BadOption, Option, command_group, examples
from ktrial.cli.console import output, print_json, print_texts, say, write_text
from ktrial.cli.error_handling import tell_warnings
from ktrial.cli.options.common import AfterText, Json, MetricsFormat, SkipStart, duration
from ktrial.cli.options.completion import workload_names
from ktrial.cli.options.workloads import check_name, file_text, refuse_start
from ktrial.cli.studies import registry

if TYPE_CHECKING:
    from ktrial.model.workload import Parameter, WorkloadDescription
    from ktrial.workloads.capture import Captured

app = command_group("List and show the workloads; capture a command of your own.")


@app.declare("capture")
@examples(
    "ktrial workload capture -- sqlite3 my.db 'select count(*) from t'",
    "ktrial workload capture --include data --after listening -- ./serve.sh",
    "ktrial workload capture --metrics sysbench -- sysbench cpu --events=100 run",
)
def capture(
    command: list[str] = Argument(
        ..., metavar="-- COMMAND…", help="The command, and its arguments.", show_default=False
    ),
    file: Path | None = Option(
        None, "--output", "-o", metavar="FILE.toml", help="Where to write it; else NAME.toml here."
    ),
    name: str | None = Option(None, metavar="NAME", help="What to call it; else as the program."),
    env: list[str] | None = Option(
        None, metavar="VARIABLE", help="An environment variable to keep, besides PATH and HOME; repeated."
    ),
    include: list[Path] | None = Option(
        None, metavar="PATH", help="A file or directory to include, keys too; repeated."
    ),
    metrics: MetricsFormat = None,
    after: AfterText = None,
    skip_start: SkipStart = None,
    limit: str = Option("10min", metavar="10min", help="End the command after this time, with an error."),
    force: bool = Option(False, "--force", help="Overwrite a file that exists."),
    json: Json = False,
) -> None:
    """Run a command once here, and write what it needs in a guest.

    Capturing sqlite3 writes sqlite3.toml, which `--workload ./sqlite3.toml` and study files take. The command
    runs under strace, without input, with PATH and HOME and no other variable of yours. Keys and passwords
    are left out, and named.
    """
    from ktrial.program_outputs import find
    from ktrial.workloads import capture as capturing

    if metrics:
        find(metrics)
    taken = frozenset(registry().workloads)
    name = check_name(name, taken) if name else capturing.name_of(command[0], taken)
    place = file or Path(f"{name}.toml")
    if place.exists() and not force:
        raise BadOption("--output", f"{place} is there already: name another, or --force")
    options = capturing.CaptureOptions(
        name,
        tuple(env or ()),
        tuple(str(path) for path in include or ()),
        duration("--limit", limit),
        after or "",
        skip_start or "",
    )
    refuse_start(after, skip_start, metrics)
    if not json:
        say(f"running it once here, under strace: {' '.join(command)}")
    workload = capturing.with_format(capturing.capture_command(tuple(command), Path.cwd(), options), metrics)
    write_text(place, file_text(workload))
    if json:  # docs/workloads.md names every field
        print_json(
            {
                "file": str(place),
                "workload": capturing.table(workload.use),
                "notes": [note.model_dump() for note in workload.notes],
                "files": workload.files,
                "bytes": workload.size,
                "seconds": workload.seconds,
                "memory_mib": workload.memory_mib,
            }
        )
        return
    _print_captured(workload, place)


def _print_captured(workload: "Captured", place: Path) -> None:
    from ktrial.workloads.capture import USUAL_MEMORY_MIB, summary

    print(f"{place}: {summary(workload)}")
    for note in workload.notes:
        print(f"note: {note.text}")
        if note.advice:
            print(f"  {note.advice}")
    memory = ""
    if workload.memory_mib > USUAL_MEMORY_MIB:
        memory = f" --memory {workload.memory_mib}M"
        print(f"its files need a guest of {workload.memory_mib} MiB")
    file = place if place.is_absolute() else f"./{place}"
    print(f"next: ktrial compare 6.1 6.12 {file}{memory}")


@app.declare("list")
@examples("ktrial workload list")
def list_workloads(json: Json = False) -> None:
    """List the workloads.

    It lists those built in, and programs that run where they are installed.
    """
    from ktrial.workloads import descriptions

    workloads = list(descriptions().values())
    if json:
        print_json([description.model_dump(mode="json") for description in workloads])
        return
    for group in dict.fromkeys(description.group for description in workloads):
        _print_group(group, [description for description in workloads if description.group == group])


def _print_group(group: str, workloads: "list[WorkloadDescription]") -> None:

    names = [[parameter.name for parameter in description.parameters] for description in workloads]
    shared = set.intersection(*map(set, names)) if len(names) > 1 else set()
    rows = (
        (description.name, description.summary, ", ".join(name for name in parameters if name not in shared))
        for description, parameters in zip(workloads, names, strict=True)
    )
    print_texts((group, "one operation", "parameters"), rows)
    if shared:
        output().print(f"every one of them also has: {', '.join(sorted(shared))}")
    output().print()


@app.declare("formats")
@examples("ktrial workload formats")
def formats(json: Json = False) -> None:
    """List what a command's metrics can be read from.

    `metrics = "fio-json"` in a workload's file or a study takes what fio prints with --output-format=json.
    `ktrial analyze` reads files of the same formats.
    """
    from ktrial import program_outputs

    installed, warnings = program_outputs.installed()
    tell_warnings(warnings)
    if json:
        print_json(
            [
                {
                    "name": format.name,
                    "summary": format.summary,
                    "metrics": [
                        {"name": column.metric, "unit": column.unit, "direction": column.direction.value}
                        for column in format.columns
                    ],
                    "remarks": format.remarks,
                }
                for format in installed.values()
            ]
        )
        return
    rows = []
    for format in installed.values():
        metrics = (
            f"{column.metric} ({column.unit})" if column.unit else column.metric for column in format.columns
        )
        rows.append((format.name, format.summary, ", ".join(metrics)))
    print_texts(("format", "printed by", "metrics"), rows)
    for format in installed.values():
        output().print(f"{format.name}: {format.remarks}.")


@app.declare("show")
@examples("ktrial workload show fork")
def show(
    name: str = Argument(..., help="A workload's name.", autocompletion=workload_names),
    json: Json = False,
) -> None:
    """Show what a workload does, its metrics and its parameters."""
    from ktrial.model.workload import WorkloadUse
    from ktrial.workloads import find

    description = find(WorkloadUse(name=name)).description
    if json:
        print_json(description.model_dump(mode="json"))
        return
    console = output()
    console.print(f"{description.name}: {description.summary}\n", style="bold")
    console.print(f"{description.does}\n")
    metrics = (
        f"{metric.name} ({metric.unit}), {metric.direction} is better" for metric in description.metrics
    )
    console.print(f"system calls: {', '.join(description.system_calls) or 'none'}")
    console.print(f"metrics: {'; '.join(metrics)}")
    console.print(f"source: {description.source or 'ktrial'}")
    console.print(f"group: {description.group}")
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
