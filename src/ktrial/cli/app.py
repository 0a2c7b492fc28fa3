"""The command `ktrial` and its commands, each of which is imported only when it is called."""

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ktrial.cli.command_line import (
    CheckCommand,
    CheckTakesCommand,
    CommandGroup,
    KtrialCommand,
    TakesCommand,
    alone,
)
from ktrial.cli.error_handling import tell
from ktrial.installation import VERSION


@dataclass(frozen=True)
class CommandEntry:
    """Where a command is, and what the list of commands says of it."""

    module: str
    """Its file in cli/commands."""
    function: str
    """The function in it; or its group of commands, a Typer."""
    summary: str
    """The first paragraph of its help: said here too, so that the list of commands imports none of them."""
    kind: type[KtrialCommand] = KtrialCommand


COMMANDS = {
    "try": CommandEntry("run", "try_", "Compare two kernels in one workload, at once."),
    "help": CommandEntry("help", "help_", "Read the documentation: ktrial help studies."),
    "run": CommandEntry("run", "run", "Run a study, and print the verdicts."),
    "compare": CommandEntry("run", "compare", "Compare kernels without a study file.", TakesCommand),
    "scale": CommandEntry("run", "scale", "Show how throughput grows with CPUs.", TakesCommand),
    "explain": CommandEntry(
        "explain", "explain", "Say which functions make a difference, and why they may.", TakesCommand
    ),
    "check": CommandEntry(
        "check", "check", "Measure a kernel against a baseline, for git bisect and CI.", CheckTakesCommand
    ),
    "series": CommandEntry(
        "series", "series", "Say what each patch of a series costs, where.", CheckTakesCommand
    ),
    "profile": CommandEntry("explain", "profile", "Count a kernel's instructions by function.", TakesCommand),
    "counters": CommandEntry(
        "explain", "counters", "Compare event counters: faults, switches, allocations…", TakesCommand
    ),
    "tune": CommandEntry("tune", "tune", "Search for better settings, and confirm the answer."),
    "revalidate": CommandEntry(
        "tune", "revalidate", "Measure the answer of `ktrial tune` again, or its candidate."
    ),
    "calibrate": CommandEntry(
        "calibrate", "calibrate", "Learn what this machine can tell apart in real time."
    ),
    "analyze": CommandEntry(
        "analyze", "analyze", "Analyse results of other tools and of papers; audit them."
    ),
    "plan": CommandEntry("calibrate", "plan", "Say how many blocks, and hours, a timed study needs."),
    "show": CommandEntry("report", "show", "Show a study's answer again; nothing is run."),
    "report": CommandEntry(
        "report", "report", "Write a study's report: one HTML page, Markdown or CSV. Nothing is run."
    ),
    "bundle": CommandEntry("bundle", "bundle", "Write a study, with all that it measured, as one file."),
    "replicate": CommandEntry("bundle", "replicate", "Run a bundle's study again, and compare every number."),
    "list": CommandEntry("report", "list_studies", "List the studies in the store."),
    "history": CommandEntry("history", "history", "Show one metric over versions, and where it changed."),
    "matrix": CommandEntry(
        "history", "matrix", "Measure versions in workloads, and show them as a heat map."
    ),
    "site": CommandEntry("report", "site", "Write a static site of all results."),
    "serve": CommandEntry("report", "serve", "Show the store in a browser; studies that run are live."),
    "recommend": CommandEntry("history", "recommend", "Say which kernels serve some workloads best."),
    "systems": CommandEntry("history", "systems", "Say whether a change is the same on all machines."),
    "fidelity": CommandEntry("calibrate", "fidelity", "Compare counted changes with those in real time."),
    "sanity": CommandEntry(
        "check", "sanity", "Compare a kernel with the one before it, after an upgrade.", CheckCommand
    ),
    "watch": CommandEntry("series", "watch", "Follow kernels: run and compare what is new.", CheckCommand),
    "bisect": CommandEntry("bisect", "app", "Find which difference between A and B matters."),
    "baseline": CommandEntry("check", "app", "Keep what a kernel was measured to cost, for ktrial check."),
    "kernel": CommandEntry("kernel", "app", "Obtain kernels, look at them, remove them."),
    "verify": CommandEntry("bundle", "verify", "Run a stored trial again: it must give the same numbers."),
    "store": CommandEntry("store", "app", "Look after the store of trials."),
    "workload": CommandEntry(
        "workload", "app", "List and show the workloads; capture a command of your own."
    ),
    "fleet": CommandEntry("fleet", "app", "Have exact trials performed by many machines."),
    "knob": CommandEntry("knob", "app", "Look at the kernel's settings, and change them."),
    "restore": CommandEntry("system", "restore", "Put back what ktrial has changed on this system."),
    "doctor": CommandEntry("system", "doctor", "Check this machine, and say what is missing."),
    "quiesce": CommandEntry("system", "quiesce", "Set this machine up for measuring, and --undo it."),
}


class DeferredCommand(TyperCommand):
    """A command that is imported once it is called, asked for its help, or completed."""

    def __init__(self, name: str, entry: CommandEntry) -> None:
        super().__init__(name, help=entry.summary, rich_markup_mode=None)
        self._name = name
        self._entry = entry

    def load(self) -> Any:
        """The command itself, or its group of commands."""
        module = import_module(f"ktrial.cli.commands.{self._entry.module}")
        declared = getattr(module, self._entry.function)
        if isinstance(declared, typer.Typer):
            declared.info.name = self._name
            return typer.main.get_group(declared)
        return alone(self._name, declared, self._entry.kind)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself: what follows never sees this stand-in."""
        return self.load().make_context(info_name, args, parent, **extra)


class Commands(CommandGroup):
    """All commands; their help fits a screen of 40 lines."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, entry in COMMANDS.items():
            self.add_command(DeferredCommand(name, entry))

    def get_params(self, ctx: Any) -> list[Any]:
        """The options; the rarer of Typer's own two is told in docs/commands.md alone."""
        options: list[Any] = super().get_params(ctx)
        for option in options:
            if option.name == "show_completion":
                option.hidden = True
        return options

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options in one line, so that commands have the others."""
        shown = [option for option in self.get_params(ctx) if not option.hidden]
        formatter.write(f"  Options: {', '.join('|'.join(option.opts) for option in shown)}\n")
        self.format_commands(ctx, formatter)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What ktrial is, without an empty line before it."""
        formatter.write(f"  {self.help}\n")


app = typer.Typer(
    name="ktrial",
    cls=Commands,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(is_asked_for: bool) -> None:
    if is_asked_for:
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
        _put_back_at_start()


def _put_back_at_start() -> None:
    """Put back what a ktrial that was killed has left behind: one stat where there is nothing."""
    from ktrial.knobs.journal_location import is_anything_to_undo

    if not is_anything_to_undo():
        return
    from ktrial.cli.console import say
    from ktrial.knobs.errors import JournalError, JournalHeld
    from ktrial.knobs.journal import Journal
    from ktrial.knobs.restore import LEFT, RestoreOutcome, abandoned
    from ktrial.target.local import LocalTarget

    journal = Journal()
    try:
        with journal.held(wait=False):
            undone = abandoned(journal, LocalTarget())
    except JournalHeld:
        return  # its owner is alive, and puts everything back itself
    except JournalError as error:
        tell(error.message, error.advice, kind="warning")
        return
    for change in undone:
        if change.ending in LEFT:
            tell(change.text, kind="warning")
        elif change.ending in {RestoreOutcome.RESTORED, RestoreOutcome.OTHER_BOOT}:
            say(f"ktrial: left by an earlier ktrial that was ended: {change.text}")
