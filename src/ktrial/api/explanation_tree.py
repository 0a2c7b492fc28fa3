"""An explanation as a tree: the whole difference, its subsystems, their functions."""

from dataclasses import dataclass
from html import escape

from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.attribution import Explanation


@dataclass(frozen=True)
class Tree:
    """A part of a difference, and what it is made of, the heaviest first."""

    name: str
    """Of the workload, a subsystem, a function."""
    difference: float
    """Instructions an operation."""
    share: float | None
    """Of the whole difference; None where there is none."""
    parts: tuple["Tree", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _lines(self, first: str, rest: str) -> list[str]:
        lines = [f"{first}{one_line(self.name)} {number_format.signed(self.difference)}"]
        for place, part in enumerate(self.parts, start=1):
            last = place == len(self.parts)
            lines += part._lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
        return lines

    def _repr_html_(self) -> str:
        return self._html(is_open=True)

    def _html(self, *, is_open: bool = False) -> str:
        said = escape(f"{one_line(self.name)} {number_format.signed(self.difference)}")
        if not self.parts:
            return f"<div style='margin-left:1.4em'>{said}</div>"
        inner = "".join(part._html() for part in self.parts)
        opened = " open" if is_open else ""
        return f"<details{opened} style='margin-left:1em'><summary>{said}</summary>{inner}</details>"


def tree_of(explanation: Explanation) -> Tree:
    """The tree of an explanation: every function that differs, below its subsystem."""
    subsystems = tuple(
        Tree(
            name=subsystem,
            difference=float(difference),
            share=explanation.share(difference),
            parts=tuple(
                Tree(row.name, float(part), explanation.share(part))
                for row in explanation.rows
                if row.subsystem == subsystem and (part := explanation.difference(row))
            ),
        )
        for subsystem, difference in explanation.subsystems.items()
    )
    whole = explanation.total
    return Tree(
        explanation.workload, float(whole), explanation.share(whole), tuple(filter(_holds, subsystems))
    )


def _holds(part: Tree) -> bool:
    return bool(part.parts)
