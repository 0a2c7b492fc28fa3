"""The frame codec: golden vectors shared with Rust, and what holds for any stream."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import vectors

from ktrial.target import StepResult
from ktrial.target import frames as frames_module
from ktrial.target.errors import FrameError
from ktrial.target.frames import Decoder, Done, Failed, Frame, FrameKind, Log, Ready, encode, payload_of

any_frame = st.builds(Frame, st.sampled_from(FrameKind), st.binary(max_size=300))


def decoded(pieces: list[bytes]) -> tuple[list[Frame], FrameError | None]:
    """Every frame that came out, and the damage that was told, by feed or at the end."""
    decoder, frames = Decoder(), list[Frame]()
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        decoder.finish()
    except FrameError as error:
        return frames, error
    return frames, None


def cut(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
@pytest.mark.parametrize("vector", vectors.frames(), ids=lambda vector: vector.name)
def test_golden_streams_give_their_frames_and_their_damage(vector: vectors.FrameVector, size: int) -> None:
    frames, error = decoded(cut(vector.stream, size))
    contents = [vectors.FrameContent(kind=frame.kind, payload=frame.payload.decode()) for frame in frames]
    assert contents == list(vector.frames)
    assert (error and error.damage) == vector.damage
    assert (error and error.position) == vector.position


@pytest.mark.parametrize("vector", [v for v in vectors.frames() if not v.damage], ids=lambda v: v.name)
def test_good_golden_frames_are_encoded_to_the_same_bytes(vector: vectors.FrameVector) -> None:
    frames, _ = decoded([vector.stream])
    assert b"".join(encode(frame) for frame in frames) == vector.stream


@given(st.lists(any_frame, max_size=5), st.data())
def test_frames_survive_any_cutting_of_the_stream(sent: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(encode(frame) for frame in sent)
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=10).map(sorted))
    bounds = [0, *places, len(stream)]
    pieces = [stream[start:end] for start, end in itertools.pairwise(bounds)]
    assert decoded(pieces) == (sent, None)


@given(st.lists(any_frame, min_size=1, max_size=4), st.integers(1, 255), st.data())
def test_a_changed_byte_is_always_told_and_never_makes_another_frame(
    sent: list[Frame], change: int, data: st.DataObject
) -> None:
    stream = bytearray(b"".join(encode(frame) for frame in sent))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= change
    frames, error = decoded(cut(bytes(stream), data.draw(st.integers(1, 64))))
    assert frames == sent[: len(frames)]
    assert len(frames) < len(sent)
    assert error is not None
    start = error.position
    assert isinstance(start, int)
    assert start <= place


@given(st.lists(any_frame, min_size=1, max_size=4), st.data())
def test_a_stream_that_ends_early_loses_only_its_last_frame(sent: list[Frame], data: st.DataObject) -> None:
    last = encode(sent[-1])
    cached = data.draw(st.integers(1, len(last) - 1))
    stream = b"".join(encode(frame) for frame in sent[:-1]) + last[:cached]
    frames, error = decoded([stream])
    assert frames == sent[:-1]
    assert error is not None
    assert error.damage == "truncated"


@given(st.binary(max_size=200))
def test_noise_makes_no_frame(noise: bytes) -> None:
    frames, error = decoded([noise])
    assert frames == []
    assert (error is None) == (noise == b"")


def test_damage_is_told_again_and_again() -> None:
    decoder = Decoder()
    good = encode(Frame(FrameKind.LOG, b"{}"))
    assert decoder.feed(good + b"noise") == [Frame(FrameKind.LOG, b"{}")]
    for _ in range(2):
        with pytest.raises(FrameError, match=rf"begins with b'nois'.*frame at byte {len(good)}"):
            decoder.feed(good)
    with pytest.raises(FrameError, match="begins with"):
        decoder.finish()


def test_a_payload_that_is_too_long_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "MAX_PAYLOAD", 10)
    assert encode(Frame(FrameKind.LOG, bytes(10)))
    with pytest.raises(FrameError, match="a payload of 11 bytes; at most 10 are allowed"):
        encode(Frame(FrameKind.LOG, bytes(11)))


@pytest.mark.parametrize("vector", vectors.read("payloads"), ids=lambda v: FrameKind(v["kind"]).name)
def test_a_golden_payload_is_what_its_kind_says(vector: dict[str, Any]) -> None:
    kinds = {FrameKind.READY: Ready, FrameKind.DONE: Done, FrameKind.FAILED: Failed, FrameKind.LOG: Log}
    kind = FrameKind(vector["kind"])
    payload = payload_of(Frame(kind, json.dumps(vector["payload"]).encode()))
    assert type(payload) is kinds[kind]
    assert payload.model_dump(mode="json") == vector["payload"]


def test_a_result_is_a_payload_too() -> None:
    frame = Frame(FrameKind.RESULT, b'{"step": 3, "do": "read", "content": "x"}')
    assert payload_of(frame) == StepResult(step=3, do="read", content="x")


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"", "done: the payload: Invalid JSON"),
        (b"{}", "done: steps: Field required"),
        (b'{"steps": "many"}', "done: steps: Input should be a valid integer"),
        (b'{"steps": 1, "more": 2}', "done: more: Extra inputs are not permitted"),
        (b'{"steps": \xff}', "done: the payload: Invalid JSON"),
    ],
)
def test_a_payload_that_does_not_fit_its_kind_is_told_with_the_key(payload: bytes, problem: str) -> None:
    with pytest.raises(FrameError) as raised:
        payload_of(Frame(FrameKind.DONE, payload))
    assert problem in str(raised.value)
