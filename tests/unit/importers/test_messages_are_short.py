"""Whatever an importer says fits in 200 characters: refusals, what to do next, remarks on what was read."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import importers
from ktrial.importers import SourceFile
from ktrial.importers.errors import ImportFailed

LONGEST = 200
NUMBER = re.compile(r"(?<![\w.])[0-9][0-9.]*")
MANY = ",".join(f"column_{at}_of_a_very_wide_table" for at in range(60))
TABLES = {
    "no column is named": f"{MANY}\n{','.join('1' for _ in range(60))}\n",
    "two candidates": "a,b\nx,1\n",
    "a group in each row": "when,value\n" + "\n".join(f"{at},{at}.5" for at in range(300)),
    "many groups by many columns": f"{MANY},value\n"
    + "\n".join(",".join(f"w{at}{column}" for column in range(60)) + ",1.5" for at in range(300)),
    "a cell that is long": f"kernel,seconds\na,{'x' * 500}\n",
    "a row that is short": "kernel,seconds\na\n",
    "many left out": f"kernel,seconds,{MANY.replace('column', 'median')}\n"
    + "\n".join(f"k{at % 2},{at}.5,{','.join(f'{at}.{column}' for column in range(60))}" for at in range(9)),
    "units of many names": "kernel,seconds,unit\na,1,lightyears of a long name\nb,2,furlongs a week\n",
    "nothing": "\n",
    "words": "there is nothing to be read in this\n",
}


def messages(name: str, text: str) -> Iterator[str]:
    """What is said of a file: the error without its path, the hint, each warning and what it advises."""
    file = SourceFile(Path(name), text)
    try:
        _, imported = importers.read(file)
    except ImportFailed as error:
        yield from (str(error), error.advice)
        return
    for warning in imported.warnings:
        yield from (warning.text, warning.advice)


def long_ones(name: str, text: str) -> list[str]:
    return [message for message in messages(name, text) if len(message) > LONGEST]


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_what_is_said_of_a_table_is_short(text: str) -> None:
    assert long_ones("results.csv", text) == []


@pytest.mark.parametrize("folder", [FOREIGN, PROGRAM_OUTPUTS], ids=lambda folder: str(folder.name))
def test_what_is_said_of_a_file_is_short_whole_cut_and_with_another_number(folder: Path) -> None:
    said = 0
    for path in sorted(file for file in folder.iterdir() if file.is_file()):
        text = path.read_text()
        lines = text.split("\n")
        broken = [text, "\n".join(lines[: len(lines) // 2]), f"{text}\n{text}"]
        for at in range(0, len(lines), 1 + len(lines) // 6):
            changed = NUMBER.sub("-1", lines[at], count=1)
            broken += ["\n".join([*lines[:at], *row, *lines[at + 1 :]]) for row in ([changed], [])]
        for variant in broken:
            assert long_ones(path.name, variant) == []
            said += sum(1 for message in messages(path.name, variant) if message)
    assert said > 100
