"""The golden vectors, which `crates/wire/tests/golden_vectors.rs` reads too."""

import json
from typing import Any

from tests.support.places import ROOT

from ktrial.model.base import Model

_FOLDER = ROOT / "crates" / "wire" / "vectors"


class FrameContent(Model):
    """A frame that is in a stream."""

    kind: int
    payload: str


class FrameVector(Model):
    """A stream, the frames in it, and what is wrong with the first one that is damaged."""

    name: str
    hex: str
    frames: tuple[FrameContent, ...]
    damage: str | None
    position: int | None

    @property
    def stream(self) -> bytes:
        """What the guest writes."""
        return bytes.fromhex(self.hex)


def read(name: str) -> Any:
    """The JSON in crates/wire/vectors/`name`.json."""
    return json.loads((_FOLDER / f"{name}.json").read_text())


def frames() -> list[FrameVector]:
    """All streams, good and damaged."""
    return [FrameVector.model_validate(vector) for vector in read("frames")]
