"""The command line of `ktrial check`: one that `git bisect run` cannot take for a verdict."""

import subprocess
from pathlib import Path
from typing import Any

from typer import TyperException
from typer.core import TyperCommand

BAD_USAGE, HOST_PROBLEM = 2, 128


class CommandWithSource(TyperCommand):
    """A command where `--source` alone means `--source .`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises."""
        return super().parse_args(ctx, _with_directory(args))


class CheckCommand(CommandWithSource):
    """The command line of `check`: its mistakes never look like a bad commit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; raises what Typer raises, with the exit code that a bisection understands."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            error.exit_code = usage_code()
            raise


def _with_directory(args: list[str]) -> list[str]:
    """`--source` without a directory means the one that ktrial stands in."""
    found: list[str] = []
    for place, word in enumerate(args):
        found.append(word)
        rest = args[place + 1 : place + 2]
        if word == "--source" and (not rest or rest[0].startswith("-")):
            found.append(".")
    return found


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
