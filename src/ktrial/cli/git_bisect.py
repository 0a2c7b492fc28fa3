"""What `ktrial check`, `sanity` and `watch` end with, in the terms of `git bisect run`.

git takes 0 for good, 125 for 'cannot be tested', any other code below 128 for bad, and stops the bisection at
128 and above (git-bisect(1)). So nothing but a verdict may end with 1, and what says nothing about the kernel
ends with 128: a bisection must not walk on over a full disk.
"""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from typer import Exit, TyperException

from ktrial.cli.command_line import CommandWithSource
from ktrial.cli.error_handling import tell_error

if TYPE_CHECKING:
    from ktrial.model.regression_check import Decision

WITHIN, BEYOND, SKIP = 0, 1, 125
BAD_USAGE, HOST_PROBLEM = 2, 128
_FIRST_THAT_STOPS_A_BISECTION = 128


class CheckCommand(CommandWithSource):
    """The command line of `check`: its mistakes never look like a bad commit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises, with the exit code that a bisection understands."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            error.exit_code = usage_code()
            raise


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
    if _is_of_the_kernel(error):
        return SKIP
    if own == BAD_USAGE:
        return usage_code()
    return own if own >= _FIRST_THAT_STOPS_A_BISECTION else HOST_PROBLEM


def _is_of_the_kernel(error: BaseException) -> bool:
    """Whether the kernel under test cannot be built, or is none: what tells of the kernel itself."""
    from ktrial.kernels.errors import BuildFailed, ImageError, OptionNotTaken
    from ktrial.target.errors import GuestEnded

    return isinstance(error, BuildFailed | OptionNotTaken | ImageError | GuestEnded)


def code_of(decision: "Decision") -> int:
    """The exit code for what a check says."""
    from ktrial.model.regression_check import Decision

    return {Decision.WITHIN: WITHIN, Decision.BEYOND: BEYOND}.get(decision, SKIP)


def usage_code() -> int:
    """2; or 128 in a tree that is being bisected, where git would take 2 for a bad commit."""
    return HOST_PROBLEM if _is_bisected() else BAD_USAGE


def _is_bisected() -> bool:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--git-path", "BISECT_START"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return False  # without git nobody bisects
    return done.returncode == 0 and Path(done.stdout.strip()).exists()
