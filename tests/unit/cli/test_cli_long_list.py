"""A table of hundreds of rows is laid out at once, and says the same as a short one."""

import io

from rich.cells import cell_len
from rich.console import Console

from ktrial.cli.render.table import print_table

HEADINGS = ("id", "study", "question")


def printed(rows: list[tuple[str, str, str]], width: int) -> list[str]:
    text = io.StringIO()
    print_table(HEADINGS, rows, Console(file=text, width=width, markup=False, highlight=False))
    return text.getvalue().splitlines()


def test_a_long_table_is_laid_out_like_a_short_one() -> None:
    rows = [(str(number), f"größe-{number % 7}", "" if number % 3 else "漢字?") for number in range(199)]
    rows.append(("200", "the longest name of all", ""))
    short = printed(rows[-30:], 80)
    long = printed(rows * 2, 80)
    assert len(long) == 1 + 2 * len(rows)
    assert [line.rstrip() for line in short[1:]] == long[-30:]


def test_a_long_row_is_cut_at_the_width() -> None:
    rows = [("1", "quick", "漢" * 60)] * 300
    lines = printed(rows, 41)
    assert {cell_len(line) for line in lines[1:]} <= {40, 41}
    assert all(line.endswith("…") for line in lines[1:])
