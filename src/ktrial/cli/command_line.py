"""How the words of a command line are read, and how a command declares which it takes.

A command is a function; its parameters say by `Option` and `Argument` what the command line may hold. Options
that several commands share are the fields of a dataclass, each declared once with its help and default; a
command that takes them has a parameter of that type. `command_group` and `alone` put the fields in the
parameter's place.
"""

import dataclasses
import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ktrial.cli import usage_mistakes
from ktrial.errors import KtrialError


class BadUsage(KtrialError):
    """A mistake on the command line."""

    exit_code = 2


class BadOption(BadUsage):
    """An option, or several together, cannot be used as they were given."""

    def __init__(self, option: str, problem: object, *, hint: str = "") -> None:
        super().__init__(f"{option}: {problem}", hint=hint)


_EXAMPLES = "ktrial_examples"
_TYPER = "typer"
"""Where a field has what Typer reads of it."""
Function = TypeVar("Function", bound=Callable[..., None])


def examples(*lines: str) -> Callable[[Function], Function]:
    """Declare the command lines that a command's help ends with: one to three."""

    def declared(command: Function) -> Function:
        setattr(command, _EXAMPLES, lines)
        return command

    return declared


def examples_of(command: Any) -> tuple[str, ...]:
    """The command lines that the command was declared with; empty where there are none."""
    lines: tuple[str, ...] = getattr(command.callback, _EXAMPLES, ())
    return lines


class KtrialCommand(TyperCommand):
    """A command of ktrial."""

    forms: Mapping[str, str] = MappingProxyType({})
    """First words that make another command of it → what that one does."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """As the arguments say themselves what may be left out or repeated."""
        arguments = [it for it in self.get_params(ctx) if it.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(argument.metavar or argument.name.upper()) for argument in arguments)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Its forms, and the examples, each on a line of its own: nobody could copy a wrapped one."""
        if self.forms:
            with formatter.section("See also"):
                formatter.write_dl(
                    [(f"{ctx.command_path} {word}", does) for word, does in self.forms.items()]
                )
        lines = examples_of(self)
        if lines:
            formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in lines))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises.

        While a shell completes a word, values stay as they were typed: Typer would import pydantic to check
        them.
        """
        usage_mistakes.begin(ctx)
        args = as_this_command_says(args, self.get_params(ctx))
        if not ctx.resilient_parsing:
            self._check_values(ctx, args)
            return super().parse_args(ctx, args)
        options, unparsed, _ = self.make_parser(ctx).parse_args(args)
        for parameter in self.get_params(ctx):
            value, source = parameter.consume_value(ctx, options)
            ctx.set_parameter_source(parameter.name, source)
            ctx.params[parameter.name] = value
        ctx.args = list(unparsed)
        return list(unparsed)

    def _check_values(self, ctx: Any, args: Sequence[str]) -> None:
        """Raise BadOption where an option stands before `--` without its value."""
        place = args.index(_SEPARATOR) if _SEPARATOR in args else 0
        last = args[place - 1] if place else ""
        for parameter in self.get_params(ctx):
            if last in parameter.opts and not getattr(parameter, "is_flag", True):
                value = parameter.metavar or "a value"
                raise BadOption(last, f"its value is missing: {last} {value} {_SEPARATOR} …")


_PAIRS = {"--kernel": "--kernels", "--workload": "--workloads"}
"""Commands that take one of the two take the other one as well."""


def as_this_command_says(args: list[str], parameters: list[Any]) -> list[str]:
    """`--workloads` where the command says `--workload`, and the other way round; words after `--` stay."""
    names = {name for parameter in parameters for name in parameter.opts}
    pairs = [*_PAIRS.items(), *((plural, single) for single, plural in _PAIRS.items())]
    renamed = {typed: name for name, typed in pairs if name in names and typed not in names}
    end = args.index("--") if "--" in args else len(args)
    words = [word.partition("=") for word in args[:end]]
    return ["".join((renamed.get(name, name), *value)) for name, *value in words] + args[end:]


class CommandWithSource(KtrialCommand):
    """A command where `--source` alone means `--source .`, the directory that ktrial stands in."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises."""
        words: list[str] = []
        for place, word in enumerate(args):
            words.append(word)
            following = args[place + 1 : place + 2]
            if word == "--source" and (not following or following[0].startswith("-")):
                words.append(".")
        return super().parse_args(ctx, words)


class CheckCommand(CommandWithSource):
    """The command line of `check` and `watch`: its mistakes never look like a bad commit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises, with the exit code that a bisection understands."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            from ktrial.cli.error_handling import usage_code

            error.exit_code = usage_code()
            raise


_SEPARATOR = "--"
_META = "ktrial.users-command"


class TakesCommand(KtrialCommand):
    """A command of ktrial's that measures a command of the user's: `-- COMMAND…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what is before `--`; what is behind it is the user's command."""
        if _SEPARATOR in args:
            at = args.index(_SEPARATOR)
            ctx.meta[_META] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """With the command at the end."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]


class CheckTakesCommand(TakesCommand, CheckCommand):
    """The command line of `check` and `series`, with a command of the user's at its end."""


def users_command(context: typer.Context) -> tuple[str, ...]:
    """The words behind `--` on this command line. Raises BadOption where there are none behind it."""
    words: tuple[str, ...] | None = context.meta.get(_META)
    if words is not None and not (words and words[0]):
        raise BadOption(_SEPARATOR, "write a command after it: -- sqlite3 my.db 'select 1'")
    return words or ()


def words_again(context: typer.Context, without: Container[str]) -> list[str]:
    """The words that give another `ktrial` the options of this one, without these parameters."""
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in without or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        values = list(map(str, value if isinstance(value, (list, tuple)) else (value,)))
        if parameter.param_type_name == "argument":
            arguments += values
        elif value is True:
            options.append(parameter.opts[0])
        else:
            options += [word for text in values for word in (parameter.opts[0], text)]
    return [*options, "--", *arguments]


class CommandGroup(TyperGroup):
    """A command that has commands of its own: `ktrial kernel add`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options."""
        options: list[Any] = super().get_params(ctx)
        for option in options:
            if option.default is None:
                option.default = False  # Typer would import pydantic to learn that None is no True
        return options

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names. Raises NoSuchCommand."""
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise usage_mistakes.NoSuchCommand(ctx.command_path, args[0], list(self.commands))
        return super().resolve_command(ctx, args)


class Group(typer.Typer):
    """Where the commands of a group are declared."""

    def declare(self, name: str, kind: type[KtrialCommand] = KtrialCommand) -> Callable[[Function], Function]:
        """Declare a command of the group."""

        def declared(function: Function) -> Function:
            self.command(name, cls=kind)(with_families(function))
            return function

        return declared


def command_group(summary: str) -> Group:
    """A group without commands yet."""
    return Group(cls=CommandGroup, help=summary, no_args_is_help=True, rich_markup_mode=None)


def alone(name: str, function: Callable[..., None], kind: type[KtrialCommand]) -> Any:
    """The command that the function is, as Typer runs it."""
    typer_app = typer.Typer(rich_markup_mode=None, add_completion=False)
    typer_app.command(name, cls=kind)(with_families(function))
    return typer.main.get_command(typer_app)


def Option(default: Any, /, *names: str, **attributes: Any) -> Any:  # noqa: N802 - called as Typer's
    """An option of a command or of a family; `...`: it has to be given."""
    return _field(default, typer.Option(*names, **attributes))


def Argument(default: Any, /, **attributes: Any) -> Any:  # noqa: N802 - called as Typer's
    """An argument of a command or of a family; `...`: it has to be given."""
    return _field(default, typer.Argument(**attributes))


def _field(default: Any, parameter: object) -> Any:
    """A dataclass's, so that a family that code makes has the default, too."""
    metadata = {_TYPER: parameter}
    return (
        dataclasses.field(metadata=metadata)
        if default is ...
        else dataclasses.field(default=default, metadata=metadata)
    )


def with_families(function: Callable[..., None]) -> Callable[..., None]:
    """The function with a keyword for each option, where parameters are dataclasses whose fields are options.

    Other fields are no options: the command itself sets them.
    """
    signature = inspect.signature(function, eval_str=True)
    families: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if not dataclasses.is_dataclass(parameter.annotation):
            parameters.append(_keyword(name, parameter.annotation, parameter.default))
            continue
        family = parameter.annotation
        hints = get_type_hints(family, include_extras=True)
        fields = [
            field
            for field in dataclasses.fields(family)
            if _TYPER in field.metadata or hasattr(hints[field.name], "__metadata__")
        ]
        families[name] = (family, [field.name for field in fields])
        parameters += [_keyword(field.name, hints[field.name], field) for field in fields]

    @wraps(function)
    def called(**values: Any) -> None:
        built = {
            name: family(**{field: values[field] for field in fields})
            for name, (family, fields) in families.items()
        }
        single = {
            name: value
            for name, value in values.items()
            if name in signature.parameters and name not in families
        }
        function(**single, **built)

    return _with_parameters(called, signature, parameters)


def _keyword(name: str, annotation: Any, declared: Any) -> inspect.Parameter:
    """The parameter as Typer has it: its option is in the annotation."""
    default = declared
    if isinstance(declared, dataclasses.Field):
        default = inspect.Parameter.empty if declared.default is dataclasses.MISSING else declared.default
        if _TYPER in declared.metadata:
            annotation = Annotated[annotation, declared.metadata[_TYPER]]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_added(
    command: Callable[..., None],
    name: str,
    annotation: object,
    around: Callable[[Any], AbstractContextManager[object]],
) -> Callable[..., None]:
    """The command with one more option, None unless it is given; `around` is entered with its value."""

    @wraps(command)
    def called(**options: Any) -> None:
        with around(options.pop(name, None)):
            command(**options)

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    keywords = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()
    ]
    return _with_parameters(called, signature, [*keywords, option])


def _with_parameters(
    called: Callable[..., None], signature: inspect.Signature, parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """The function with this signature, for Typer. Which of them have defaults does not order keywords."""
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called
