"""Frames from the agent: checked bytes in, typed payloads out (docs/architecture/guest-protocol.md)."""

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple, NoReturn

from pydantic import ValidationError

from ktrial.model.base import Model
from ktrial.target import Failure, StepResult
from ktrial.target.errors import FrameError

MAGIC = b"KTF1"
MAX_PAYLOAD = 128 << 20
"""The longest payload in bytes: a collected file of 64 MiB in base64, with room to spare."""
_MAX_SHORT = 1 << 20
"""The longest payload of what is not a step's result."""
_KIND_AND_LENGTH = struct.Struct("<BI")
_CRC = struct.Struct("<I")
_HEADER_SIZE = len(MAGIC) + _KIND_AND_LENGTH.size


class FrameKind(IntEnum):
    """What a frame says."""

    READY = 1
    RESULT = 2
    DONE = 3
    FAILED = 4
    LOG = 5


class Frame(NamedTuple):
    """One frame; the payload is JSON in UTF-8."""

    kind: FrameKind
    payload: bytes


class BootFailure(Model):
    """Something that the agent could not set up at boot; the system runs without it."""

    what: str
    """What was tried: `mount /sys/kernel/debug`, `module /lib/…/ext4.ko`, `loopback`."""
    failure: Failure


class Ready(Model):
    """The system is up; the guest stops at the snapshot point."""

    protocol: int
    release: str
    """`uname -r`."""
    agent: str
    """The agent's version."""
    cpus: int
    """CPUs online."""
    memory_kib: int
    """`MemTotal`."""
    modules: tuple[str, ...]
    """Names of the modules loaded at boot, in their order."""
    command_line: str
    failures: tuple[BootFailure, ...]
    tsc: int = 0
    """The time-stamp counter just before the snapshot point: in exact mode QEMU's virtual clock in ns."""


class Done(Model):
    """Every step was reached."""

    steps: int


class Failed(Model):
    """The agent itself could not go on."""

    text: str


class Log(Model):
    """For a person."""

    text: str


Payload = Ready | StepResult | Done | Failed | Log
_PAYLOADS: dict[FrameKind, type[Ready | StepResult | Done | Failed | Log]] = {
    FrameKind.READY: Ready,
    FrameKind.RESULT: StepResult,
    FrameKind.DONE: Done,
    FrameKind.FAILED: Failed,
    FrameKind.LOG: Log,
}


def encode(frame: Frame) -> bytes:
    """The frame's bytes. Raises FrameError where the payload is longer than MAX_PAYLOAD."""
    if len(frame.payload) > MAX_PAYLOAD:
        _damaged(0, "length", f"a payload of {len(frame.payload)} bytes; at most {MAX_PAYLOAD} are allowed")
    checked = _KIND_AND_LENGTH.pack(frame.kind, len(frame.payload)) + frame.payload
    return MAGIC + checked + _CRC.pack(zlib.crc32(checked))


def payload_of(frame: Frame) -> Payload:
    """The frame's payload, checked. Raises FrameError where it is not what its kind says."""
    try:
        return _PAYLOADS[frame.kind].model_validate_json(frame.payload)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the payload"
        reason = f"{frame.kind.name.lower()}: {place}: {first['msg']}"
        raise FrameError(problem=reason, position=None, damage="payload") from error


class Decoder:
    """Takes frames out of a stream that arrives in pieces of any size."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._position = 0
        self._error: FrameError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes.

        Raises FrameError (`position`: the damaged frame's first byte in the stream; `damage`: one of
        `magic`, `kind`, `length`, `crc`) where a frame is damaged. Frames before it are returned first: the
        error is raised by the next call then, and by every call from then on.
        """
        self._pending += data
        frames: list[Frame] = []
        try:
            while self._error is None and (frame := self._next_frame()) is not None:
                frames.append(frame)
        except FrameError as error:
            self._error = error
        if self._error is not None and not frames:
            raise self._error
        return frames

    def finish(self) -> None:
        """Say that the stream has ended. Raises FrameError where it ends inside a frame (`truncated`)."""
        if self._error is not None:
            raise self._error
        if self._pending:
            _damaged(self._position, "truncated", f"it ends early, after {len(self._pending)} bytes")

    def _next_frame(self) -> Frame | None:
        pending = self._pending
        if not MAGIC.startswith(pending[: len(MAGIC)]):
            start = bytes(pending[: len(MAGIC)])
            _damaged(self._position, "magic", f"it begins with {start!r}, not with {MAGIC!r}")
        if len(pending) > len(MAGIC) and pending[len(MAGIC)] not in set(FrameKind):
            _damaged(self._position, "kind", f"its kind is {pending[len(MAGIC)]}, which is none")
        if len(pending) < _HEADER_SIZE:
            return None
        kind, length = _KIND_AND_LENGTH.unpack_from(pending, len(MAGIC))
        longest = MAX_PAYLOAD if kind == FrameKind.RESULT else _MAX_SHORT
        if length > longest:
            _damaged(self._position, "length", f"{length} bytes of payload; at most {longest} are allowed")
        end = _HEADER_SIZE + length
        if len(pending) < end + _CRC.size:
            return None
        return self._take(FrameKind(kind), end)

    def _take(self, kind: FrameKind, end: int) -> Frame:
        (written,) = _CRC.unpack_from(self._pending, end)
        payload = bytes(self._pending[_HEADER_SIZE:end])
        computed = zlib.crc32(payload, zlib.crc32(self._pending[len(MAGIC) : _HEADER_SIZE]))
        if written != computed:
            _damaged(
                self._position, "crc", f"its checksum is {written:08x}, that of its bytes {computed:08x}"
            )
        del self._pending[: end + _CRC.size]
        self._position += end + _CRC.size
        return Frame(kind, payload)


def _damaged(position: int, damage: str, reason: str) -> NoReturn:
    raise FrameError(problem=f"{reason} (frame at byte {position})", position=position, damage=damage)
