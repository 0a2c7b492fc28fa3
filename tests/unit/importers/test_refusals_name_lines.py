"""Each refusal of a file names the file and the line; of what is missing, what it is called."""

import re
from pathlib import Path

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import importers
from ktrial.importers import SourceFile
from ktrial.importers.errors import ImportFailed
from ktrial.program_outputs.places import line_of

"""What is not there has no line."""
BROKEN = [
    # The file, the part of it, what stands there instead, what is said of the place
    ("fio-3.33.json", '"iops": 14844', '"iops": -14844', "line 26, t, read, iops"),
    ("google-benchmark-1.7.1.json", '"time_unit": "ns"', '"time_unit": "lap"', "its time_unit is 'lap'"),
    ("pgbench-15.txt", "latency average = 23", "latency average = -23", "line 12, latency: "),
    ("schbench.txt", "average rps: 3024.60", "average rps: -3024.60", "line 18, average rps"),
    ("stress-ng-0.15.06.yaml", "bogo-ops: ", "bogo-ops: x", "line 29, cpu, bogo-ops"),
    ("sysbench-cpu-1.0.20.txt", " 999.22", "-999.22", "line 26, sum"),
    ("vegeta-12.txt", "Success", "Success      [ratio]  x%\nSuccess", "line 7, Success %"),
    ("hyperfine-1.15.json", '"mean": 0', '"mean": 7', "line 5, sleep 0.01: its mean"),
    ("jmh-1.37.json", '"thrpt"', '"quick"', "line 5, my.B.sum: its mode"),
    ("unixbench-6.0.0-01.log", "COUNT0: 2963016", "COUNT0: many", "line 31: COUNT0 is 'many'"),
    ("unixbench-6.0.0-01.log", "#### Pass 1", "#### Pass 2", "line 6: pass 2 of Arithoh follows pass 0"),
    ("composite.xml", "</System>", "</Sistem>", "line 12, column 5"),
    ("perf-stat-6.1.187-each-cpu.csv", "", "", "line 1, the line 'CPU0"),
]


def refusal(name: str, text: str) -> str:
    """What is said of it; empty where it is read."""
    try:
        importers.read(SourceFile(Path("results") / name, text))
    except ImportFailed as error:
        return str(error)
    return ""


def text_of(name: str) -> str:
    return next(
        folder / name for folder in (FOREIGN, PROGRAM_OUTPUTS) if (folder / name).exists()
    ).read_text()


@pytest.mark.parametrize(
    ("name", "part", "instead", "place"), BROKEN, ids=[f"{row[0]} {row[2]}" for row in BROKEN]
)
def test_a_refusal_names_the_place(name: str, part: str, instead: str, place: str) -> None:
    text = text_of(name)
    assert part in text
    message = refusal(name, text.replace(part, instead, 1))
    assert name in message
    assert place in message


def test_what_is_wrong_in_a_second_report_is_named_by_its_line() -> None:
    text = text_of("fio-3.33.json").rstrip("\n")
    lines = text.count("\n") + 1
    broken = re.sub(r'("iops"\s*:\s*)[0-9.]+', r'\1"many"', text, count=1)
    at = next(at for at, line in enumerate(broken.split("\n"), start=1) if '"many"' in line)
    assert f"line {lines + at}, " in refusal("a.json", f"{text}\n{broken}\n")


@pytest.mark.parametrize("folder", [FOREIGN, PROGRAM_OUTPUTS], ids=lambda folder: str(folder.name))
def test_every_refusal_of_a_changed_number_names_its_line_or_lines(folder: Path) -> None:
    """The first numbers of eight lines of each file become a word, in turn."""
    right, others, placeless = 0, 0, []
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        lines = file.read_text().split("\n")
        for at in range(0, len(lines), 1 + len(lines) // 8):
            changed = re.sub(r"(?<![\w.])[0-9]+", "x", lines[at], count=1)
            message = refusal(file.name, "\n".join([*lines[:at], changed, *lines[at + 1 :]]))
            line = re.search(r"\bline ([0-9]+)", message)
            if line:
                right, others = (right + 1, others) if abs(int(line[1]) - at - 1) < 4 else (right, others + 1)
            elif message and not re.search(r"\blines 1 to [0-9]+\b", message):
                placeless.append(message)
    assert placeless == []
    assert right > 4 * others


@pytest.mark.parametrize(
    ("where", "problem", "line"),
    [
        ("b, write", "'x' where a number from 0 was expected", 4),
        ("b, write", "it is there 2 times", 4),
        ("a", "its mean is 7", 2),
        ("line 3", "it is cut", None),
        ("nowhere", "it is not there", None),
    ],
)
def test_a_line_is_found_from_the_outside_in(where: str, problem: str, line: int | None) -> None:
    assert line_of("a: 1\nmean 7, write x\nb: 2\nwrite x\n", where, problem) == line
