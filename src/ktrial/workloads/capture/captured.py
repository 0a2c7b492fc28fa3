"""A command as a workload: watched once, and told as the table that a workload's file holds."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrial.format import number_format
from ktrial.model.base import Model
from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.workloads.capture.collect import Collector
from ktrial.workloads.capture.notes import Note, notes
from ktrial.workloads.capture.places import below
from ktrial.workloads.capture.tracer import trace
from ktrial.workloads.command import ENVIRONMENT, WORKLOAD
from ktrial.workloads.file_trees import size_of
from ktrial.workloads.host_files import program_path

DEFAULT_LIMIT = 600.0
_MEMORY_STEP_MIB = 256
_BESIDE_FILES_MIB = 256
"""What a kernel and a program need beside the files, which lie in memory twice while the guest boots."""
USUAL_MEMORY_MIB = 512


@dataclass(frozen=True)
class CaptureOptions:
    """What may be said about a capture."""

    name: str = ""
    variables: tuple[str, ...] = ()
    """Further variables of the environment that it has, here and in a guest."""
    include: tuple[str, ...] = ()
    """Paths that are carried, secrets or not."""
    limit: float = DEFAULT_LIMIT


class Captured(Model):
    """A command that was run once, and what it needs."""

    use: WorkloadUse
    notes: tuple[Note, ...]
    seconds: float
    """That it took here, under strace."""
    files: int
    """That a guest gets, with those that programs among them need."""
    size: int
    """Of those, in bytes."""
    changed: tuple[str, ...] = ()
    """Files that the run itself has changed."""

    @property
    def memory_mib(self) -> int:
        """That a guest needs to hold them."""
        needed = 2 * (self.size >> 20) + _BESIDE_FILES_MIB
        steps = -(-needed // _MEMORY_STEP_MIB)
        return max(USUAL_MEMORY_MIB, steps * _MEMORY_STEP_MIB)


def capture(words: tuple[str, ...], directory: Path, options: CaptureOptions) -> Captured:
    """Run the command once in the directory, and collect what it needs.

    Raises ProgramNotFound, TracerMissing, NotTraced, NotCaptured, TooMuchToCarry, FileNotCarried.
    """
    name = options.name or name_of(words[0])
    program = program_path(name, words[0])
    environment = environment_of(options.variables)
    traced = trace(name, (program, *words[1:]), directory, environment, options.limit)
    home = environment["HOME"]
    included = tuple(str(Path(each).absolute()) for each in options.include)
    collected = Collector(traced.accesses, traced.began, str(directory), home, included).collected()
    command = Command(
        argv=(program, *words[1:]),
        files=tuple(each for each in collected.files if each != program),
        directories=tuple(collected.directories),
        keep_links=True,
        directory=str(directory),
        environment=_needed(
            environment, options.variables, (*traced.accesses.found, *traced.accesses.executed)
        ),
    )
    use = WorkloadUse(name=name, command=command)
    told = notes(traced.accesses, collected, traced.seconds)
    use = use.model_copy(
        update={"command": command.model_copy(update={"notes": tuple(each.text for each in told)})}
    )
    carried = [each for each in WORKLOAD.files(use) if not each.directory and not each.link]
    return Captured(
        use=use,
        notes=told,
        seconds=traced.seconds,
        files=len(carried),
        size=sum(size_of(str(each.host)) for each in carried),
        changed=tuple(collected.changed),
    )


def with_format(captured: Captured, format: str | None) -> Captured:
    """Its metrics are those of the format that it prints; None: it stays as it is."""
    if not format or captured.use.command is None:
        return captured
    command = captured.use.command.model_copy(update={"metrics": (MetricRule(format=format),)})
    use = captured.use.model_copy(update={"command": command})
    return captured.model_copy(update={"use": use})


def environment_of(variables: tuple[str, ...] = ()) -> dict[str, str]:
    """What a command has in its environment while it is watched: a guest's, with PATH and HOME from here."""
    own = {name: os.environ[name] for name in ("PATH", "HOME", *variables) if name in os.environ}
    return ENVIRONMENT | own


def _needed(environment: dict[str, str], asked: tuple[str, ...], met: tuple[str, ...]) -> dict[str, str]:
    """Of PATH and HOME only what the command used: no one else need know them."""
    usual = ENVIRONMENT["PATH"].split(":")
    places = {str(Path(each).parent) for each in met}
    elsewhere = [each for each in environment["PATH"].split(":") if each in places and each not in usual]
    needed = {"PATH": ":".join((*elsewhere, ENVIRONMENT["PATH"]))} if elsewhere else {}
    if any(below(each, environment["HOME"]) for each in met):
        needed["HOME"] = environment["HOME"]
    return needed | {name: environment[name] for name in asked if name in environment}


def name_of(program: str, taken: frozenset[str] = frozenset()) -> str:
    """`bench` of `./bench.sh`; a workload of ktrial's own of this name is another."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(program).stem).strip("-._")[:60] or "command"
    return f"my-{stem}" if stem in taken else stem


def table(use: WorkloadUse) -> dict[str, Any]:
    """The use as a workload's file, and a study's, has it."""
    command = use.command or Command(argv=())
    lists = {"files": command.files, "directories": command.directories}
    return {
        "name": use.name,
        "command": list(command.argv),
        "directory": command.directory,
        **({"environment": command.environment} if command.environment else {}),
        "keep_links": command.keep_links,
        **{key: list(paths) for key, paths in lists.items() if paths},
        **({"metrics": command.metrics[0].format} if command.metrics else {}),
        **({"notes": list(command.notes)} if command.notes else {}),
    }


def summary(captured: Captured) -> str:
    """`61 files, 35.2 MiB; it took 0.12 s here`."""
    files = number_format.counted(captured.files, "file")
    size, took = number_format.size(captured.size), number_format.duration(captured.seconds)
    return f"{files}, {size}; it took {took} here"
