"""Commands that take minutes: what they say of themselves is shown as it comes (`pytest -s`), and kept."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_shown(
    command: Sequence[str | Path],
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    together: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with both outputs captured; each line of standard error is shown at once.

    `together`: standard output goes where standard error goes.
    """
    said = []
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if together else output,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        lines = process.stdout if together else process.stderr
        assert lines
        for line in lines:
            said.append(line)
            print(line, end="", file=sys.stderr, flush=True)
        status = process.wait()
        output.seek(0)
        printed = output.read()
    text = "".join(said)
    outputs = (text, "") if together else (printed, text)
    return subprocess.CompletedProcess(command, status, *outputs)


def show(what: str, done: int = 0, total: int = 0) -> None:
    """The progress of a build that a test makes itself."""
    print(f"{what}: {done >> 20} of {total >> 20} MiB" if total else what, file=sys.stderr, flush=True)
