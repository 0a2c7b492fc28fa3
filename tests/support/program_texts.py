"""Texts that programs printed, and what is read of them."""

from pathlib import Path

from tests.support.command_line import KNOWN
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import program_outputs
from ktrial.importers import Choices, read_all
from ktrial.model.imported import Family, Imported
from ktrial.model.study import Study
from ktrial.model.workload import Direction
from ktrial.program_outputs import Report
from ktrial.studyfile.reader import load

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


# Files of results, as importers read them.


def read_file(path: Path, label: str = "", group_by: tuple[str, ...] = (), value: str = "") -> Imported:
    (whole,) = read_all([(label, path)], Choices(group_by, value))
    return whole


def written(directory: Path, text: str, name: str = "results.csv") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def table(directory: Path, *lines: str) -> Path:
    return written(directory, "\n".join(lines) + "\n")


def only_family(imported: Imported) -> Family:
    (family,) = imported.families
    return family


# Study files as texts.

KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'


def load_text(tmp_path: Path, text: str, name: str = "study.toml") -> Study:
    path = tmp_path / name
    path.write_text(text)
    return load(path, KNOWN)
