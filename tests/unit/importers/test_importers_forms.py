"""Tables as people keep them: packed, in other encodings, with comments, in Markdown, wide, with commas."""

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard
from tests.support.places import FOREIGN
from tests.support.program_texts import HIGHER, LOWER, only_family, read_file, table, written

from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

ROWS = "kernel,seconds,where\n6.1,3.5,Köln\n6.1,3.7,Köln\n6.12,3.0,Köln\n6.12,3.1,Köln\n"
VALUES = {"6.1": (3.5, 3.7), "6.12": (3.0, 3.1)}


def values(imported: Imported) -> dict[str, tuple[float, ...]]:
    return {group.label: group.values for group in only_family(imported).groups}


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode(),
        ROWS.encode("utf-8-sig"),
        ROWS.encode("utf-16"),
        ROWS.encode("latin-1"),
        ROWS.replace("\n", "\r\n").encode("cp1252"),
        gzip.compress(ROWS.encode()),
        lzma.compress(ROWS.encode()),
        zstandard.compress(ROWS.encode()),
        gzip.compress(ROWS.encode("latin-1")),
    ],
    ids=["utf-8", "mark", "utf-16", "latin-1", "cp1252", "gzip", "xz", "zstandard", "gzip of latin-1"],
)
def test_a_table_is_read_in_every_encoding_and_packing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    assert values(read_file(path)) == VALUES


def test_what_unpacks_to_more_than_a_file_may_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(bytes(33 * 1024 * 1024)))
    with pytest.raises(ImportFailed, match="unpacks to more than 32 MiB"):
        read_file(path)


def test_pyperf_s_own_packing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pyperf.json.gz"
    path.write_bytes(gzip.compress((FOREIGN / "pyperf.json").read_bytes()))
    assert only_family(read_file(path)).groups == only_family(read_file(FOREIGN / "pyperf.json")).groups[
        :0
    ] + tuple(
        group.model_copy(update={"label": "pyperf.json"})
        for group in only_family(read_file(FOREIGN / "pyperf.json")).groups
    )


FORMS = {
    "comments": "# kernel: 6.1\n# by hand\n" + ROWS,
    "comments within": ROWS.replace("6.12,3.0", "# hot\n6.12,3.0"),
    "markdown": "| kernel | seconds |\n| --- | ---: |\n| 6.1 | 3.5 |\n| `6.1` | 3.7 |\n| 6.12 | **3.0** |\n"
    "| 6.12 | 3.1 |\n",
    "markdown in prose": "# Results\nFirst, second; third.\n\n|kernel|seconds|\n|---|---|\n|6.1|3.5|\n"
    "|6.1|3.7|\n|6.12|3.0|\n|6.12|3.1|\n\nThat is all.\n",
    "semicolons": ROWS.replace(",", ";"),
    "tabs": ROWS.replace(",", "\t"),
    "decimal commas": "kernel;seconds\nA;3,5\nA;3,7\nB;3\nB;3,1\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_read_in_every_form(tmp_path: Path, form: str) -> None:
    imported = read_file(written(tmp_path, FORMS[form]))
    assert tuple(values(imported).values()) == tuple(VALUES.values())


@pytest.mark.parametrize(
    ("form", "remark"),
    [
        ("markdown in prose", "the Markdown table; 3 lines around it are not read"),
        ("decimal commas", "decimal commas in seconds"),
    ],
)
def test_how_a_table_was_taken_is_told(tmp_path: Path, form: str, remark: str) -> None:
    assert remark in read_file(written(tmp_path, FORMS[form])).understood


def test_comments_are_conditions(tmp_path: Path) -> None:
    family = only_family(read_file(written(tmp_path, FORMS["comments"])))
    assert family.groups[0].conditions == {"kernel": "6.1", "where": "Köln"}


def test_a_wide_table_with_a_name_in_each_row_has_a_family_for_each(tmp_path: Path) -> None:
    path = table(tmp_path, "case,vanilla,patched", "fork,10,11", "pipe,20.5,19")
    imported = read_file(path, group_by=("header",), value="vanilla,patched")
    assert "each column is a group: vanilla, patched" in imported.understood
    assert {
        family.metric: {group.label: group.values for group in family.groups} for family in imported.families
    } == {
        "fork": {"vanilla": (10,), "patched": (11,)},
        "pipe": {"vanilla": (20.5,), "patched": (19,)},
    }


@pytest.mark.parametrize(
    ("header", "row"),
    [("run,users,requests", "1,10,2000"), ("run,cpu_s,rss_kb", "1,10,12"), ("run,min,max", "1,10,12")],
)
def test_columns_of_different_things_are_not_compared(tmp_path: Path, header: str, row: str) -> None:
    with pytest.raises(ImportFailed, match=r"line 1: [1-3] of 3 columns may mean several things"):
        read_file(table(tmp_path, header, row, row.replace("10", "11")))


def test_a_comma_that_may_group_or_divide_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="line 3: seconds is 1,234: decimals, or grouped by threes"):
        read_file(table(tmp_path, "kernel;seconds", "a;17", "b;1,234"))


def test_lines_keep_their_numbers_below_comments(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="line 4: seconds is 'x', not a number"):
        read_file(table(tmp_path, "# a comment", "kernel,seconds", "a,1", "b,x"))


def test_units_in_the_columns_of_a_wide_table_hold(tmp_path: Path) -> None:
    assert {LOWER, HIGHER} == {
        only_family(read_file(table(tmp_path, f"kernel,{name}", "a,1", "b,2"))).direction
        for name in ("Time (ms)", "Rate (ops/s)")
    }
