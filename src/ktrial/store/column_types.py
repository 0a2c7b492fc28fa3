"""What columns hold, the same in every database: text with any character, numbers that are none, JSON.

SQLite keeps what it is given. PostgreSQL takes no NUL in text, holds numbers to 32 bits and names to their
length unless told otherwise, and its own JSON knows neither NaN nor infinity: there JSON is kept as text.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Float, Integer, String, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

POSTGRESQL = "postgresql"
whole_number = Integer().with_variant(BigInteger(), POSTGRESQL)
"""64 bits; in SQLite also what a table's rows are numbered by."""
_ESCAPE = "\x1a"
_ESCAPED = {"\x1a": "\x1aS", "\x00": "\x1a0"}
_NONE = "nan"
_Processor = Callable[[Any], Any] | None


class AnyText(TypeDecorator[str]):
    """Text of any length, in which NUL may stand: PostgreSQL keeps it as two other characters (U+001A, 0)."""

    impl = Text
    cache_ok = True

    def __init__(self, usual: int | None = None) -> None:
        """`usual`: how long it usually is; nothing longer is refused."""
        super().__init__()
        self.usual = usual

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Without a length in PostgreSQL, which would hold to it."""
        plain = self.usual is None or dialect.name == POSTGRESQL
        return dialect.type_descriptor(Text() if plain else String(self.usual))

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """None where nothing has to be done."""
        return _without_nul if dialect.name == POSTGRESQL else None

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """None where nothing has to be done."""
        return with_nul if dialect.name == POSTGRESQL else None


class Json(TypeDecorator[Any]):
    """A value as JSON text, NaN and infinity included (as Python's `json` writes them)."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text in PostgreSQL."""
        return dialect.type_descriptor(Text() if dialect.name == POSTGRESQL else JSON())

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """What turns a value into text."""
        return json.dumps if dialect.name == POSTGRESQL else super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """What turns text into a value."""
        return json.loads if dialect.name == POSTGRESQL else super().result_processor(dialect, coltype)


class AnyNumber(TypeDecorator[float]):
    """A float of 64 bits, NaN included: SQLite, which makes NULL of it, keeps it as the text `nan`."""

    impl = Float
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> _Processor:
        """None where nothing has to be done."""
        return None if dialect.name == POSTGRESQL else _nan_as_text

    def result_processor(self, dialect: Dialect, coltype: object) -> _Processor:
        """None where nothing has to be done."""
        return None if dialect.name == POSTGRESQL else _nan_of_text


def _without_nul(text: str | None) -> str | None:
    if text is None or (_ESCAPE not in text and "\x00" not in text):
        return text
    return "".join(_ESCAPED.get(one, one) for one in text)


def with_nul(text: str | None) -> str | None:
    """What was stored as `text` in PostgreSQL."""
    if text is None or _ESCAPE not in text:
        return text
    return text.replace("\x1a0", "\x00").replace("\x1aS", "\x1a")


def _nan_as_text(value: float | None) -> float | str | None:
    return _NONE if value is not None and math.isnan(value) else value


def _nan_of_text(value: Any) -> Any:
    return math.nan if value == _NONE else value
