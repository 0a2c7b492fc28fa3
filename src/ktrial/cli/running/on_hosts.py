"""A study on several machines at once: one `ktrial run` for each, and what it comes to over all of them.

Each run is a process of its own, with a lease of its own: what befalls one machine is told with its name, and
the others go on. Ctrl-C ends each of them as it would end it alone, and so does the end of this process,
however it comes (see with_parent).
"""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import typer

from ktrial import interruption
from ktrial.analysis.result import record
from ktrial.analysis.study_on_machines import on_machines
from ktrial.cli.console import output, print_json, say
from ktrial.cli.render.machine_agreement import print_across
from ktrial.cli.running.study import SOME_TRIALS_FAILED
from ktrial.errors import Interrupted
from ktrial.format.sanitize import one_line
from ktrial.model.base import digest
from ktrial.model.machine_agreement import Across
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.store import default_location, open_store
from ktrial.studyfile.references import resolved

KTRIAL = (
    sys.executable,
    "-c",
    "import ktrial_launcher; from ktrial.cli.running.with_parent import main; main()",
)
"""The program of this very installation, which ends when its standard input closes."""


def run_on_each(
    studies: Mapping[str, Study],
    words: Sequence[str],
    *,
    json: bool,
    store: str | None,
    program: Sequence[str] = KTRIAL,
) -> None:
    """Run `ktrial run --host HOST WORDS` for each machine, all at once; print each, then all together.

    Raises Interrupted; typer.Exit with 3 where a machine failed, or some of its trials.
    """
    location = store or default_location()
    open_store(location).close()  # is made once, not by each of them
    runs = [_HostRun(host, (*program, "run", "--host", host, *words)) for host in studies]
    _perform(runs)
    records = _records(studies, location)
    rows = on_machines(records)
    if json:
        print_json({"hosts": {one.host: one.result() for one in runs}, "systems": _plain(rows)})
    else:
        _print(runs, rows, len(records))
    if any(one.status for one in runs):
        raise typer.Exit(SOME_TRIALS_FAILED)


@dataclass
class _HostRun:
    """One machine's."""

    host: str
    command: tuple[str, ...]
    status: int | None = None
    printed: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """In a session of its own: a terminal's Ctrl-C reaches it once, through this process.

        Its standard input closes when this process is gone.
        """
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=self.printed,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if interruption.is_asked_for():
            self.end()

    def follow(self) -> None:
        """Tell what it tells, each line with the machine's name, until it has ended."""
        process = self.process
        if process is None or process.stderr is None:
            return
        for line in process.stderr:
            say(f"{self.host}: {one_line(line.decode(errors='replace').rstrip())}")
        self.status = process.wait()
        if process.stdin:
            process.stdin.close()

    def end(self) -> None:
        """Ask it to end. Safe in a signal handler."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)

    def output(self) -> str:
        """What it printed."""
        self.printed.seek(0)
        return self.printed.read().decode(errors="replace")

    def result(self) -> Any:
        """What it printed as JSON; None where it has no result."""
        try:
            return json.loads(self.output())
        except ValueError:
            return None


def _perform(runs: Sequence[_HostRun]) -> None:
    """Until all have ended. Raises Interrupted."""
    threads = [threading.Thread(target=one.follow, name=one.host) for one in runs]

    def end() -> None:
        for one in runs:
            one.end()

    try:
        with interruption.caught(), interruption.listening(end):
            for one in runs:
                one.start()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except KeyboardInterrupt:
        what = "the runs on all machines have ended, and what is finished is stored"
        raise Interrupted(what=what, hint="run the same command again: it goes on from there") from None


def _records(studies: Mapping[str, Study], location: str) -> list[StudyRecord]:
    """Of the machines that have stored their study."""
    with open_store(location) as store:
        kept = (store.newest(digest=digest(resolved(study))) for study in studies.values())
        return [record(store, one.id) for one in kept if one is not None]


def _plain(rows: Iterable[Across]) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json") for row in rows]


def _print(runs: Sequence[_HostRun], rows: Sequence[Across], measured: int) -> None:
    console = output()
    for one in runs:
        ended = f": ended with exit code {one.status}, as told above" if one.status else ""
        console.print(f"{one.host}{ended}", style="bold")
        console.print(one.output(), soft_wrap=True)
    if not rows:
        console.print(f"{measured} of {len(runs)} machines have a study to compare: no change can be.")
    for row in rows:
        print_across(row, console)
