"""`ktrial workload capture`: a command of one's own becomes the file of a workload."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, OwnMetrics

if TYPE_CHECKING:
    from ktrial.workloads.capture.captured import Captured

Command = Annotated[
    list[str],
    typer.Argument(metavar="-- COMMAND…", help="The command, and its arguments.", show_default=False),
]


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
    from ktrial.cli.console import print_json, say
    from ktrial.cli.files import write_text
    from ktrial.cli.installed import registry
    from ktrial.cli.options.duration_size_share import duration
    from ktrial.cli.options.own_command import check_name, file_text
    from ktrial.program_outputs import find
    from ktrial.workloads.capture.captured import CaptureOptions, capture, name_of, with_format

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
    captured = with_format(capture(tuple(command), Path.cwd(), options), metrics)
    write_text(place, file_text(captured))
    if json:
        print_json(_as_json(captured, place))
        return
    _print(captured, place, out())


def _print(captured: "Captured", place: Path, console: object) -> None:
    from ktrial.workloads.capture.captured import USUAL_MEMORY_MIB, summary

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


def _as_json(captured: "Captured", place: Path) -> dict[str, object]:
    """What `workload capture --json` prints; docs/workloads.md names every field."""
    from ktrial.workloads.capture.captured import table

    return {
        "file": str(place),
        "workload": table(captured.use),
        "notes": [note.model_dump() for note in captured.notes],
        "files": captured.files,
        "bytes": captured.size,
        "seconds": captured.seconds,
        "memory_mib": captured.memory_mib,
    }
