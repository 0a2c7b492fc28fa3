"""Files of results, as importers read them."""

from pathlib import Path

from ktrial.importers import Choices, read_all
from ktrial.model.imported import Family, Imported


def read(path: Path, label: str = "", group_by: tuple[str, ...] = (), value: str = "") -> Imported:
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
