"""The frames that a guest sends: whoever runs in it can write to their port.

An input begins with a byte that says what follows: 0, the stream as it comes; else pieces that are framed
with the right checksum, each behind its kind and its length (two bytes).
"""

from collections.abc import Iterator
from struct import Struct

from ktrial.machines.qemu.frame_log import FrameLog
from ktrial.target.errors import FrameError
from ktrial.target.frames import Decoder, Frame, FrameKind, encode

WORDS = (
    *(b"KTF1", b'"step":', b'"do":', b'"failure":', b'"before":', b'"content":', b'"exit":', b'"stdout":'),
    *(b'"rusage":', b'"watched":', b'"sampled":', b'"files":', b'"left_out":', b'"text":', b'"steps":'),
    *(b'"protocol":', b'"release":', b'"agent":', b'"cpus":', b'"memory_kib":', b'"modules":', b'"tsc":'),
    *(b'"command_line":', b'"failures":', b'"what":', b'"times_ns":', b'"signal":', b'"wall_ns":', b"1e999"),
    *(b"NaN", b"null", b"true", b"\\ud800", b"9223372036854775808"),
)
_PIECE = Struct("<BH")
_KINDS = tuple(FrameKind)


def read(data: bytes) -> None:
    """Read a guest's stream whole and in small pieces: both have to tell the same."""
    stream = data[1:] if data[:1] == b"\0" else b"".join(map(encode, _framed(data[1:])))
    whole, cut = FrameLog(), FrameLog()
    whole.feed(stream)
    step = max(1, len(stream) // 50)
    for start in range(0, len(stream), step):
        cut.feed(stream[start : start + step])
    # NaN is not equal to itself.
    assert repr(cut.payloads) == repr(whole.payloads)
    assert bool(cut.damage) == bool(whole.damage)
    frames = _decoded(stream)
    assert stream.startswith(b"".join(map(encode, frames)))


def _framed(data: bytes) -> Iterator[Frame]:
    at = 0
    while at + _PIECE.size <= len(data):
        kind, length = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        yield Frame(_KINDS[kind % len(_KINDS)], data[at : at + length])
        at += length


def _decoded(stream: bytes) -> list[Frame]:
    decoder, frames = Decoder(), list[Frame]()
    try:
        frames += decoder.feed(stream)
        decoder.finish()
    except FrameError:
        pass
    return frames
