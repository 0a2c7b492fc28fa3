"""What differs between a block as written and as measured: cells of tables, words of sentences."""

from collections.abc import Iterator
from difflib import SequenceMatcher

_AROUND = 4
"""Words of a sentence that are shown before a difference."""


def differences(written: str, made: str) -> list[str]:
    """One line a difference; none where the texts say the same, however their lines are broken."""
    old, new = _parts(written), _parts(made)
    if [kind for kind, _ in old] != [kind for kind, _ in new]:
        return ["the block has other tables or paragraphs than its declaration makes"]
    return [
        line
        for (kind, before), (_, after) in zip(old, new, strict=True)
        for line in (_of_tables(before, after) if kind == "table" else _of_words(before, after))
    ]


def _parts(text: str) -> list[tuple[str, list[str]]]:
    """Tables (their lines) and paragraphs (their words), in order; a blank line ends either."""
    parts: list[tuple[str, list[str]]] = []
    begins = True
    for line in text.splitlines():
        kind = "table" if line.startswith("|") else "words"
        if not line.strip():
            begins = True
            continue
        if begins or parts[-1][0] != kind:
            parts.append((kind, []))
        begins = False
        parts[-1][1].extend([line] if kind == "table" else line.split(" "))
    return [(kind, [piece for piece in pieces if piece]) for kind, pieces in parts]


def _of_tables(old: list[str], new: list[str]) -> Iterator[str]:
    before, after = ([_cells(line) for line in lines] for lines in (old, new))
    if [len(row) for row in before] != [len(row) for row in after]:
        yield f"the table has {len(before)} lines, and {len(after)} where it is made anew, or other columns"
        return
    heads = after[0]
    for was, now in zip(before, after, strict=True):
        for head, one, other in zip(heads, was, now, strict=True):
            if one != other:
                yield f"{now[0]}, {head}: written {one}, measured {other}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _of_words(old: list[str], new: list[str]) -> Iterator[str]:
    for what, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            place = " ".join(old[max(0, first - _AROUND) : first])
            yield f"… {place}: written {' '.join(old[first:last])!r}, measured {' '.join(new[start:end])!r}"
