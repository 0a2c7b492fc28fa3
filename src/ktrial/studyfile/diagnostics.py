"""Collects what is wrong with a study, so that one run names all of it, in the order of the file.

Where each key stands in the TOML text is found here too: tomllib keeps no positions.
"""

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, TypeVar, get_args, get_origin

import tree_sitter_toml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from tree_sitter import Language, Node, Parser

from ktrial.model.base import Model, StudyFile, keys_of
from ktrial.studyfile.errors import OptionMistake, StudyMistake
from ktrial.studyfile.tables import StudyTable

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the root: `("workloads", 2, "name")`."""


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


class StudySource:
    """Where a study came from: a file with its text, or a command line whose options stand for keys."""

    def __init__(self, name: str, text: str = "", options: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._text = text
        self._options = options or {}

    @property
    def of_options(self) -> bool:
        """Whether it is a command line."""
        return bool(self._options)

    def describe(self, path: KeyPath) -> tuple[int, str]:
        """The line (0 where there is none) and what a message calls the place: key, or option."""
        key = key_of(path)
        for start, option in self._options.items():
            if key.startswith(start):
                return 0, option
        return self._line(path), key

    def _line(self, path: KeyPath) -> int:
        if not self._text:
            return 0
        # Only a study with a mistake needs the parser that keeps positions.
        return Positions(self._text).line(path) or 0


class Mistakes:
    """The mistakes found so far in one study."""

    def __init__(self, source: StudySource, data: Mapping[str, Any]) -> None:
        self._source = source
        self._data = data
        self._found: list[tuple[int, str, str]] = []
        self._left_out: list[KeyPath] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def leave_out(self, path: KeyPath) -> None:
        """What is there was refused, and is not read: nothing around it or in it is a mistake of its own."""
        self._left_out.append(path)

    def add(self, path: KeyPath, problem: str) -> None:
        """Note one mistake."""
        if any(path[: len(out)] == out[: len(path)] for out in self._left_out):
            return
        line, place = self._source.describe(path_in(path, self._data))
        entry = (line, place, problem)
        if entry not in self._found:
            self._found.append(entry)

    def wrong(self, path: KeyPath, value: object, allowed: str) -> None:
        """Note a value that is not allowed."""
        self.add(path, f"found {shown(value)}; allowed: {allowed}")

    def unknown(self, path: KeyPath, kind: str, name: str, allowed: Iterable[str]) -> None:
        """Note a name that is not one of `allowed`."""
        self.add(path, unknown(kind, name, allowed))

    def raise_any(self) -> None:
        """Raises StudyMistake where something was found."""
        ordered = sorted(self._found, key=lambda entry: entry[0])
        mistake = OptionMistake if self._source.of_options else StudyMistake
        if len(ordered) == 1:
            line, place, problem = ordered[0]
            raise mistake(f"{self._where(line, place)}: {problem}")
        if ordered:
            parts = ((f"line {line}" if line else "", place, text) for line, place, text in ordered)
            lines = (f"\n  {': '.join(filter(None, line))}" for line in parts)
            where = f" on the {self._source.name}" if self._source.of_options else ""
            source = "" if self._source.of_options else f"{self._source.name}: "
            raise mistake(f"{source}{len(ordered)} mistakes{where}:{''.join(lines)}")

    def _where(self, line: int, place: str) -> str:
        if self._source.of_options and place.startswith("-"):
            return place  # an option needs no other name
        name = f"{self._source.name}:{line}" if line else self._source.name
        return ": ".join(part for part in (name, place) if part)


def path_in(path: KeyPath, data: Any) -> KeyPath:
    """As much of the path as the file has: a shorthand has no keys, and pydantic adds names for unions."""
    existing: KeyPath = ()
    for part in path:
        is_there = (
            part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        )
        if not is_there:
            break
        data = data[part]
        existing = (*existing, part)
    return existing


def key_of(path: KeyPath) -> str:
    """The path as a study file's reader would write it: `factors."vm.swappiness".levels[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            text += f".{key}" if text else key
    return text


_LISTED_BY = {"workload": "ktrial workload list"}
"""Kinds of which there are many, and the command that lists them."""
_MANY = 20


def unknown(kind: str, name: str, allowed: Iterable[str]) -> str:
    """`there is no workload "hackbnch"; did you mean "hackbench"? All of them: ktrial workload list`."""
    choices = list(allowed)
    near = difflib.get_close_matches(name, choices, n=1)
    guess = f'; did you mean "{near[0]}"?' if near else "."
    if kind in _LISTED_BY and len(choices) > _MANY:
        list_of_all = f" All of them: {_LISTED_BY[kind]}"
    else:
        list_of_all = f" There are: {', '.join(choices)}" if choices else " There are none"
    return f"there is no {kind} {shown(name)}{guess}{list_of_all}"


def shown(value: Any) -> str:
    """A value as TOML has it, on one short line, control characters escaped."""
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else _number(value)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"


def _number(value: object) -> str:
    # str() of an int refuses beyond 4300 digits, and tomllib reads hexadecimal of any length.
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a number of {value.bit_length()} bits"
    return str(value)


# Reads the file's tables with pydantic, and says in ktrial's own words what is wrong with them.


def read_tables(data: dict[str, Any], context: StudyFile, mistakes: Mistakes) -> StudyTable | None:
    """The study's tables; None where so much is wrong that the rest says nothing.

    A value that is refused is left out, so that what else is wrong is found as well: `mistakes` holds all.
    """
    if not {"factors", "search"} & data.keys():
        allowed = StudyTable.model_fields["factors"].description
        mistakes.add(("factors",), f'the key "factors" is missing: {allowed}')
        _leave_out(("factors",), mistakes)
    try:
        return StudyTable.model_validate(data, context=context, by_alias=True, by_name=False)
    except ValidationError as error:
        _note(error, StudyTable, (), mistakes)
        sound = _without([path_in(details["loc"], data) for details in error.errors()], data, mistakes)
    try:
        return (
            StudyTable.model_validate(sound, context=context, by_alias=True, by_name=False) if sound else None
        )
    except ValidationError:  # one refused value was another one's reason
        return None


def _without(paths: list[KeyPath], data: dict[str, Any], mistakes: Mistakes) -> dict[str, Any] | None:
    """The data without what stands there; None where that would move or empty what is around it."""
    sound = copy.deepcopy(data)
    for path in sorted(set(paths), key=len, reverse=True):
        around: Any = sound
        for part in path[:-1]:
            around = around[part]
        if not path or not isinstance(around, dict):
            return None
        del around[path[-1]]
        _leave_out(path, mistakes)
    if not sound.get("factors", True):
        del sound["factors"]
        _leave_out(("factors",), mistakes)
    return sound


def _leave_out(path: KeyPath, mistakes: Mistakes) -> None:
    """A factor that is not read may have been the kernel."""
    mistakes.leave_out(path)
    if path[0] == "factors":
        mistakes.leave_out(("machine", "kernel"))


_Table = TypeVar("_Table", bound=Model)


def read_table(
    table: type[_Table], data: Any, path: KeyPath, mistakes: Mistakes, below: KeyPath = ()
) -> _Table | None:
    """The table that stands at `path`; None where something is wrong, which `mistakes` then holds.

    `below`: where in the file a value stands below its key.
    """
    try:
        return table.model_validate(data, context=StudyFile(), by_alias=True, by_name=False)
    except ValidationError as error:
        _note(error, table, path, mistakes, below)
        return None


def _note(
    error: ValidationError, table: type[BaseModel], root: KeyPath, mistakes: Mistakes, below: KeyPath = ()
) -> None:
    """What pydantic refused of a table that stands at `root`, in ktrial's own words."""
    for details in error.errors():
        inner, field = _place(table, details["loc"])
        path = (*root, *details["loc"], *(below if field else ()))
        allowed = (field.description or "") if field else f"a table with {', '.join(keys_of(inner))}"
        value = details["input"]
        match details["type"]:
            case "extra_forbidden":
                mistakes.unknown(path, "key", str(details["loc"][-1]), keys_of(inner))
            case "missing":
                mistakes.add(path, f'the key "{details["loc"][-1]}" is missing: {allowed}')
            case "value_error":
                mistakes.add(path, f"found {shown(value)}: {details['ctx']['error']}")
            case "literal_error" | "enum" if field and isinstance(value, str):
                mistakes.unknown(path, str(details["loc"][-1]), value, _choices(field.annotation))
            case _:
                mistakes.wrong(path, value, allowed)


def _place(table: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel], FieldInfo | None]:
    """The table that the location lies in, and its field; None where it is the table itself."""
    field: FieldInfo | None = None
    parts = iter(loc)
    for part in parts:
        field = {info.serialization_alias or name: info for name, info in table.model_fields.items()}.get(
            str(part)
        )
        if field and (below := model_in(field.annotation)):
            table = below
            if get_origin(field.annotation) in {dict, list, tuple} and next(parts, None) is not None:
                field = None
        elif field:
            break
    return table, field


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of `Disk | None`, `dict[str, KernelTable]` or `tuple[MetricRule, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def _choices(annotation: Any) -> list[str]:
    """What an enumeration or a Literal allows, also inside `Literal[…] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [choice.value for choice in annotation]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for inner in get_args(annotation) for choice in _choices(inner)]
