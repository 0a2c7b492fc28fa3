"""What all plain data has in common: frozen, strict about unknown keys, to and from JSON and study files."""

import hashlib
import json
import re
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializationInfo,
    Strict,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from ktrial.model.notation import SMALLEST_MEMORY_MIB, memory_mib, plain_text, seconds

StoredInteger = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A whole number that stores keep in a column of their own: 64 bits in all databases."""


class Model(BaseModel):
    """Immutable plain data.

    An alias is the key of a study file that a field is read from and written to; stores and Python have the
    field's name.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="strings",
        validate_by_name=True,
        validate_by_alias=False,
    )


def digest(data: object) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of `data` (sorted keys, no spaces)."""
    plain = data.model_dump(mode="json", by_alias=False) if isinstance(data, BaseModel) else data
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


# A table of a study file is read into the model that everything else uses, and written from it. A field with
# a description is a key of the file; the description is what messages and documentation say is allowed.


class StudyFile(NamedTuple):
    """The context in which a study file is read or written: pydantic hands it to what follows."""

    machine_model: Callable[[str], object] = str
    """The modelled machine that a name or a file stands for."""


def keys_of(table: type[BaseModel]) -> list[str]:
    """The keys that a table may have, in their order; its name is the first."""
    keys = [
        field.serialization_alias or name for name, field in table.model_fields.items() if field.description
    ]
    return sorted(keys, key=lambda key: key != "name")


WholeNumber = Annotated[int, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Flag = Annotated[bool, Strict()]


def not_allowed() -> PydanticCustomError:
    """The error of a value that the field's description does not allow."""
    return PydanticCustomError("not_allowed", "see the description")


def in_file(check: Callable[[Any], Any]) -> AfterValidator:
    """`check` is made of values in files alone. It raises ValueError, which says what is allowed."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        return check(value) if isinstance(info.context, StudyFile) else value

    return AfterValidator(validate)


def before_in_file(read: Callable[[Any], Any]) -> BeforeValidator:
    """What files have in another form. `read` raises ValueError, or `not_allowed()`."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        return read(value) if isinstance(info.context, StudyFile) else value

    return BeforeValidator(validate)


def quantity(
    read: Callable[[Any], Any], write: Callable[[Any], object], written: type | UnionType = str
) -> tuple[BeforeValidator, PlainSerializer]:
    """What files have as text with its unit, or as a number in another unit.

    `read` raises ValueError, which says what is allowed, or `not_allowed()`.
    """

    def from_file(value: object) -> Any:
        if isinstance(value, bool) or not isinstance(value, written):
            raise not_allowed()
        return read(value)

    def serialize(value: Any, info: SerializationInfo) -> Any:
        return write(value) if isinstance(info.context, StudyFile) else value

    return before_in_file(from_file), PlainSerializer(serialize)


def _refused(_value: object) -> object:
    raise PydanticCustomError("extra_forbidden", "no key")


NO_KEY = before_in_file(_refused)
"""A field that follows from others: no study file says it."""


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", plain_text(text)):
        raise not_allowed()
    return text


def _memory(smallest: int) -> tuple[BeforeValidator, PlainSerializer]:
    def write(mib: int | None) -> str:
        return f"{mib}M" if mib else ""

    return quantity(lambda text: memory_mib(plain_text(text), smallest=smallest), write)


Text = Annotated[str, in_file(plain_text)]
Prose = Annotated[str, in_file(lambda text: plain_text(" ".join(text.split())) if text else text)]
"""Of several lines in a file, and of one then."""
Name = Annotated[str, in_file(_name)]
MemoryMiB = Annotated[int, *_memory(SMALLEST_MEMORY_MIB)]
"""`"512M"` in files."""
LimitMiB = Annotated[int, *_memory(1)]
"""As MemoryMiB, from 1M on."""
Seconds = Annotated[float, *quantity(seconds, lambda length: f"{length:g} s" if length else "")]
"""`"10 min"` in files."""
