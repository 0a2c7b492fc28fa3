"""A patch of a kept series as a row of a page's table."""

from fractions import Fraction
from typing import Any

from docs.measured.wording import percent


def row_of(patch: dict[str, Any]) -> tuple[str, ...]:
    """One patch: its number, its subject, what became of it, and what it costs in each workload."""
    return str(patch["number"]), plain(patch["subject"]), state_of(patch), cost_of(patch)


def state_of(patch: dict[str, Any]) -> str:
    """`3 functions differ`; of a patch without a kernel of its own why."""
    state: str = patch["state"]
    if patch["mended_by"]:
        return f"{state}; works again with {patch['mended_by']}"
    if patch["left_out"]:
        return f"{state}; left out of what follows"
    if state == "built":
        other = "other data" if patch["data"] else "the same code at other addresses"
        changed = patch["functions"]
        return f"{changed} {'function differs' if changed == 1 else 'functions differ'}" if changed else other
    return state


def cost_of(patch: dict[str, Any]) -> str:
    """`fork +1.02 %`, of each workload that changed."""
    told = [f"{one['workload']} {percent_of(one)}" for one in patch["cells"] if one["ratio"]]
    if told:
        return ", ".join(told)
    # Results that were kept before have no word on it.
    if patch.get("idle"):
        return "∅ not executed"
    return "≈" if patch["state"] == "built" else ""


def percent_of(cell: dict[str, Any]) -> str:
    """With a mark where other layouts of the same code say otherwise, and where nothing leaves the margin."""
    mark = "?" if cell["open"] else "≈ " if cell["inside"] else ""
    return f"{mark}{percent(cell['ratio'], 2)} %"


def value_of(text: str) -> float:
    """A number of instructions, as the result has it."""
    return float(Fraction(text))


def plain(subject: str) -> str:
    """A subject that no Markdown reads."""
    return subject.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")
