"""What a guest reports is read while it comes, and no further than it is sound."""

import os

import pytest

from ktrial.machines.qemu import frame_log
from ktrial.machines.qemu.frame_log import FrameLog
from ktrial.machines.qemu.process import memory_file
from ktrial.target import StepResult
from ktrial.target.frames import Done, Frame, FrameKind, Log, encode

LOG = encode(Frame(FrameKind.LOG, b'{"text": "a"}'))
RESULT = encode(Frame(FrameKind.RESULT, b'{"step": 0, "do": "read"}'))
DONE = encode(Frame(FrameKind.DONE, b'{"steps": 1}'))


def test_what_was_added_to_the_file_is_taken_in() -> None:
    log = FrameLog()
    with memory_file("frames") as file:
        for piece in (LOG + RESULT[:7], RESULT[7:], DONE):
            os.write(file, piece)
            log.read(file)
    assert log.payloads == [Log(text="a"), StepResult(step=0, do="read"), Done(steps=1)]
    assert not log.damage


def test_frames_before_the_damage_count() -> None:
    log = FrameLog()
    log.feed(LOG + b"rubbish" + RESULT)
    log.feed(RESULT)
    assert log.payloads == [Log(text="a")]
    assert log.damage.startswith("it begins with b'rubb'")


def test_what_comes_after_the_last_frame_says_nothing() -> None:
    log = FrameLog()
    log.feed(DONE + b"rubbish")
    log.feed(RESULT)
    assert log.payloads == [Done(steps=1)]
    assert not log.damage


def test_a_payload_that_is_not_what_its_kind_says_is_damage() -> None:
    log = FrameLog()
    log.feed(encode(Frame(FrameKind.RESULT, b'{"step": "x"}')))
    assert log.damage.startswith("result: step")


def test_frames_without_end_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_log, "MOST_FRAMES", 3)
    log = FrameLog()
    log.feed(LOG * 5)
    assert len(log.payloads) == 3
    assert log.damage == "there are more than 3 frames"
