"""Values of settings on the command line, of which a study makes levels: `--knob vm.swappiness=60,10`."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.completion import knob_settings

KnobLevels = Annotated[
    list[str] | None,
    typer.Option(
        "--knob",
        metavar="NAME=V1,V2…",
        help="Values of a setting (ktrial knob list), the baseline first; may be repeated.",
        autocompletion=knob_settings,
    ),
]
_BOOT = "boot:"
_EXAMPLE = "--knob vm.swappiness=60,10: the baseline first, then what is compared with it"


def knob_levels(options: Iterable[str] | None) -> dict[str, dict[str, Any]]:
    """Factor → its table in a study file. The same name twice has the values of both. Raises BadOption."""
    values: dict[str, list[int | str]] = {}
    for option in options or ():
        name, equals, text = option.partition("=")
        if not name.strip() or not equals:
            raise BadOption(f"--knob {option}", "it is no setting with values", hint=_EXAMPLE)
        if ".." in text:
            hint = f"{_EXAMPLE}; ktrial tune searches a range"
            raise BadOption(f"--knob {option}", "values are named here, and no range", hint=hint)
        values.setdefault(name.strip(), []).extend(_value(part.strip()) for part in text.split(","))
    for name, levels in values.items():
        if len(levels) < 2:
            problem = f"one value leaves nothing to compare: {levels[0]}"
            raise BadOption(f"--knob {name}", problem, hint=_EXAMPLE)
    return {name.removeprefix(_BOOT): _table(name, levels) for name, levels in values.items()}


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() and str(int(text)) == text else text


def _table(name: str, levels: list[int | str]) -> dict[str, Any]:
    if name.startswith(_BOOT):
        return {"kind": "boot", "levels": levels}
    return {"levels": levels}
