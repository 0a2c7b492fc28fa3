"""The processes `launch`: each runs a row of programs, one after another, and tells what came of them."""

import contextlib
import json
import os
import pwd
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.machines.qemu.process import memory_file
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target import Run, Step, StepResult, TracerProgram
from ktrial.target.errors import GuestEnded, GuestProgramsMissing
from ktrial.target.tracer_process import Watcher
from ktrial.text_lines import lines_of

PROGRAM = "launch"


@dataclass(frozen=True)
class WorkingPlace:
    """Where programs run."""

    cpus: tuple[int, ...] = ()
    """Empty: all that this process may use."""
    cgroup: str = ""
    """The directory of their control group; empty: this process's own."""


def launch_program(where: Path) -> Path:
    """The program `launch` in the directory of the guest programs. Raises GuestProgramsMissing."""
    program = where / PROGRAM
    if not program.is_file():
        raise GuestProgramsMissing(architecture=where.name, directory=where, missing=PROGRAM)
    return program


class Launchers:
    """The launchers that are alive; `stop` ends them all, from whatever thread."""

    def __init__(self, machine: str, elsewhere: Callable[[str], Sequence[str]] | None = None) -> None:
        """`elsewhere`: the command that runs a launcher on another system; None: it runs on this one."""
        self._machine = machine
        self._elsewhere = elsewhere
        self._alive: set[subprocess.Popen[bytes]] = set()
        # Re-entrant: a signal handler calls stop(), and may have interrupted the very thread that holds it.
        self._lock = threading.RLock()
        self._stopped = False

    def check(self) -> None:
        """Raise MachineStopped once stop() was called."""
        if self._stopped:
            raise MachineStopped(machine=self._machine)

    def stop(self) -> None:
        """End all programs. A launcher whose standard input breaks kills what it runs, and ends."""
        with self._lock:
            self._stopped = True
            for child in self._alive:
                _hang_up(child)

    def run(
        self, program: Path, runs: Sequence[tuple[int, Run]], place: WorkingPlace
    ) -> tuple[StepResult, ...]:
        """Run the programs one after another, each with its number; one result each.

        Where the same one follows itself, the last of such a row has the counters of the whole row.
        Between the start of the first program and the end of the last this process does nothing.
        Programs that are to watch them are started before, and ended after: the last result has what they
        printed. Raises MachineStopped, MonitorFailed, or MachineError where the launcher itself fails.
        """
        self.check()
        order = {
            "rows": _rows(runs),
            "cpus": place.cpus,
            "cgroup": place.cgroup,
            "parent": 0 if self._elsewhere else os.getpid(),
        }
        with memory_file("ktrial-results") as results, memory_file("ktrial-launch") as messages:
            child = self._spawn(program, results, messages)
            with contextlib.ExitStack() as tracers:
                tracers.callback(self._remove, child)
                watchers = [tracers.enter_context(Watcher(tracer, child.pid)) for tracer in _tracers(runs)]
                for watcher in watchers:
                    watcher.wait_until_ready(self.check)
                status = self._finish(child, json.dumps(order).encode() + b"\n")
                self.check()
                printed = {watcher.name: watcher.end() for watcher in watchers}
            self.check()
            step_results = tuple(StepResult.model_validate_json(line) for line in _lines(results))
            if status or len(step_results) < len(runs):
                last = _text(messages).strip() or "it said nothing"
                problem = f"the launcher ended with status {status}: {last}"
                raise MachineError(machine=self._machine, problem=problem)
            return _with_printed(step_results, printed)

    def _command(self, program: Path) -> tuple[Sequence[str], dict[str, str]]:
        """What is started here, and its environment."""
        if self._elsewhere is None:
            return [str(program)], {}
        return self._elsewhere(str(program)), {"PATH": os.environ.get("PATH", "")}

    def _spawn(self, program: Path, results: int, messages: int) -> subprocess.Popen[bytes]:
        command, environment = self._command(program)
        try:
            # A session of its own: a terminal's Ctrl-C reaches ktrial only, which calls stop().
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=results,
                stderr=messages,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"{program} cannot be started: {error.strerror}"
            raise MachineError(machine=self._machine, problem=problem) from None
        with self._lock:
            self._alive.add(child)
            if self._stopped:
                _hang_up(child)
        return child

    def _finish(self, child: subprocess.Popen[bytes], order: bytes) -> int:
        stdin = child.stdin
        if stdin is None:
            raise AssertionError("the launcher was started with a pipe")
        # It ended at once, which its status tells; or stop() was faster.
        with contextlib.suppress(BrokenPipeError, ValueError):
            stdin.write(order)
            stdin.flush()
        return child.wait()

    def _remove(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._alive.discard(child)
            _hang_up(child)
        child.wait()


def _tracers(runs: Sequence[tuple[int, Run]]) -> tuple[TracerProgram, ...]:
    return tuple(dict.fromkeys(tracer for _, run in runs for tracer in run.tracers))


def _with_printed(results: tuple[StepResult, ...], printed: dict[str, str]) -> tuple[StepResult, ...]:
    return (*results[:-1], results[-1].model_copy(update={"tracer_output": printed})) if printed else results


def _rows(runs: Sequence[tuple[int, Run]]) -> list[dict[str, object]]:
    """Runs of the same program with numbers that follow each other are told once."""
    rows: list[tuple[int, int, Run]] = []
    for number, run in runs:
        first, times, last = rows[-1] if rows else (0, 0, None)
        if run == last and number == first + times:
            rows[-1] = (first, times + 1, run)
        else:
            rows.append((number, 1, run))
    return [_row(*row) for row in rows]


def _row(first: int, times: int, run: Run) -> dict[str, object]:
    row: dict[str, object] = {"step": first, "times": times, "run": _run_order(run)}
    # Without root's rights it is this process's own user (experiment.host_checks).
    return row | {"user": _account(run.user)} if run.user and os.geteuid() == 0 else row


def _account(user: str) -> dict[str, object]:
    account = pwd.getpwnam(user)
    groups = os.getgrouplist(user, account.pw_gid)
    return {"uid": account.pw_uid, "gid": account.pw_gid, "groups": groups}


def _run_order(run: Run) -> dict[str, object]:
    """As the launcher reads it. The layout stays as this system has it: random, or not."""
    return run.model_dump(mode="json", exclude={"do", "tracers", "user"})


def _hang_up(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None and not child.stdin.closed:
        with contextlib.suppress(BrokenPipeError):  # what was not sent yet has nobody to read it
            child.stdin.close()


def _lines(descriptor: int) -> list[str]:
    return lines_of(_text(descriptor))


def _text(descriptor: int) -> str:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read().decode(errors="replace")


# How a system that runs does steps: programs that follow each other in a row, the rest one by one.

NumberedRuns = Sequence[tuple[int, Run]]


def perform_in_rows(
    steps: tuple[Step, ...],
    boot: Boot,
    run: Callable[[NumberedRuns], tuple[StepResult, ...]],
    do: Callable[[int, Step], StepResult],
) -> tuple[StepResult, ...]:
    """Do the steps in order; `run` has the programs, `do` every other step.

    Raises GuestEnded where a program passes the boot's limit, and what `run` and `do` raise.
    """
    results: list[StepResult] = []
    for is_run, group in groupby(enumerate(steps), key=lambda numbered: isinstance(numbered[1], Run)):
        numbered = list(group)
        if is_run:
            results += run([(number, step) for number, step in numbered if isinstance(step, Run)])
            _judge(numbered, results, boot)
        else:
            results += [do(number, step) for number, step in numbered]
    return tuple(results)


def as_run_here(run: Run, boot: Boot, argv: tuple[str, ...]) -> Run:
    """With the boot's limit where it has none, and the layout as this system has it."""
    limit = run.limit_ns or round(boot.limit_seconds * 1e9)
    return run.model_copy(update={"argv": argv, "limit_ns": limit, "layout_seed": 0})


def _judge(numbered: Sequence[tuple[int, Step]], results: Sequence[StepResult], boot: Boot) -> None:
    held = {number for number, step in numbered if isinstance(step, Run) and not step.limit_ns}
    if any(result.timed_out and result.step in held for result in results):
        reason = f"{boot.limit_seconds:g} s went by before the steps were done"
        raise GuestEnded(outcome=Outcome.HUNG.value, reason=reason, console="", results=tuple(results))
