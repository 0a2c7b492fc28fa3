"""Workloads on the command line: built-in ones, those of files, and the user's own command behind `--`."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.cli.command_line import BadOption
from ktrial.cli.console import breakable, say
from ktrial.cli.studies import registry

if TYPE_CHECKING:
    from ktrial.model.workload import WorkloadUse
    from ktrial.workloads.capture import Captured

SETS_OF_WORKLOADS = ("default", "quick", "disk")
"""What stands for several workloads."""
_BETWEEN = re.compile(r",(?![^(]*\))")
"""A comma between workloads, and not one between the parameters of `seq-read(path=/mnt, size=8)`."""


@dataclass(frozen=True)
class NamedWorkloads:
    """The workloads that a command line names."""

    names: tuple[str, ...]
    """Built-in ones, and files of workloads (`./mine.toml`)."""
    words: tuple[str, ...] = ()
    """A command of the user's; empty: none."""
    format: str = ""
    """What the command prints; empty: nothing that is read."""
    after: str = ""
    """What the command prints where counting begins."""
    skip_start: str = ""
    """The system call, signal or output at which counting begins."""

    def printing(self, format: str | None) -> "NamedWorkloads":
        """With metrics of a format. Raises FormatNotKnown; BadOption where there is no command."""
        from ktrial.program_outputs import find

        if format and not self.words:
            raise BadOption("--metrics", "it goes with a command at the end: -- fio …")
        return replace(self, format=find(format).name) if format else self

    def counted_from(self, after: str | None, skip_start: str | None) -> "NamedWorkloads":
        """With the command's counting beginning later than it. Raises BadOption."""
        if (after or skip_start) and not self.words:
            raise BadOption(_start_option(skip_start), "it goes with a command at the end: -- ./serve.sh")
        refuse_start(after, skip_start, self.format)
        return replace(self, after=after or "", skip_start=skip_start or "")

    def tables(self) -> list[Any]:
        """As a study file has them."""
        return [*self.names, *map(study_table, self._of_command())]

    def uses(self) -> "tuple[WorkloadUse, ...]":
        """As they are run. Raises WorkloadError, StudyError."""
        return (*map(use_of, self.names), *(workload.use for workload in self._of_command()))

    def _of_command(self) -> "Iterator[Captured]":
        from ktrial.workloads.capture import with_format, with_start

        if self.words:
            yield with_start(with_format(captured(self.words), self.format), self.after, self.skip_start)


def refuse_start(after: str | None, skip_start: str | None, format: str | None) -> None:
    """Raise BadOption where counting cannot begin there, before the command runs."""
    from ktrial.workloads.capture import CaptureOptions, problem_of

    options = CaptureOptions(after=after or "", skip_start=skip_start or "")
    if problem := problem_of(options, format):
        raise BadOption(_start_option(skip_start), problem)


def _start_option(skip_start: str | None) -> str:
    return "--skip-start" if skip_start else "--after"


def named_workloads(texts: Sequence[str] | None, words: tuple[str, ...]) -> NamedWorkloads:
    """From `--workload`, repeated, with commas, with sets, and the command. Raises BadOption."""
    named = NamedWorkloads(tuple(workload_names_of(texts)) if texts else (), words)
    if not named.names and not named.words:
        hint = "ktrial workload list names them; a command of your own stands at the end: -- CMD ARGS"
        raise BadOption("--workload", "which workload, or which command?", hint=hint)
    return named


def single_use(name: str | None, words: tuple[str, ...]) -> "WorkloadUse":
    """The only workload: of `--workload`, or the command. Raises BadOption where there are more."""
    if name and words:
        raise BadOption("--workload", "give a workload or a command, not both")
    named = named_workloads([name] if name else [], words)
    if len(named.names) > 1:
        raise BadOption("--workload", f"{name}: one workload at a time: {' or '.join(named.names)}")
    (use,) = named.uses()
    return use


def use_of(name: str) -> "WorkloadUse":
    """The workload of this name or label (`page-fault2(kind=threads)`, `tour-ext4`), or in this file
    (`.toml`, `.c`).

    Raises BadOption, WorkloadError, StudyError.
    """
    from ktrial.model.design import of_label
    from ktrial.model.workload import WorkloadUse
    from ktrial.studyfile.workloads import workload_from_file
    from ktrial.workloads import check
    from ktrial.workloads.c_programs import SUFFIX, program_of
    from ktrial.workloads.tours import is_tour, tour

    if is_tour(name):
        return tour(name)
    if name.endswith(SUFFIX):
        return program_of(Path(name).expanduser())
    if name.endswith(".toml"):
        return workload_from_file(Path(name).expanduser(), registry())
    try:
        workload, parameters = of_label(name)
    except ValueError as error:
        raise BadOption("--workload", str(error)) from None
    return check(WorkloadUse(name=workload, parameters=parameters))


def workload_names_of(texts: Sequence[str] | None) -> list[str]:
    """`default`, `quick` and workloads, with commas between them; `default` where nothing is named."""
    sets = _sets()
    return list(dict.fromkeys(name for word in _words(texts) for name in sets.get(word, (word,))))


def in_sets(texts: Sequence[str] | None) -> set[str]:
    """Those of the workloads that nobody named: they only belong to a set."""
    sets, words = _sets(), _words(texts)
    return {name for word in words for name in sets.get(word, ())} - set(words)


def _sets() -> dict[str, tuple[str, ...]]:
    from ktrial.workloads import DEFAULT, DISK, QUICK

    return dict(zip(SETS_OF_WORKLOADS, (DEFAULT, QUICK, DISK), strict=True))


def _words(texts: Sequence[str] | None) -> list[str]:
    parts = (part for text in texts or ["default"] for part in _BETWEEN.split(text))
    return [part.strip() for part in parts if part.strip()]


def captured(words: tuple[str, ...]) -> "Captured":
    """What the command needs; it runs here, once, unless all that it needs is as it was. Tells what it does.

    Raises what `ktrial.workloads.capture.capture_command` raises.
    """
    from ktrial.workloads.capture import (
        CaptureOptions,
        capture_command,
        find_capture,
        keep_capture,
        name_of,
        summary,
    )

    directory = Path.cwd()
    workload = find_capture(words, directory)
    if workload is None:
        say(f"running it once here, under strace, to find the files that it needs: {' '.join(words)}")
        name = name_of(words[0], frozenset(registry().workloads))
        workload = capture_command(words, directory, CaptureOptions(name))
        keep_capture(words, directory, workload)
    say(breakable(f"{workload.use.name}: {summary(workload)}"))
    for note in workload.notes:
        say(f"note: {note.text}" + (f"\n  {note.advice}" if note.advice else ""))
    return workload


def study_table(workload: "Captured") -> dict[str, Any]:
    """The workload as a study's table."""
    from ktrial.workloads.capture import table

    return table(workload.use)


def memory_for(words: tuple[str, ...], memory: str | None) -> str | None:
    """This memory; where none is named, as much as the command's files need, if that is more than usual."""
    from ktrial.workloads.capture import USUAL_MEMORY_MIB, find_capture

    workload = find_capture(words, Path.cwd()) if words and memory is None else None
    if workload is None or workload.memory_mib <= USUAL_MEMORY_MIB:
        return memory

    say(f"the guest gets {workload.memory_mib} MiB of memory, for its files; --memory sets another size")
    return f"{workload.memory_mib}M"


def check_name(name: str, taken: frozenset[str]) -> str:
    """The name, if a workload can have it. Raises BadOption."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise BadOption("--name", f'{name!r}: letters, digits, ".", "_" and "-", 64 at most')
    if name in taken:
        raise BadOption("--name", f"{name} is a workload of ktrial's own: give it another name")
    return name


def file_text(workload: "Captured") -> str:
    """The workload's file, with what it will miss as comments."""
    import tomli_w

    from ktrial.workloads.capture import summary

    lines = [
        f"captured by ktrial workload capture: {breakable(summary(workload))}",
        "paths are those of this machine; edit it as you like: ktrial help workloads",
    ]
    comments = "".join(f"# {_on_one_line(line)}\n" for line in lines)
    return comments + tomli_w.dumps({"workload": study_table(workload)})


def _on_one_line(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1] if os.linesep in text else text
