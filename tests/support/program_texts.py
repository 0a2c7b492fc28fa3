"""Texts that programs printed, and what is read of them."""

from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import program_outputs
from ktrial.model.workload import Direction
from ktrial.program_outputs import Report

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


def text_of(file: str) -> str:
    path = PROGRAM_OUTPUTS / file
    return (path if path.exists() else FOREIGN / file).read_text()


def read(name: str, file: str) -> Report:
    return program_outputs.find(name).read(text_of(file))


def numbers(report: Report) -> dict[str, tuple[tuple[float, ...], str, Direction]]:
    return {name: (each.values, each.unit, each.direction) for name, each in report.named().items()}


def only(*values: float, unit: str, direction: Direction) -> tuple[tuple[float, ...], str, Direction]:
    return values, unit, direction


def changed(file: str, *changes: tuple[str, str]) -> str:
    text = text_of(file)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text
