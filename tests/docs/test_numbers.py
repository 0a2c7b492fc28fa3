"""A script writes the numbers of the documentation; what it does not write is listed with its source."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from docs.measured import inventory, made_with
from docs.measured.command import compared, main, one
from docs.measured.comparing import differences
from docs.measured.declaration import declared
from docs.measured.errors import ClaimBroken, NumbersError
from docs.measured.made_with import MadeWith
from docs.measured.measuring import Measuring
from docs.measured.pages import blocks_of, pages, write, written
from docs.measured.wording import MINUS, THIN, Lookup, count, percent, prose, signed, table
from tests.support.places import ROOT

from ktrial.errors import Interrupted

SOME = declared()["six-years-matrix"]
TABLE = "| workload | 6.1 | 6.12 |\n| --- | --- | --- |\n| fork | 100 | +14.2 % |\n| pipe | 20 | −5.1 % |\n"


def test_a_table_with_digits_is_written_by_the_script_or_listed_with_its_source() -> None:
    assert inventory.not_listed() == [], "declare it in docs/measured/blocks, or list it in inventory.toml"


def test_what_is_listed_is_still_there() -> None:
    assert inventory.no_longer_there() == [], "take it out of docs/measured/inventory.toml"


def test_each_declared_block_has_its_place_and_each_place_its_declaration() -> None:
    places = {
        (name, str(page.relative_to(ROOT)))
        for page in pages()
        for name in blocks_of(page.read_text(encoding="utf-8"))
    }
    assert places == {(block.name, block.page) for block in declared().values()}


def test_what_each_block_was_measured_with_is_noted() -> None:
    noted = made_with.noted()
    assert set(noted) == {name for name, block in declared().items() if not block.simulated}
    assert all(origin.kernels and origin.qemu and origin.programs for origin in noted.values())


@pytest.mark.guest
@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(declared()))
def test_what_a_block_says_is_what_is_measured(name: str, measuring: Measuring) -> None:
    assert compared(declared()[name], measuring) == [], f".venv/bin/python docs/write_numbers.py {name}"


@pytest.fixture(scope="module")
def measuring(run_cache: Path) -> Measuring:
    return Measuring(run_cache / "numbers")


def test_a_table_that_somebody_wrote_by_hand_is_found() -> None:
    assert inventory.by_hand(f"Words.\n\n{TABLE}\nMore words.") == ["workload | 6.1 | 6.12"]


def test_a_table_at_the_end_of_a_page_is_found_too() -> None:
    assert inventory.by_hand(TABLE.rstrip()) == ["workload | 6.1 | 6.12"]


def test_a_table_in_a_block_in_an_example_or_with_digits_in_names_only_is_no_finding() -> None:
    block = f"<!-- numbers: some -->\n{TABLE}<!-- end -->\n"
    example = f"```\n{TABLE}```\n"
    names = "| name | what |\n| --- | --- |\n| `debian:6.1` | [one](six-2.md) |\n"
    assert inventory.by_hand(f"{block}\n{example}\n{names}") == []


@pytest.mark.parametrize(
    "damaged",
    [
        f"<!-- numbers: some -->\n{TABLE}",
        f"{TABLE}<!-- end -->\n",
        f"Words <!-- numbers: some -->\n{TABLE}<!-- end -->\n",
        2 * f"<!-- numbers: some -->\n{TABLE}<!-- end -->\n",
    ],
)
def test_markers_without_their_other_end_or_twice_are_refused(damaged: str) -> None:
    with pytest.raises(NumbersError):
        blocks_of(damaged)


def test_a_block_is_written_and_what_stands_around_it_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n<!-- numbers: some -->\n{TABLE}<!-- end -->\n\nAfter 7.\n")
    write(page, "some", "one \\1 line\n")
    assert page.read_text() == "Before.\n\n<!-- numbers: some -->\none \\1 line\n<!-- end -->\n\nAfter 7.\n"
    with pytest.raises(NumbersError, match=r"page\.md has no line <!-- numbers: other -->"):
        written(page, "other")


def test_a_cell_that_differs_is_named_with_its_row_and_column() -> None:
    assert differences(TABLE, TABLE.replace("+14.2", "+14.5")) == [
        "fork, 6.12: written +14.2 %, measured +14.5 %"
    ]


def test_two_tables_one_after_the_other_are_compared_each_with_its_own_columns() -> None:
    narrow = "| cost | fitted |\n| --- | --- |\n| L2 | 10 |\n"
    both = f"{TABLE}\n{narrow}"
    assert differences(f"{narrow}\n{TABLE}", f"{narrow}\n{TABLE}") == []
    assert differences(both, both.replace("10 |", "12 |")) == ["L2, fitted: written 10, measured 12"]


def test_a_row_more_is_told() -> None:
    (difference,) = differences(TABLE, f"{TABLE}| exec | 7 | 8 |\n")
    assert "4 lines, and 5" in difference


def test_a_word_of_a_sentence_that_differs_is_shown_with_what_stands_before_it() -> None:
    (difference,) = differences(
        "That is 8 more\ninstructions a call.\n", "That is 9 more instructions a call.\n"
    )
    assert difference == "… That is: written '8', measured '9'"


def test_lines_that_are_broken_elsewhere_are_no_difference() -> None:
    assert differences("a b\nc d\n", "a\nb c d\n") == []


def test_another_order_of_tables_and_sentences_is_told() -> None:
    assert differences(f"Words.\n\n{TABLE}", f"{TABLE}\nWords.\n") != []


def test_numbers_are_written_with_thin_spaces_a_true_minus_and_their_sign() -> None:
    assert count(101086.4) == f"101{THIN}086"
    assert signed(-9957.2) == f"{MINUS}9{THIN}957"
    assert [signed(0.2), signed(-0.2), signed(4)] == ["0", "0", "+4"]
    assert [percent(1.1062), percent(0.9493), percent(0.99999)] == ["+10.6", f"{MINUS}5.1", "0.0"]


def test_a_template_is_filled_in_wrapped_and_keeps_lists_headings_and_tables() -> None:
    text = prose(
        "## {what}\nSome words\nthat belong together.\n\n- one {at[fork 6.1]}\nand more\n- two\n| a | 1 |",
        what="A heading",
        at=Lookup(lambda workload, series: f"{workload} on {series}"),
    )
    assert text == (
        "## A heading\nSome words that belong together.\n\n- one fork on 6.1 and more\n- two\n| a | 1 |\n"
    )
    assert all(len(line) < 120 for line in prose("word " * 200).splitlines())
    assert prose(f"{'word ' * 23} 101{THIN}086 ends").splitlines()[1] == f"101{THIN}086 ends"


def test_a_table_is_aligned_as_it_is_asked_for() -> None:
    assert table(("a", "b"), [("x", "")], right=True) == "| a | b |\n| --- | --: |\n| x | |\n"


def test_a_sentence_that_no_longer_holds_is_an_error(tmp_path: Path) -> None:
    measuring = Measuring(tmp_path)
    measuring.claim(True, "fork grew")
    with pytest.raises(ClaimBroken, match="fork grew"):
        measuring.claim(False, "fork grew")


def test_what_was_measured_once_is_not_measured_again(tmp_path: Path) -> None:
    texts = iter(["first", "second", "third"])
    measuring = Measuring(tmp_path)
    assert [measuring.kept(key, lambda: next(texts)) for key in ("a", "b", "a")] == [
        "first",
        "second",
        "first",
    ]
    assert Measuring(tmp_path).kept("b", lambda: next(texts)) == "second"


def test_a_kernel_or_qemu_that_is_another_one_now_is_named(tmp_path: Path) -> None:
    then = MadeWith({"debian:6.1": "6.1.0-50"}, "7.2.21", "0123")
    made_with.note("some", then, tmp_path / "noted.toml")
    made_with.note("other", then, tmp_path / "noted.toml")
    assert made_with.noted(tmp_path / "noted.toml") == {"some": then, "other": then}
    assert then.others(MadeWith({"debian:6.1": "6.1.0-56"}, "7.2.22", "0123")) == [
        "QEMU: 7.2.21 then, 7.2.22 now",
        "debian:6.1: 6.1.0-50 then, 6.1.0-56 now",
    ]


def test_an_interruption_ends_the_script_and_is_no_difference(tmp_path: Path) -> None:
    def interrupted(_: Measuring) -> str:
        raise Interrupted(what="1 of 2 trials are stored", hint="the same again")

    with pytest.raises(Interrupted):
        one(replace(SOME, text=interrupted), Measuring(tmp_path), check=True)


def test_a_block_that_differs_or_whose_sentence_is_no_longer_true_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def untrue(measuring: Measuring) -> str:
        measuring.claim(False, "fork grew")
        return ""

    now = written(ROOT / SOME.page, SOME.name)
    measuring = Measuring(tmp_path)
    assert one(replace(SOME, text=lambda _: now), measuring, check=True)
    assert not one(replace(SOME, text=lambda _: now.replace("`fork`", "`spoon`")), measuring, check=True)
    assert not one(replace(SOME, text=untrue), measuring, check=True)
    said = capsys.readouterr().out
    assert f"{SOME.name} ({SOME.page}): as measured\n{SOME.name} ({SOME.page}): differs\n" in said
    assert "spoon" in said
    assert "no longer true: fork grew" in said


def test_the_script_lists_its_blocks() -> None:
    command = [sys.executable, "docs/write_numbers.py", "--list"]
    listed = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    assert re.findall(r"^(\S+)  (?:docs/|README)", listed, re.MULTILINE) == sorted(declared())


def test_a_block_that_there_is_not_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["write_numbers.py", "six-years-matrices"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "there is no block six-years-matrices; there are: " in capsys.readouterr().err
