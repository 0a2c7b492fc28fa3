"""The command `ktrial`: its commands, and what becomes of whatever they raise."""

import io
import sys
import warnings
from typing import Annotated, NoReturn, TextIO

import typer

import ktrial
from ktrial.cli import kernel, workload
from ktrial.cli.compare import compare
from ktrial.cli.doctor import doctor
from ktrial.cli.list import list_studies
from ktrial.cli.problems import INTERRUPTED, Ending, tell
from ktrial.cli.report import report
from ktrial.cli.run import run
from ktrial.cli.show import show

app = typer.Typer(
    name="ktrial",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ktrial {ktrial.__version__}")
        raise typer.Exit


@app.callback()
def _ktrial(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Controlled trials on Linux kernels: whether a change matters, and by how much."""


app.command("run")(run)
app.command("compare")(compare)
app.command("show")(show)
app.command("report")(report)
app.command("list")(list_studies)
app.add_typer(kernel.app, name="kernel")
app.add_typer(workload.app, name="workload")
app.command("doctor")(doctor)


def main() -> NoReturn:
    """Run the command line, and exit with what it means."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with Ending() as ending, warnings.catch_warnings():
        warnings.showwarning = _warn
        result = typer.main.get_command(app).main(prog_name="ktrial", standalone_mode=False)
        sys.stdout.flush()
        ending.code = result if isinstance(result, int) else 0
        if ending.code == INTERRUPTED:  # Typer turns KeyboardInterrupt into this
            raise KeyboardInterrupt
    sys.exit(ending.code)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Python's warnings (a broken plugin of another package) in ktrial's form."""
    tell(str(message), kind="warning")
