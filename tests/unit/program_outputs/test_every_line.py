"""Every line of real files is removed, doubled, garbled, cut: that is noticed, or the numbers stay right."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import program_outputs
from ktrial.model.workload import Direction
from ktrial.program_outputs import OutputError, OutputFormat

MOST_LINES = 120
"""Of a file; of longer ones every second or third is changed."""
Numbers = dict[str, tuple[tuple[float, ...], str, Direction, int]]
CHANGES: dict[str, Callable[[str], list[str]]] = {
    "removed": lambda line: [],
    "doubled": lambda line: [line, line],
    "garbled": lambda line: [line[::-1]],
    "cut": lambda line: [line[: len(line) // 2]],
}
HAND_MADE = {"pyperf.json", "google_benchmark.json"}
"""Without the redundancy that real files have."""
FILES = [
    (format, file)
    for file in sorted([*PROGRAM_OUTPUTS.iterdir(), *FOREIGN.iterdir()])
    for format in program_outputs.installed()[0].values()
    if file.name not in HAND_MADE and file.is_file() and format.recognises(file.read_text())
]


def seen(format: OutputFormat, text: str) -> tuple[Numbers, tuple[str, ...]] | None:
    """The numbers and what is told beside them; None where the text is refused."""
    if not format.recognises(text):
        return None
    try:
        report = format.read(text)
    except OutputError:
        return None
    numbers = {
        name: (each.values, each.unit, each.direction, each.failed) for name, each in report.named().items()
    }
    return numbers, tuple(note.text for note in (*report.notes, *report.failures))


def is_noticed(
    before: tuple[Numbers, tuple[str, ...]], after: tuple[Numbers, tuple[str, ...]] | None
) -> bool:
    """Whether it is refused or told, or every number that is still there is what it was."""
    if after is None or after[1] != before[1]:
        return True
    return all(
        name in before[0] and number == pytest.approx(before[0][name][0], rel=1e-4)
        for name, (number, *_) in after[0].items()
    )


def is_whole(before: tuple[Numbers, tuple[str, ...]], after: tuple[Numbers, tuple[str, ...]] | None) -> bool:
    """The same, and no number is missing without a word."""
    return is_noticed(before, after) and (
        after is None or after[1] != before[1] or after[0].keys() == before[0].keys()
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("format", "file"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_changed_line_is_noticed(format: OutputFormat, file: Path, change: str) -> None:
    text = file.read_text()
    before = seen(format, text)
    if before is None:
        assert file.name
        return
    lines = text.split("\n")
    unnoticed = []
    for at in range(0, len(lines), 1 + len(lines) // MOST_LINES):
        changed = "\n".join([*lines[:at], *CHANGES[change](lines[at]), *lines[at + 1 :]])
        after = seen(format, changed)
        # A row that is removed whole leaves what a run with fewer events prints.
        if not (is_noticed if change == "removed" else is_whole)(before, after):
            unnoticed.append((at + 1, lines[at]))
    assert unnoticed == []


def test_each_format_has_a_file_whose_lines_are_changed() -> None:
    changed = {format.name for format, file in FILES if seen(format, file.read_text())}
    assert changed == set(program_outputs.installed()[0])
