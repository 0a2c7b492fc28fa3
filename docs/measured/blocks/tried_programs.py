"""docs/workloads.md: programs of others that were captured by one command each, and counted twice."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.tried_commands import TRIED
from docs.measured.tried_programs import TriedResult, kept
from docs.measured.wording import prose, table

_HEADS = (
    "program",
    "captured",
    "counted",
    "identical",
    "instructions of a run",
    "CPU seconds",
    "what does not work",
)
_IN_SHORT = """
Of {all} programs, {tried} were tried, {captured} captured, {counted} counted, and {identical} gave the same
digits in two trials:
"""


def _text(measuring: Measuring) -> str:
    del measuring
    results = kept()
    counts = {
        "all": len(TRIED),
        "tried": len(results),
        **{
            name: sum(getattr(result, name) for result in results.values())
            for name in ("captured", "counted", "identical")
        },
    }
    short = prose(_IN_SHORT, **{name: str(count) for name, count in counts.items()})
    return short + "\n" + table(_HEADS, (_row(name, results.get(name)) for name in TRIED))


def _row(name: str, result: TriedResult | None) -> tuple[str, ...]:
    if result is None:
        return name, "–", "–", "–", "–", "–", "not tried yet"
    marks = (_yes(result.captured), _yes(result.counted), _yes(result.identical))
    numbers = (f"{result.instructions:,.0f}", f"{result.seconds:.1f}") if result.counted else ("–", "–")
    return name, *marks, *numbers, result.reason.replace("|", "\\|")


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


BLOCKS = (Block("tried-programs", "docs/workloads.md", _text, simulated=True),)
