"""Mistakes on the command line in ktrial's words: what stands there, what is allowed, and which help to read.

Typer finds many of them, and words them for programmers ("Input should be a valid integer, unable to parse
string as an integer"). What it found is in its exceptions; what is allowed, in the parameter that they name.
"""

import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from ktrial.errors import KtrialError
from ktrial.model.notation import nearest

_OTHER_WORDS = {
    "rm": "remove",
    "delete": "remove",
    "del": "remove",
    "uninstall": "remove",
    "ls": "list",
    "cat": "show",
    "info": "show",
    "describe": "show",
    "install": "add",
    "download": "add",
    "fetch": "add",
    "compile": "build",
    "make": "build",
    "read": "get",
    "write": "set",
    "compare": "diff",
    "check": "verify",
    "release": "versions",
    "releases": "versions",
    "kernels": "versions",
    "series": "patches",
    "options": "config",
    "settings": "knobs",
    "sysctl": "knobs",
}
"""What people type out of habit → the command that a group may have for it."""


_COMMITS = (
    "git finds a commit itself: git bisect run ktrial check --source . --against BASELINE (ktrial help check)"
)
_DONE_OTHERWISE = {f"ktrial bisect {word}": _COMMITS for word in ("commit", "commits", "run", "start", "git")}
"""What people type that no command does → how it is done."""


class NoSuchCommand(KtrialError):
    """A group of commands has no such command."""

    exit_code = 2

    def __init__(self, group: str, word: str, commands: Sequence[str]) -> None:
        other = _OTHER_WORDS.get(word)
        near = f" (did you mean {other}?)" if other in commands else nearest(word, commands)
        # The list of all of ktrial's own is what its help is.
        names = "" if " " not in group else f"; there are: {', '.join(commands)}"
        hint = _DONE_OTHERWISE.get(f"{group} {word}", f"{group} --help")
        super().__init__(f"{group} has no command {word}{near}{names}.", hint=hint)


_CONTEXT: ContextVar[Any] = ContextVar("context", default=None)
"""Typer's, of the command whose words are read, or which runs."""


def begin(context: Any = None) -> None:
    """From now on mistakes are this command's; None: no command was found yet."""
    _CONTEXT.set(context)


def help_of_command() -> str:
    """The same; empty where no command was found yet."""
    return help_command() if _CONTEXT.get() else ""


def help_command() -> str:
    """The command line that shows all options of the command that runs."""
    context = _CONTEXT.get()
    return f"{context.command_path if context else 'ktrial'} --help"


def message_and_hint(error: Any) -> tuple[str, str]:
    """What Typer found (a TyperException), and what to do next."""
    context = getattr(error, "ctx", None) or _CONTEXT.get()
    begin(context)
    path = context.command_path if context else "ktrial"
    match type(error).__name__:
        case "MissingParameter" if error.param:
            return _missing(path, error.param), _example(context)
        case "BadParameter" if error.param:
            return _bad_value(error), help_command()
        case "BadOptionUsage" if error.message.endswith("requires an argument."):
            return _without_value(context, error.option_name), help_command()
        case "NoSuchOption" if context:
            options = {name for option in context.command.params for name in option.opts}
            near = nearest(error.option_name, options, 1)
            return f"{path} has no option {error.option_name}{near}.", help_command()
    if left_over := re.fullmatch(r"Got unexpected extra argument\(s\) \((.*)\)", error.message):
        return _too_many(path, context, left_over[1]), _example(context)
    return error.format_message(), help_command()


def _name(parameter: Any) -> str:
    """`--kernel NAME`, `STUDY`."""
    if parameter.param_type_name == "argument":
        return re.sub(r"^\[(.*)\]$", r"\1", parameter.metavar or parameter.name.upper())
    return f"{parameter.opts[0]} {parameter.metavar or ''}".rstrip()


def _meaning(parameter: Any) -> str:
    """`: a kernel, at least two; the first is the baseline`."""
    text = (parameter.help or "").rstrip(".")
    return f": {text[0].lower()}{text[1:]}" if text else ""


def _missing(path: str, parameter: Any) -> str:
    return f"{path} needs {_name(parameter)}{_meaning(parameter)}."


def _without_value(context: Any, name: str) -> str:
    option = (
        next((option for option in context.command.params if name in option.opts), None) if context else None
    )
    return f"{name}: its value is missing{_meaning(option) if option else ''}."


def _too_many(path: str, context: Any, words: str) -> str:
    taken = [
        _name(parameter) for parameter in context.command.params if parameter.param_type_name == "argument"
    ]
    most = f"takes no more than {' '.join(taken)}" if taken else "takes only options"
    return f"{path} {most}; not understood: {words}."


def _bad_value(error: Any) -> str:
    """`--jobs: 'many' is not a whole number from 1 to 1024.`; of other types Typer's own words."""
    option = error.param.opts[0] if error.param.param_type_name == "option" else _name(error.param)
    refused: list[Any] = getattr(error.__cause__, "errors", list)()
    allowed = _allowed(error.param.type_descriptor)
    if refused and allowed:
        return f"{option}: {refused[0]['input']!r} is not {allowed}."
    return f"{option}: {error.message}"


def _allowed(kind: Any) -> str:
    """`a whole number from 1 to 1024`; empty where the type is another one."""
    if kind.is_choice:
        *first, last = kind.choices
        return f"{', '.join(first)} or {last}"
    number = {int: "a whole number", float: "a number"}.get(kind.annotation, "")
    low, high = kind.parameter_info.min, kind.parameter_info.max
    if not number or low is high is None:
        return number
    if high is None:
        return f"{number} from {low:g} up"
    return f"{number} up to {high:g}" if low is None else f"{number} from {low:g} to {high:g}"


def _example(context: Any) -> str:
    """The command's first example, and its help."""
    lines: tuple[str, ...] = getattr(context.command.callback, "ktrial_examples", ()) if context else ()
    return f"for example: {lines[0]} ({help_command()} lists all options)" if lines else help_command()
