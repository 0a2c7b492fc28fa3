"""What `ktrial check` ends with, in the terms of `git bisect run`.

git takes 0 for good, 125 for 'cannot be tested', any other code below 128 for bad, and stops the bisection at
128 and above (git-bisect(1)). So nothing but a verdict may end with 1, and what says nothing about the kernel
ends with 128: a bisection must not walk on over a full disk.
"""

from types import TracebackType
from typing import Self

from typer import Exit

from ktrial.cli.error_handling import tell_error
from ktrial.cli.options.git_bisect_command import BAD_USAGE, HOST_PROBLEM, usage_code
from ktrial.errors import KtrialError
from ktrial.experiment.regression_check import Decision
from ktrial.kernels.build.errors import BuildFailed, OptionNotTaken
from ktrial.kernels.errors import ImageError
from ktrial.target.errors import GuestEnded

WITHIN, BEYOND, SKIP = 0, 1, 125
_FIRST_THAT_STOPS_A_BISECTION = 128

CANNOT_BE_TESTED: tuple[type[KtrialError], ...] = (
    BuildFailed,
    OptionNotTaken,
    ImageError,
    GuestEnded,
)
"""The kernel under test cannot be built, or is none: the kind of error that tells of the kernel itself."""


class Endings:
    """Turns what a check raises into an exit code that cannot be mistaken for a verdict."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ctrl-C and SIGTERM end with 130 and 143 in any case.
        if error is None or isinstance(error, KeyboardInterrupt | SystemExit | Exit):
            return
        raise SystemExit(_code(error, tell_error(error))) from None


def _code(error: BaseException, own: int) -> int:
    if isinstance(error, CANNOT_BE_TESTED):
        return SKIP
    if own == BAD_USAGE:
        return usage_code()
    return own if own >= _FIRST_THAT_STOPS_A_BISECTION else HOST_PROBLEM


def code_of(decision: Decision) -> int:
    """The exit code for what a check says."""
    return {Decision.WITHIN: WITHIN, Decision.BEYOND: BEYOND}.get(decision, SKIP)
