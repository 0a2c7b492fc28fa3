"""Whatever is in a file: measurements, or an error that says what is wrong. Never a traceback, never a
number that is not finite.
"""

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.places import FOREIGN
from tests.support.runs_of_tests import examples

from ktrial.analysis.imported_results import AnalysisOptions as HowToAnalyse
from ktrial.analysis.imported_results import analyse
from ktrial.importers import Choices, SourceFile, read
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

SAMPLES = [path.read_text() for path in sorted(FOREIGN.iterdir())]
PIECES = st.sampled_from(
    [
        "",
        "\n",
        ",",
        ":",
        '"',
        "<",
        "&a;",
        "0",
        "-1",
        "1e308",
        "nan",
        "---",
        "{",
        "]",
        "null",
        "\u202e",
        "é",
        "9" * 400,
    ]
)
WORDS = st.sampled_from(
    [
        "level",
        "value",
        "block",
        "metric",
        "mean",
        "se",
        "sd_percent",
        "n",
        "is_default",
        "baseline",
        "result",
        "index",
    ]
)
CELLS = st.sampled_from(["1", "2.5", "0", "-3", "1e300", "1e-300", "a", "b", "", "n/a", "1", "yes"])


def read_and_analyse(text: str) -> Imported | None:
    file = SourceFile(Path("results"), text, choices=Choices())
    try:
        _, imported = read(file)
    except ImportFailed:
        return None
    values = [value for family in imported.families for group in family.groups for value in group.values]
    assert all(map(math.isfinite, values))
    analysis = analyse((imported,), HowToAnalyse())
    assert analysis.answer
    analysis.model_dump_json()
    return imported


@pytest.mark.parametrize("sample", SAMPLES)
@given(data=st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_files_that_were_damaged_anywhere(sample: str, data: st.DataObject) -> None:
    text = sample
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from([0, 1, 5, 50, 100_000])))
        text = text[:start] + data.draw(PIECES) + text[end:]
    read_and_analyse(text)


@given(
    st.lists(WORDS, min_size=1, max_size=6, unique=True).flatmap(
        lambda header: st.lists(
            st.lists(CELLS, min_size=len(header), max_size=len(header)), min_size=1, max_size=8
        ).map(lambda rows: [header, *rows])
    )
)
@settings(max_examples=examples(200))
def test_tables_of_any_columns(rows: list[list[str]]) -> None:
    read_and_analyse("\n".join(",".join(row) for row in rows) + "\n")


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    read_and_analyse(text)
