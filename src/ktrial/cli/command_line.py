"""How the words of a command line are read."""

from collections.abc import Callable, Container
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from ktrial.errors import KtrialError


class BadOption(KtrialError):
    """`option`: `problem`"""

    text = "{option}: {problem}"
    exit_code = 2


_EXAMPLES = "ktrial_examples"
Command = TypeVar("Command", bound=Callable[..., None])


def examples(*lines: str) -> Callable[[Command], Command]:
    """Declare the command lines that a command's help ends with: one to three."""

    def declared(command: Command) -> Command:
        setattr(command, _EXAMPLES, lines)
        return command

    return declared


def examples_of(command: Any) -> tuple[str, ...]:
    """The command lines that the command was declared with; empty where there are none."""
    lines: tuple[str, ...] = getattr(command.callback, _EXAMPLES, ())
    return lines


class KtrialCommand(TyperCommand):
    """A command of ktrial."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, each on a line of its own: nobody could copy a wrapped one."""
        lines = examples_of(self)
        if lines:
            formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in lines))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises.

        While a shell completes a word, values stay as they were typed: Typer would import pydantic to check
        them.
        """
        args = as_this_command_says(args, self.get_params(ctx))
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        options, rest, _ = self.make_parser(ctx).parse_args(args)
        for parameter in self.get_params(ctx):
            value, source = parameter.consume_value(ctx, options)
            ctx.set_parameter_source(parameter.name, source)
            ctx.params[parameter.name] = value
        ctx.args = list(rest)
        return list(rest)


def words_again(context: typer.Context, without: Container[str]) -> list[str]:
    """The words that say to another `ktrial` what this command was told, without these parameters."""
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in without or source is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        every = list(map(str, given if isinstance(given, (list, tuple)) else (given,)))
        if parameter.param_type_name == "argument":
            arguments += every
        elif given is True:
            options.append(parameter.opts[0])
        else:
            options += [word for one in every for word in (parameter.opts[0], one)]
    return [*options, "--", *arguments]


_ALSO = {"--kernel": "--kernels", "--workload": "--workloads"}
"""Commands that take one of the two take the other one as well."""


def as_this_command_says(args: list[str], parameters: list[Any]) -> list[str]:
    """`--workloads` where the command says `--workload`, and the other way round; words after `--` stay."""
    known = {name for parameter in parameters for name in parameter.opts}
    pairs = [*_ALSO.items(), *((plural, single) for single, plural in _ALSO.items())]
    meant = {other: own for own, other in pairs if own in known and other not in known}
    end = args.index("--") if "--" in args else len(args)
    words = [word.partition("=") for word in args[:end]]
    return ["".join((meant.get(name, name), *rest)) for name, *rest in words] + args[end:]


class CommandWithSource(KtrialCommand):
    """A command where `--source` alone means `--source .`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises."""
        return super().parse_args(ctx, _with_directory(args))


def _with_directory(args: list[str]) -> list[str]:
    """`--source` without a directory means the one that ktrial stands in."""
    words: list[str] = []
    for place, word in enumerate(args):
        words.append(word)
        rest = args[place + 1 : place + 2]
        if word == "--source" and (not rest or rest[0].startswith("-")):
            words.append(".")
    return words


class CommandGroup(TyperGroup):
    """A command that has commands of its own: `ktrial kernel add`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options."""
        options: list[Any] = super().get_params(ctx)
        for option in options:
            if option.default is None:
                option.default = False  # Typer would import pydantic to learn that None is no True
        return options


def command_group(summary: str) -> typer.Typer:
    """Where the commands of a group are declared."""
    return typer.Typer(cls=CommandGroup, help=summary, no_args_is_help=True, rich_markup_mode=None)
