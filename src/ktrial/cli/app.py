"""The command `ktrial` and its commands, each of which is imported only when it is called."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ktrial.cli.abandoned_changes import put_back_abandoned
from ktrial.cli.command_line import (
    BadUsage,
    CheckCommand,
    CheckTakesCommand,
    CommandGroup,
    KtrialCommand,
    TakesCommand,
    alone,
)
from ktrial.installation import VERSION


@dataclass(frozen=True)
class CommandEntry:
    """Where a command is, and what the list of commands says of it."""

    module: str
    """Its file in cli/commands."""
    function: str
    """The function in it; or its group of commands, a Typer."""
    summary: str
    """The first paragraph of its help: here too, so that the list of commands imports none of them."""
    kind: type[KtrialCommand] = KtrialCommand
    forms: "Mapping[str, CommandEntry]" = field(default_factory=dict)
    """Commands that a first word of this one names: `ktrial matrix recommend`."""


HOST = "host"
"""Its commands put back themselves what an earlier ktrial left: `restore` tells of it."""

MEASURE = {
    "try": CommandEntry("run", "try_", "Compare two kernels in one workload, at once."),
    "compare": CommandEntry(
        "run", "compare", "Compare kernels, or settings of a kernel, without a study file.", TakesCommand
    ),
    "run": CommandEntry("run", "run", "Run a study, and print the verdicts."),
    "check": CommandEntry(
        "check",
        "check",
        "Measure a kernel against an older one, for CI and git bisect.",
        CheckTakesCommand,
        {"baseline": CommandEntry("check", "app", "Save what a kernel costs, for later checks.")},
    ),
    "series": CommandEntry(
        "series", "series", "Show what each patch of a series costs, and where.", CheckTakesCommand
    ),
    "watch": CommandEntry("series", "watch", "Follow kernels: run and compare what is new.", CheckCommand),
    "tune": CommandEntry(
        "tune",
        "tune",
        "Search for better settings, and confirm the answer.",
        forms={
            "revalidate": CommandEntry(
                "tune", "revalidate", "Measure the answer or the best candidate of a search again."
            )
        },
    ),
    "scale": CommandEntry("run", "scale", "Show how throughput grows with the number of CPUs.", TakesCommand),
    "timed": CommandEntry("timed", "app", "Measure this machine's noise, and plan studies in real time."),
}
UNDERSTAND = {
    "explain": CommandEntry(
        "explain",
        "explain",
        "Show which functions make up a difference, and why.",
        TakesCommand,
        {
            "counters": CommandEntry(
                "explain", "counters", "Compare event counters: faults, switches, allocations…", TakesCommand
            )
        },
    ),
    "profile": CommandEntry("explain", "profile", "Count a kernel's instructions by function.", TakesCommand),
    "bisect": CommandEntry("bisect", "app", "Find which difference between A and B matters."),
    "history": CommandEntry(
        "history", "history", "Show where a metric changed over versions; list regressions."
    ),
    "accept": CommandEntry("accept", "accept", "Say why a regression may stay."),
    "matrix": CommandEntry(
        "history",
        "matrix",
        "Measure versions in workloads, and show them as a heat map.",
        forms={
            "recommend": CommandEntry(
                "history", "recommend", ("Rank kernels by their stored results in some workloads.")
            ),
            "systems": CommandEntry(
                "history", "systems", "Say whether a change is the same on all machines."
            ),
        },
    ),
    "fidelity": CommandEntry("timed", "fidelity", "Compare counted changes with those in real time."),
    "analyze": CommandEntry(
        "analyze", "analyze", "Analyse results of other tools and of papers; audit them."
    ),
}
SHARE = {
    "list": CommandEntry("report", "list_studies", "List the studies in the store."),
    "show": CommandEntry("report", "show", "Show a study's answer again; nothing is run."),
    "report": CommandEntry(
        "report", "report", "Write a study's report: one HTML page, Markdown or CSV. Nothing is run."
    ),
    "site": CommandEntry("report", "site", "Write a static site of all results."),
    "serve": CommandEntry("report", "serve", "Show the store in a browser; studies that run are live."),
    "bundle": CommandEntry("bundle", "bundle", "Write a study, with all that it measured, as one file."),
    "replicate": CommandEntry("bundle", "replicate", "Run a study again, and compare every number."),
}
SET_UP = {
    "doctor": CommandEntry("system", "doctor", "Check this machine, and say what is missing."),
    "kernel": CommandEntry("kernel", "app", "Add, build, show, diff and remove kernels."),
    "workload": CommandEntry(
        "workload", "app", "List and show the workloads; capture a command of your own."
    ),
    "knob": CommandEntry("knob", "app", "Look at the kernel's settings, and change them."),
    HOST: CommandEntry("system", "app", "Quieten this machine for measuring, and put its settings back."),
    "store": CommandEntry("store", "app", "Verify, copy and merge stores of trials."),
    "fleet": CommandEntry("fleet", "app", "Run exact trials on many machines."),
    "help": CommandEntry("help", "help_", "Read the documentation: ktrial help studies."),
}
GROUPS = {"Measure": MEASURE, "Understand": UNDERSTAND, "Share": SHARE, "Set up": SET_UP}
"""Heading → commands, as `ktrial --help` lists them."""
COMMANDS = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}

RENAMED = {
    "baseline": "ktrial check baseline",
    "calibrate": "ktrial timed calibrate",
    "counters": "ktrial explain counters",
    "plan": "ktrial timed plan",
    "quiesce": "ktrial host quiesce",
    "recommend": "ktrial matrix recommend",
    "restore": "ktrial host restore",
    "revalidate": "ktrial tune revalidate",
    "sanity": "ktrial check OLD NEW",
    "systems": "ktrial matrix systems",
    "verify": "ktrial replicate STUDY",
    "version": "ktrial --version",
}
"""What somebody may look for at the top → the command that does it."""


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
        command = alone(self._name, declared, self._entry.kind)
        command.forms = {word: form.summary for word, form in self._entry.forms.items()}
        return command

    @property
    def forms(self) -> "dict[str, DeferredCommand]":
        """Word → the command that it names as this one's first word."""
        return {word: DeferredCommand(word, form) for word, form in self._entry.forms.items()}

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the command itself: what follows never sees this stand-in."""
        if args and args[0] in self.forms:
            word, *words = args
            return self.forms[word].make_context(f"{info_name} {word}", words, parent, **extra)
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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by what they are for."""
        longest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            rows = [
                (name.ljust(longest), self.commands[name].get_short_help_str(formatter.width - 6 - longest))
                for name in commands
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names. Raises BadUsage for one that goes by another name here."""
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            near = next(iter(get_close_matches(args[0], [*COMMANDS, *RENAMED], n=1)), "")
            if near in RENAMED:
                new = RENAMED[near]
                problem = f"use {new}" if near == args[0] else f"did you mean {new}?"
                raise BadUsage(f"There is no command {args[0]}: {problem}", hint=_help_of(new))
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What ktrial is, without an empty line before it."""
        formatter.write(f"  {self.help}\n")


def _help_of(command: str) -> str:
    """`ktrial check --help` for `ktrial check OLD NEW`."""
    words = [word for word in command.split() if not word.isupper()]
    return command if words[-1].startswith("-") else " ".join([*words, "--help"])


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
    if context.invoked_subcommand != HOST:
        put_back_abandoned()
