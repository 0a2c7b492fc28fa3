"""Quantities on the command line: what cannot be read is told with the option that it stands behind."""

from ktrial.cli.command_line import BadOption
from ktrial.model import quantities


def share(option: str, value: str, *, least: float, most: float) -> float:
    """The fraction that `1%` or `1 %` means, between the two. Raises BadAmount."""
    from ktrial.analysis.errors import BadAmount

    try:
        fraction = quantities.share(value)
    except ValueError as error:
        raise BadAmount(option=option, value=value, problem=error) from None
    if not least <= fraction <= most:
        problem = f"it has to lie between {least * 100:g} % and {most * 100:g} %"
        raise BadAmount(option=option, value=value, problem=problem)
    return fraction


def duration(option: str, text: str, *, bare: bool = False) -> float:
    """Seconds in `90s`, `10min`, `6h`; with `bare`, in `90` too. Raises BadOption."""
    try:
        return quantities.seconds(text, bare=bare)
    except ValueError as error:
        raise BadOption(option=option, problem=f"{text} is no time: {error}") from None


def margin_of(text: str | None) -> float | None:
    """`1%` → 0.01; None where nothing was given. Raises BadOption."""
    try:
        return None if text is None else quantities.margin(text)
    except ValueError as error:
        raise BadOption(option="--margin", problem=error) from None


def memory_of(text: str) -> int:
    """`1G` → 1024, in MiB. Raises BadOption."""
    try:
        return quantities.memory_mib(text)
    except ValueError as error:
        raise BadOption(option="--memory", problem=error) from None
