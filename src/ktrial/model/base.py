"""What all plain data has in common: frozen, strict about unknown keys, to and from JSON."""

import hashlib
import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

StoredInteger = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A whole number that stores keep in a column of their own: 64 bits in all databases."""


class Model(BaseModel):
    """Immutable plain data."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def digest(data: object) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of `data` (sorted keys, no spaces)."""
    plain = data.model_dump(mode="json") if isinstance(data, BaseModel) else data
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
