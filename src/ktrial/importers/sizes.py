"""Tables of sizes: `size x algorithm` is compared size by size, not across sizes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ktrial.importers.columns import Columns, is_numeric
from ktrial.importers.protocol import SourceFile

_Rows = Sequence[Mapping[str, str]]


def split_by_sizes(columns: Columns, rows: _Rows, file: SourceFile) -> Columns:
    """The columns, those of numbers that are crossed with what is compared among those that split the table.

    Crossed: most rows are of a level that several groups have, and of a group that has several levels.
    `--group-by` says otherwise. Tables of knobs say themselves what is compared.
    """
    if columns.knob or file.choices.group_by:
        return columns
    numbers = [name for name in columns.groups if is_numeric(name, rows)]
    words = tuple(name for name in columns.groups if name not in numbers)
    sizes = tuple(name for name in numbers if _is_crossed(name, words, rows))
    if not sizes:
        return columns
    return replace(
        columns,
        groups=tuple(name for name in columns.groups if name not in sizes),
        families=(*columns.families, *sizes),
        sizes=sizes,
    )


def _is_crossed(name: str, groups: Sequence[str], rows: _Rows) -> bool:
    of_level: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    of_group: dict[tuple[str, ...], set[str]] = defaultdict(set)
    labels = [tuple(row[group] for group in groups) for row in rows]
    for row, label in zip(rows, labels, strict=True):
        of_level[row[name]].add(label)
        of_group[label].add(row[name])
    crossed = sum(
        len(of_level[row[name]]) > 1 and len(of_group[label]) > 1
        for row, label in zip(rows, labels, strict=True)
    )
    return 2 * crossed >= len(rows)
