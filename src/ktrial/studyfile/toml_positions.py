"""Where in a TOML text each key and each element of a list stands: tomllib keeps no positions."""

import tomllib
from collections.abc import Iterator

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from ktrial.studyfile.key_path import KeyPath


class Positions:
    """The lines of a TOML text, by path. The text must be TOML: tomllib has read it before."""

    def __init__(self, text: str) -> None:
        tree = Parser(Language(tree_sitter_toml.language())).parse(text.encode())
        self._lines: dict[KeyPath, int] = {}
        self._elements: dict[KeyPath, int] = {}
        self._document(tree.root_node)

    def line(self, path: KeyPath) -> int | None:
        """The line, from 1, of the path or of the nearest thing around it; None where nothing is known."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def _document(self, document: Node) -> None:
        for node in document.named_children:
            if node.type == "pair":
                self._pair(node, ())
            elif node.type in {"table", "table_array_element"}:
                self._table(node)

    def _table(self, node: Node) -> None:
        """`[a.b]` or `[[a.b]]`, with the pairs below it."""
        header, *pairs = (child for child in node.named_children if child.type != "comment")
        *around, last = _key_parts(header)
        base: KeyPath = ()
        for part in around:
            base = self._inside_newest((*base, part))
        base = (*base, last)
        if node.type == "table_array_element":
            self._note(base, node)
            base = self._new_element(base)
        self._note(base, node)
        for pair in pairs:
            self._pair(pair, base)

    def _inside_newest(self, path: KeyPath) -> KeyPath:
        """In an array of tables, a further header means the newest element."""
        return (*path, self._elements[path]) if path in self._elements else path

    def _new_element(self, path: KeyPath) -> KeyPath:
        self._elements[path] = self._elements.get(path, -1) + 1
        return (*path, self._elements[path])

    def _pair(self, node: Node, base: KeyPath) -> None:
        key, *values = (child for child in node.named_children if child.type != "comment")
        path = base
        for part in _key_parts(key):
            path = (*path, part)
            self._note(path, node)
        for value in values:
            self._value(value, path)

    def _value(self, node: Node, path: KeyPath) -> None:
        if node.type == "array":
            elements = (child for child in node.named_children if child.type != "comment")
            for index, element in enumerate(elements):
                self._note((*path, index), element)
                self._value(element, (*path, index))
        elif node.type == "inline_table":
            for pair in node.named_children:
                if pair.type == "pair":
                    self._pair(pair, path)

    def _note(self, path: KeyPath, node: Node) -> None:
        self._lines.setdefault(path, node.start_point.row + 1)


def _key_parts(node: Node) -> Iterator[str]:
    """The parts of a bare, quoted or dotted key, unquoted."""
    if node.type == "dotted_key":
        for child in node.named_children:
            yield from _key_parts(child)
    elif node.type in {"bare_key", "quoted_key"} and node.text is not None:
        yield next(iter(tomllib.loads(f"{node.text.decode()} = 0")))
