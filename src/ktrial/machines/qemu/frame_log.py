"""What a guest reports, read while it comes and no further than it is sound.

Whoever runs in the guest can write to the frames' port: all that comes from there is a stranger's. It is
read once a second, so that a guest which writes anything else than frames is ended soon, and each frame is
held to limits before anything is made of it.
"""

import os

from ktrial.target.errors import FrameError
from ktrial.target.frames import Decoder, Done, Failed, Payload, payload_of

MOST_FRAMES = 100_000
"""Of one guest: a plan has some hundred steps, and each has one result."""
_PIECE = 1 << 24


class FrameLog:
    """The frames of one guest so far."""

    def __init__(self, start: int = 0) -> None:
        """`start`: where the guest's first frame begins in the file, in bytes."""
        self.payloads: list[Payload] = []
        self.damage = ""
        """What is wrong with the first damaged frame; those before it count. Empty where all are sound."""
        self._decoder = Decoder()
        self._position = start
        self._ended = False

    def read(self, descriptor: int) -> None:
        """Take in what has been added to this file since the last time."""
        while not self._is_over and (piece := os.pread(descriptor, _PIECE, self._position)):
            self.feed(piece)

    def feed(self, data: bytes) -> None:
        """Take in what comes next. A frame that is not complete yet is left out."""
        if self._is_over:
            return
        self._position += len(data)
        try:
            for frame in self._decoder.feed(data):
                self._take(payload_of(frame))
                if self._is_over:
                    return
            self._decoder.feed(b"")  # a damaged frame after good ones is told by the next call
        except FrameError as error:
            self.damage = error.problem

    @property
    def _is_over(self) -> bool:
        """After its last frame the agent leaves: what comes then is not the agent's, and says nothing."""
        return self._ended or bool(self.damage)

    def _take(self, payload: Payload) -> None:
        if len(self.payloads) == MOST_FRAMES:
            self.damage = f"there are more than {MOST_FRAMES:,} frames"
            return
        self.payloads.append(payload)
        self._ended = isinstance(payload, Done | Failed)
