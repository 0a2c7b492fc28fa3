"""Functions by modelled cycles or by a kind of miss, as tables for the terminal."""

from rich.console import Console
from rich.text import Text

from ktrial.analysis.attribution.costs import CostKind, cost_rows, profile_rows
from ktrial.cli.command_line import BadOption
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import of_texts
from ktrial.model.attribution import Explanation
from ktrial.model.profile import Profile

_NAME_COLUMNS = 40
_NOT_TIME = "modelled, not measured: how far its changes are changes of time says `ktrial help fidelity`"


def check_modelled(explanation: Explanation, by: str | None) -> None:
    """Raise BadOption where something is asked for that was not modelled."""
    if by and explanation.prices is None:
        problem = "cycles of both sides were not modelled: --model desktop, or [machine] model of a study"
        raise BadOption(option="--by", problem=problem)


def print_costs(explanation: Explanation, by: str | None, top: int | None, console: Console) -> None:
    """The functions whose modelled cycles, or misses, differ most; nothing where none were modelled."""
    kind = CostKind(by or CostKind.CYCLES)
    rows = cost_rows(explanation, kind)
    if not rows:
        return
    whole = sum(row.difference for row in rows)
    share = [number_format.share(row.difference / whole if whole else None) for row in rows]
    texts = [
        (
            shortened(row.name, _NAME_COLUMNS),
            number_format.number(row.before),
            number_format.number(row.after),
            number_format.signed(row.difference),
            part,
            row.moved,
        )
        for row, part in list(zip(rows, share, strict=True))[:top]
    ]
    headings = ("function", "before", "after", "difference", "share, %", "what moved")
    console.print()
    console.print(
        Text(f"by {_words(kind)}, an operation: {number_format.signed(whole)} in all", style="bold")
    )
    console.print(Text(_NOT_TIME, style="dim"))
    console.print(rendered(of_texts(headings, texts).adapted("number-4", numeric=False)))


def print_profile_costs(profile: Profile, by: str | None, top: int, console: Console) -> None:
    """The functions with the most modelled cycles, or misses."""
    kind = CostKind(by or CostKind.CYCLES)
    rows = profile_rows(profile, kind)
    if not rows:
        return
    whole = sum(amount for _, amount in rows)
    texts = [
        (
            shortened(one_line(name), _NAME_COLUMNS),
            number_format.number(amount),
            number_format.share(amount / whole),
        )
        for name, amount in rows[:top]
    ]
    console.print()
    console.print(Text(f"by {_words(kind)}, an operation; the kernel's functions alone", style="bold"))
    console.print(Text(_NOT_TIME, style="dim"))
    console.print(rendered(of_texts(("function", _words(kind), "%"), texts)))


def _words(kind: CostKind) -> str:
    return "modelled cycles" if kind is CostKind.CYCLES else kind.value.replace("-", " ")
