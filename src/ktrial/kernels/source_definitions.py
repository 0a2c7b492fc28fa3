"""What a C file of the kernel defines, and what a function is made of once the compiler has inlined it.

Nothing is compiled and no patch is read: two versions of a definition differ where their tokens do, comments
and blanks apart. The kernel's style (Documentation/process/coding-style.rst) is what tells where one ends: a
brace in the first column, or a line at the top level that ends with a semicolon.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from ktrial.model.commits import Relation
from ktrial.text_lines import lines_of


class DefinitionKind(StrEnum):
    """What is defined."""

    FUNCTION = "function"
    MACRO = "macro"
    STRUCTURE = "structure"
    """Unions and enumerations too."""
    DATA = "data"


class Key(NamedTuple):
    """What a definition is known by in its file."""

    kind: DefinitionKind
    name: str


@dataclass(frozen=True)
class Definition:
    """One definition, without comments; alternatives under `#ifdef` together."""

    text: str
    is_inline: bool = False
    """Whether it says so itself, or is a macro's: it has no code of its own."""

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Identifiers, numbers, strings and signs, in order."""
        return tuple(_TOKEN.findall(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier."""
        return frozenset(word for word in self.tokens if word[0].isalpha() or word[0] == "_")

    @cached_property
    def structures(self) -> frozenset[str]:
        """What it names as `struct NAME`, `union NAME` or `enum NAME`."""
        return frozenset(_AGGREGATE_NAMED.findall(self.text))


Definitions = Mapping[Key, Definition]
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|->|[<>=!&|+-]{1,2}=?|\S')
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)
_CONTINUED = re.compile(r"\\\n\s*")
_MACRO = re.compile(r"#\s*define\s+(\w+)")
_SYSTEM_CALL = re.compile(r"\s*SYSCALL_DEFINE\d?\(\s*(\w+)")
_AGGREGATE = re.compile(r"(?:typedef\s+|static\s+|const\s+)*(?:struct|union|enum)\s+(\w+)\s*(?:__\w+[^{]*)?$")
_AGGREGATE_NAMED = re.compile(r"\b(?:struct|union|enum)\s+(\w+)")
_TYPEDEF_NAME = re.compile(r"}\s*(\w+)\s*;\s*$")
_CALLED = re.compile(r"(\w+)\s*\(")
_DATA = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:__\w+(?:\([^)]*\))?\s*)*$")
_ATTRIBUTES = frozenset(
    {"__attribute__", "__printf", "__scanf", "__acquires", "__releases", "__must_hold", "__aligned"}
    | {"__section", "__cond_acquires", "__alloc_size", "__no_sanitize", "__diagnose_as", "__counted_by"}
)
_INLINE = re.compile(r"\b(?:__always_)?inline\b|\b__inline__?\b")
_ASSEMBLY = re.compile(
    r"^\s*(?:SYM_\w*START\w*|ENTRY)\(\s*(\w+)[^\n]*\n(.*?)^\s*(?:SYM_\w*END\w*|ENDPROC|END)\(", re.M | re.S
)


@lru_cache(maxsize=2048)
def definitions_in(text: str, *, is_assembly: bool = False) -> Definitions:
    """What a file defines; a `SYSCALL_DEFINE` is `__do_sys_NAME`."""
    if is_assembly:
        plain = _COMMENT.sub(_kept, text)
        return {
            Key(DefinitionKind.FUNCTION, name): Definition(body) for name, body in _ASSEMBLY.findall(plain)
        }
    definitions: dict[Key, Definition] = {}
    for key, chunk in _chunks(_CONTINUED.sub(" ", _COMMENT.sub(_kept, text))):
        earlier = definitions.get(key)
        is_inline = key.kind is DefinitionKind.MACRO or bool(_INLINE.search(chunk.partition("{")[0]))
        whole = f"{earlier.text}\n{chunk}" if earlier else chunk
        definitions[key] = Definition(whole, is_inline)
    return definitions


def changed(before: Definitions, after: Definitions) -> dict[Key, int]:
    """Definitions that only one of the two has, or whose tokens differ → how many tokens do."""
    sizes: dict[Key, int] = {}
    for key in before.keys() | after.keys():
        old, new = (side[key].tokens if key in side else () for side in (before, after))
        if old != new:
            counts = Counter(new)
            counts.subtract(old)
            sizes[key] = max(1, sum(map(abs, counts.values())))  # the same tokens may stand in another order
    return sizes


def _kept(match: re.Match[str]) -> str:
    """A string stays; a comment becomes a blank."""
    return match[1] or " "


def _chunks(text: str) -> Iterator[tuple[Key, str]]:
    """Each definition, with its text. Declarations alone define nothing."""
    chunk: list[str] = []
    has_body = False
    lines = lines_of(text)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("#"):
            if (macro := _MACRO.match(line)) and not has_body:
                yield Key(DefinitionKind.MACRO, macro[1]), line
            elif has_body:
                chunk.append(line)
            continue
        if not chunk and not line.strip():
            continue
        chunk.append(line)
        has_body = has_body or "{" in line
        if _ends(line, following, has_body=has_body):
            if key := _key("\n".join(chunk), has_body=has_body):
                yield key, "\n".join(chunk)
            chunk, has_body = [], False


def _ends(line: str, following: str, *, has_body: bool) -> bool:
    if line.startswith("}"):
        return True
    ending = line.rstrip()
    if not has_body:
        # `EXPORT_SYMBOL_GPL(name)` may lack its semicolon; `SYSCALL_DEFINE0(name)` has a body.
        is_call = line[:1].isupper() and ending.endswith(")") and not following.startswith("{")
        return is_call or ending.endswith((";", ":"))
    # `static inline void f(void) { }`, `struct x a = { 1 };`
    is_whole = not line[:1].isspace() and "{" in line and line.count("{") == line.count("}")
    return is_whole and ending.endswith(("}", ";"))


def _key(chunk: str, *, has_body: bool) -> Key | None:
    head, _, body = chunk.partition("{")
    if call := _SYSTEM_CALL.match(head):
        return Key(DefinitionKind.FUNCTION, f"__do_sys_{call[1]}") if has_body else None
    if not has_body:
        value = head.partition("=")
        if value[1] and (name := _DATA.search(value[0])) and "(" not in value[0]:
            return Key(DefinitionKind.DATA, name[1])
        return None
    before_value, equals, _ = head.partition("=")
    if equals and "(" not in before_value:
        name = _DATA.search(before_value)
        return Key(DefinitionKind.DATA, name[1]) if name else None
    if aggregate := _AGGREGATE.search(head.strip()):
        return Key(DefinitionKind.STRUCTURE, aggregate[1])
    if "(" not in head:
        ends = _TYPEDEF_NAME.search(body)
        return Key(DefinitionKind.STRUCTURE, ends[1]) if ends else None
    names = (name for name in _CALLED.findall(head) if name not in _ATTRIBUTES)
    function = next(names, "")
    return Key(DefinitionKind.FUNCTION, function) if function else None


# A source at one commit: what its files define, which headers they include, what a function consists of.

_INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>\n]+)>|"([^"\n]+)")', re.MULTILINE)
_INCLUDE_PLACES = ("include", "arch/x86/include", "include/uapi", "arch/x86/include/uapi")
_GENERIC = "include/asm-generic"
"""Where `<asm/NAME.h>` is made from where x86 has none of its own."""
_MOST_HEADERS = 4000
_DEPTH = 6
"""How far inlined functions and macros are followed from the function that they end up in."""


@dataclass
class SourceAt:
    """The files of one commit."""

    read: Callable[[str], bytes | None]
    """A path's content; None where there is no such file."""
    _files: dict[str, Definitions] = field(default_factory=dict)
    _texts: dict[str, str | None] = field(default_factory=dict)

    def definitions(self, path: str) -> Definitions:
        """What the file defines; nothing where there is none."""
        if path not in self._files:
            text = self.text(path)
            self._files[path] = definitions_in(text, is_assembly=path.endswith(".S")) if text else {}
        return self._files[path]

    def text(self, path: str) -> str | None:
        """The file's content; None where there is none."""
        if path not in self._texts:
            content = self.read(path)
            self._texts[path] = None if content is None else content.decode("utf-8", "replace")
        return self._texts[path]

    def headers(self, paths: Iterable[str]) -> tuple[str, ...]:
        """All headers of the source that these files include, directly or through others."""
        headers: dict[str, None] = {}
        waiting = list(paths)
        while waiting and len(headers) < _MOST_HEADERS:
            path = waiting.pop()
            for system, beside in _INCLUDE.findall(self.text(path) or ""):
                header = self._header(path, system or beside, is_beside=bool(beside))
                if header and header not in headers:
                    headers[header] = None
                    waiting.append(header)
        return tuple(headers)

    def _header(self, path: str, name: str, *, is_beside: bool) -> str | None:
        places = [str(PurePosixPath(path).parent)] if is_beside else []
        places += _INCLUDE_PLACES
        candidates = [_joined(place, name) for place in places]
        if name.startswith("asm/"):
            candidates.append(_joined(_GENERIC, name.removeprefix("asm/")))
        return next((place for place in candidates if self.text(place) is not None), None)


def _joined(place: str, name: str) -> str:
    parts: list[str] = []
    for part in (*PurePosixPath(place).parts, *PurePosixPath(name).parts):
        if part == ".." and parts:
            parts.pop()
        elif part not in {".", ".."}:
            parts.append(part)
    return "/".join(parts)


Place = tuple[str, Key]
"""A file, and what is defined there."""


@dataclass(frozen=True)
class InlinedSource:
    """A source file with the headers that it includes: what of them ends up in a function."""

    source: SourceAt
    path: str
    headers: tuple[str, ...]
    compiled: Collection[str] = frozenset()
    """Names of the functions that the kernel has code of its own for; empty where they are not known."""

    @cached_property
    def _by_word(self) -> dict[str, list[Place]]:
        places: dict[str, list[Place]] = {}
        for path in (self.path, *self.headers):
            for key in self.source.definitions(path):
                places.setdefault(key.name, []).append((path, key))
        return places

    def parts(self, function: str) -> dict[Place, Relation]:
        """The function's own definition, and what is inlined into it or used by that; empty where it is not
        defined here.
        """
        own = next(
            (
                (path, key)
                for path, key in self._by_word.get(function, ())
                if key.kind is DefinitionKind.FUNCTION
            ),
            None,
        )
        if own is None:
            return {}
        parts: dict[Place, Relation] = {own: Relation.OWN}
        waiting = [own]
        for _ in range(_DEPTH):
            following: list[Place] = []
            for path, key in waiting:
                user = self.source.definitions(path)[key]
                for word in user.words:
                    for place in self._by_word.get(word, ()):
                        relation = self._relation(place, user)
                        if relation and place not in parts:
                            parts[place] = relation
                            following += [place] if relation is Relation.INLINED else []
            waiting = following
        return parts

    def _relation(self, place: Place, user: Definition) -> Relation | None:
        """How what names the definition has it; None: it calls it, or names something else."""
        path, key = place
        if key.kind is DefinitionKind.STRUCTURE:
            is_type = self.source.definitions(path)[key].text.startswith("typedef")
            return Relation.STRUCTURE if is_type or key.name in user.structures else None
        if key.kind is DefinitionKind.DATA:
            return Relation.DATA
        is_inlined = self.source.definitions(path)[key].is_inline
        if not is_inlined and path == self.path and self.compiled:
            is_inlined = key.name not in self.compiled
        return Relation.INLINED if is_inlined else None
