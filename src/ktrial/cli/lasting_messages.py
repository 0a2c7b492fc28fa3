"""Standard error for as long as ktrial runs: a terminal may be closed, a reader may go, a disk may be full.

What is said there is progress and messages. Where it cannot be written it is lost, and nothing else is: the
run goes on, or puts back what it has changed. Results go to standard output, where an error is an error.
"""

import io
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _NeverFails(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        """As many bytes as there are, written or not."""
        try:
            return super().write(data) or 0
        except BlockingIOError:
            raise
        except OSError:
            return memoryview(data).nbytes


def messages_that_end_nothing(stream: TextIO) -> TextIO:
    """The same stream; but what cannot be written is lost, and raises nothing."""
    try:
        raw = _NeverFails(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):
        return stream  # it is no file
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )
