"""A series in two configurations side by side: what each patch comes to under both, and the worse verdict."""

import textwrap
from collections.abc import Iterator, Sequence

from ktrial.experiment.regression_check import worst
from ktrial.format import number_format
from ktrial.format.sanitize import beginning, one_line, shortened
from ktrial.model.regression_check import Decision
from ktrial.model.series_result import Alone, SeriesCell, SeriesResult, Step, StepState
from ktrial.report.patch_series import (
    COLUMNS,
    answer,
    as_text,
    cell_text,
    counted,
    exercised,
    quiet_text,
    state_text,
    title,
)

_CELL = 18
"""Columns for each configuration."""
_ABSENT = frozenset({StepState.NOT_COMPILED, StepState.SAME_IMAGE})
"""What has no code of its own in a configuration."""


def name_of(result: SeriesResult) -> str:
    """What the configuration is called: `debian:6.12`, or the file's name."""
    plain = result.plain
    return plain.config_file.rpartition("/")[2] if plain.config_digest else plain.config


def decision(results: Sequence[SeriesResult]) -> Decision:
    """The worst of all."""
    return worst(result.decision for result in results)


def heading(results: Sequence[SeriesResult]) -> str:
    """What was measured, in a line."""
    return f"{title(results[0])}, in the configurations {' and '.join(map(name_of, results))}"


def verdict(results: Sequence[SeriesResult]) -> str:
    """The answer of the worse one first: that counts."""
    worse = decision(results)
    ordered = sorted(results, key=lambda result: result.decision is not worse)
    return " ".join(f"In {name_of(result)}: {answer(result)}" for result in ordered)


def rows(results: Sequence[SeriesResult], columns: int = COLUMNS) -> tuple[str, list[str]]:
    """A heading, a row a patch, and one base to tip: the change that tells most in each configuration."""
    width = columns - 4 - _CELL * len(results)
    names = "".join(f"{shortened(name_of(result), _CELL - 2):>{_CELL}}" for result in results)
    lines = []
    for steps in zip(*(result.steps[1:] for result in results), strict=True):
        patch = steps[0].patch
        assert patch is not None, "only the base has none"
        begin = f"{patch.number:>3} {beginning(one_line(patch.subject), width - 1):<{width}}"
        cells = (_of_step(result, step) for result, step in zip(results, steps, strict=True))
        lines.append(begin + "".join(f"{cell:>{_CELL}}" for cell in cells))
    totals = "".join(f"{_telling(result.totals):>{_CELL}}" for result in results)
    return " " * (4 + width) + names, [*lines, f"    {'base to tip':<{width}}{totals}"]


def _of_step(result: SeriesResult, step: Step) -> str:
    """What a patch comes to: `pipe +1.02%`, `≈`, `not compiled`."""
    if step.state is StepState.NOT_COMPILED:
        return step.state.value
    if not step.is_own:
        return beginning(state_text(step), _CELL - 2)
    return _telling([cell for cell in result.cells if cell.number == step.number])


def _telling(cells: Sequence[SeriesCell]) -> str:
    """The cell that says most: one beyond the limit, else the largest change that is more than layout."""
    telling = [cell for cell in cells if cell.is_told]
    if not telling:
        return quiet_text(cells) or "·"
    most = max(telling, key=lambda cell: (cell.decision is Decision.BEYOND, _size(cell)))
    text = cell_text(most)
    return f"{shortened(most.workload, _CELL - 3 - len(text))} {text}"


def _size(cell: SeriesCell) -> float:
    return abs(cell.ratio - 1) if cell.ratio is not None else float("inf")


def costs(results: Sequence[SeriesResult]) -> Iterator[str]:
    """`2/8 pipe: guest +1, debian:6.12 +9 instructions per operation`: of each patch and workload in which
    one of them has something to tell.
    """
    count = len(results[0].series.patches)
    labels = dict.fromkeys(use.label for result in results for use in result.measurement.workloads)
    for number in range(1, count + 1):
        for label in labels:
            cells = [result.cell(number, label) for result in results]
            if any(cell and cell.is_told for cell in cells):
                sides = ", ".join(
                    f"{name_of(result)} {_cost(result, number, cell)}"
                    for result, cell in zip(results, cells, strict=True)
                )
                yield f"{number}/{count} {label}: {sides} {counted(results[0])} per operation"


def _cost(result: SeriesResult, number: int, cell: SeriesCell | None) -> str:
    if cell is None:
        return result.steps[number].state.value
    if not cell.is_told:
        return cell_text(cell)
    return number_format.signed(float(cell.difference)).replace("\u00a0", " ")


def compiled_in_one(results: Sequence[SeriesResult]) -> str:
    """Which patches have code in one of the configurations only; empty where none has."""
    sentences = []
    for place, result in enumerate(results):
        others = [other for at, other in enumerate(results) if at != place]
        numbers = [
            step.number
            for step in result.steps[1:]
            if step.is_own and all(other.steps[step.number].state in _ABSENT for other in others)
        ]
        if numbers:
            which = ", ".join(map(str, numbers))
            has = f"patch {which} has" if len(numbers) == 1 else f"patches {which} have"
            sentences.append(f"Only in {name_of(result)} {has} code that is compiled.")
    return " ".join(sentences)


def executed(results: Sequence[SeriesResult]) -> list[str]:
    """What nothing exercised, in each configuration."""
    return [f"In {name_of(result)}: {exercised(result)}" for result in results]


def pair_text(
    pairs: Sequence[tuple[SeriesResult, Sequence[Alone]]], commands: Sequence[str], top: int = 3
) -> str:
    """Both side by side, and then each one's whole report. `commands`: what repeats each one alone."""
    results = [result for result, _ in pairs]
    names, lines = rows(results)
    blocks = [
        _wrapped(heading(results)),
        *(_wrapped(line) for line in executed(results)),
        "\n".join([names, *lines]),
        "\n".join(_wrapped(line, "  ", "    ") for line in costs(results)),
        _wrapped(compiled_in_one(results)),
        _wrapped(verdict(results)),
    ]
    whole = [
        f"{_wrapped(f'In the configuration {name_of(result)}')}\n\n{as_text(result, command, top, alone)}"
        for (result, alone), command in zip(pairs, commands, strict=True)
    ]
    return "\n\n".join([*(block for block in blocks if block), *whole])


def _wrapped(text: str, first: str = "", later: str = "") -> str:
    lines = textwrap.wrap(
        one_line(text), COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return "\n".join(lines)
