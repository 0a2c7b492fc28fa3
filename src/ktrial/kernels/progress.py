"""What a long step tells about itself."""

from typing import Protocol


class Progress(Protocol):
    """Told what is being done, and how far it is."""

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        """`done` and `total` are bytes; `total` is 0 where it is not known beforehand."""
        ...


def silent(what: str, done: int = 0, total: int = 0) -> None:
    """Tell nobody."""
