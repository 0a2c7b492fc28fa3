"""What commands say that go on without the studies that are not what was stored."""

from collections.abc import Iterable

from ktrial.cli.error_handling import tell

DAMAGED = 1
"""The exit code where a study is not what was stored."""


def tell_left_out(studies: Iterable[str], what: str = "taken in") -> bool:
    """A warning for each (`study 2, quick`); whether there was one. `what` does not happen to it."""
    told = list(studies)
    for one in told:
        tell(
            f"{one}, is not what was stored, and is not {what}",
            "ktrial store verify names all that is damaged, and how to go on",
            kind="warning",
        )
    return bool(told)
