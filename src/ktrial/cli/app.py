"""The command `ktrial` and its commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ktrial.cli.commands import baseline, bisect, kernel, knob, workload
from ktrial.cli.commands.analyze import analyze
from ktrial.cli.commands.calibrate import calibrate
from ktrial.cli.commands.check import check
from ktrial.cli.commands.compare import compare
from ktrial.cli.commands.counters import counters
from ktrial.cli.commands.doctor import doctor
from ktrial.cli.commands.explain import explain
from ktrial.cli.commands.history import history
from ktrial.cli.commands.list import list_studies
from ktrial.cli.commands.matrix import matrix
from ktrial.cli.commands.plan import plan
from ktrial.cli.commands.profile import profile
from ktrial.cli.commands.quiesce import quiesce
from ktrial.cli.commands.recommend import recommend
from ktrial.cli.commands.report import report
from ktrial.cli.commands.restore import at_start, restore
from ktrial.cli.commands.revalidate import revalidate
from ktrial.cli.commands.run import run
from ktrial.cli.commands.sanity import sanity
from ktrial.cli.commands.show import show
from ktrial.cli.commands.site import site
from ktrial.cli.commands.systems import systems
from ktrial.cli.commands.tune import tune
from ktrial.cli.commands.watch import watch
from ktrial.cli.options.git_bisect_command import CheckCommand
from ktrial.installation import VERSION


class Commands(TyperGroup):
    """All commands; their help fits a screen of 40 lines."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options; Typer's own words for one of them take two lines."""
        found: list[Any] = super().get_params(ctx)
        for option in found:
            if option.name == "show_completion":
                option.help = "Show completion for the current shell."
        return found


app = typer.Typer(
    name="ktrial",
    cls=Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ktrial {VERSION}")
        raise typer.Exit


@app.callback()
def _ktrial(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Controlled trials on Linux kernels: whether a change matters, and how much."""
    if context.invoked_subcommand != "restore":
        at_start()


app.command("run")(run)
app.command("compare")(compare)
app.command("explain")(explain)
app.command("check", cls=CheckCommand)(check)
app.command("profile")(profile)
app.command("counters")(counters)
app.command("tune")(tune)
app.command("revalidate")(revalidate)
app.command("calibrate")(calibrate)
app.command("analyze")(analyze)
app.command("plan")(plan)
app.command("show")(show)
app.command("report")(report)
app.command("list")(list_studies)
app.command("history")(history)
app.command("matrix")(matrix)
app.command("site")(site)
app.command("recommend")(recommend)
app.command("systems")(systems)
app.command("sanity", cls=CheckCommand)(sanity)
app.command("watch", cls=CheckCommand)(watch)
app.add_typer(bisect.app, name="bisect")
app.add_typer(baseline.app, name="baseline")
app.add_typer(kernel.app, name="kernel")
app.add_typer(workload.app, name="workload")
app.add_typer(knob.app, name="knob")
app.command("restore")(restore)
app.command("doctor")(doctor)
app.command("quiesce")(quiesce)
