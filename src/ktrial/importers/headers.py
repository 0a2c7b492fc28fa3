"""Headers as people leave them: columns without a name, names given twice, tables that stand side by side."""

from collections.abc import Sequence

from ktrial.program_outputs.reading import number

Lines = list[tuple[int, list[str]]]
"""Line numbers with the cells below the header."""
ROW = "row"
"""What the first column is called that has no name, as R and pandas write it."""
_FEWEST = 2
"""Columns of a table that stands beside another one, or rows that are numbered."""


def with_names(header: list[str], below: Lines) -> tuple[list[str], Lines, list[str]]:
    """The header with a name for each column that has cells, the cells, and how it was read.

    A name that is still empty is for the caller to refuse.
    """
    remarks: list[str] = []
    header, below = _without_empty_end(header, below)
    header, below, remark = _with_first_name(header, below)
    remarks += [remark] if remark else []
    header, below, remark = _one_below_the_other(header, below)
    remarks += [remark] if remark else []
    return _without_namesakes(header), below, remarks


def _without_empty_end(header: list[str], below: Lines) -> tuple[list[str], Lines]:
    """Without what a delimiter at the end of the lines leaves: columns with neither name nor cell."""
    width = len(header)
    while (
        width > 1
        and not header[width - 1]
        and not any(cell.strip() for _, cells in below for cell in cells[width - 1 :])
    ):
        width -= 1
    if below and all(len(cells) == width + 1 and not cells[-1].strip() for _, cells in below):
        return header[:width], [(line, cells[:width]) for line, cells in below]
    if width == len(header):
        return header, below
    return header[:width], [
        (line, cells[:width] if len(cells) == len(header) else cells) for line, cells in below
    ]


def _with_first_name(header: list[str], below: Lines) -> tuple[list[str], Lines, str]:
    """Names of rows, which R writes below no name, or with none above them; numbers of rows are no data."""
    firsts = [cells[0].strip() for _, cells in below]
    names_rows = len(firsts) >= _FEWEST and len(set(firsts)) == len(firsts)
    names_rows = names_rows and (firsts[0] == "1" or all(number(cell) is None for cell in firsts))
    if names_rows and all(len(cells) == len(header) + 1 for _, cells in below) and all(header):
        header = ["", *header]
    if (
        len(header) < _FEWEST
        or header[0]
        or not all(header[1:])
        or any(len(cells) != len(header) for _, cells in below)
    ):
        return header, below, ""
    numbers = [str(at) for at in range(len(firsts) + 1)]
    if len(firsts) >= _FEWEST and firsts in (numbers[:-1], numbers[1:]):
        return (
            header[1:],
            [(line, cells[1:]) for line, cells in below],
            "the rows' numbers in front are not read",
        )
    name = ROW if ROW not in header else f"{ROW} name"
    return [name, *header[1:]], below, f"the first column has no name: it is called {name}"


def _one_below_the_other(header: list[str], below: Lines) -> tuple[list[str], Lines, str]:
    """Tables side by side, whose header repeats."""
    width = _width_of_first(header)
    if not width or any(len(cells) != len(header) for _, cells in below):
        return header, below, ""
    blocks = [
        [
            (line, cells[at : at + width])
            for line, cells in below
            if any(cell.strip() for cell in cells[at : at + width])
        ]
        for at in range(0, len(header), width)
    ]
    if any(not block or _kinds(block) != _kinds(blocks[0]) for block in blocks):
        return header, below, ""
    count = len(blocks)
    return header[:width], [row for block in blocks for row in block], f"{count} tables side by side are one"


def _width_of_first(header: Sequence[str]) -> int:
    """Columns of the first table; 0 where there is but one."""
    for width in range(_FEWEST, len(header) // 2 + 1):
        others = [list(header[at : at + width]) for at in range(width, len(header), width)]
        first = list(header[:width])
        if all(first) and all(other == first for other in others):
            return width if len(header) % width == 0 else 0
    return 0


def _kinds(block: Lines) -> list[bool]:
    """Of each column whether it has numbers alone."""
    return [
        all(number(cell) is not None for cell in column)
        for column in zip(*(cells for _, cells in block), strict=True)
    ]


def _without_namesakes(header: Sequence[str]) -> list[str]:
    """The second `time` is called `time (2)`."""
    return [
        f"{name} ({header[:at].count(name) + 1})" if name and name in header[:at] else name
        for at, name in enumerate(header)
    ]
