"""Commands of one's own on the command line: behind `--`, or in a workload's file."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ktrial.cli.command_line import BadOption, KtrialCommand

if TYPE_CHECKING:
    from ktrial.model.workload import WorkloadUse
    from ktrial.workloads.capture import Captured

_META = "ktrial.own-command"
_SEPARATOR = "--"


class TakesCommand(KtrialCommand):
    """A command of ktrial's that measures `-- COMMAND…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what is before `--`; the rest is the user's command."""
        if _SEPARATOR in args:
            at = args.index(_SEPARATOR)
            ctx.meta[_META] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """With the command at the end."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]


def own_words(context: typer.Context) -> tuple[str, ...]:
    """The words behind `--` on this command line. Raises BadOption where there are none behind it."""
    words: tuple[str, ...] | None = context.meta.get(_META)
    if words is not None and not (words and words[0]):
        raise BadOption(option=_SEPARATOR, problem="a command is to follow: -- sqlite3 my.db 'select 1'")
    return words or ()


@dataclass(frozen=True)
class NamedWorkloads:
    """The workloads that a command line names."""

    names: tuple[str, ...]
    """Built-in ones, and files of workloads (`./mine.toml`)."""
    words: tuple[str, ...] = ()
    """A command of one's own; empty: none."""
    format: str = ""
    """What the command prints; empty: nothing that is read."""

    def printing(self, format: str | None) -> "NamedWorkloads":
        """With metrics of a format. Raises FormatNotKnown; BadOption where there is no command."""
        from ktrial.program_outputs import find

        if format and not self.words:
            raise BadOption(option="--metrics", problem="it is for a command at the end: -- fio …")
        return replace(self, format=find(format).name) if format else self

    def tables(self) -> list[Any]:
        """As a study file has them."""
        if not self.words:
            return list(self.names)
        metrics = {"metrics": self.format} if self.format else {}
        return [*self.names, {**study_table(captured(self.words)), **metrics}]

    def uses(self) -> "tuple[WorkloadUse, ...]":
        """As they are run. Raises WorkloadError, StudyError."""
        from ktrial.workloads.capture import with_format

        own = (with_format(captured(self.words), self.format).use,) if self.words else ()
        return (*map(use_of, self.names), *own)


def asked(texts: "list[str] | tuple[str, ...] | None", words: tuple[str, ...]) -> NamedWorkloads:
    """From `--workload`, which may be repeated and hold commas, and the command. Raises BadOption."""
    names = [name.strip() for text in texts or () for name in text.split(",")]
    named = NamedWorkloads(tuple(dict.fromkeys(filter(None, names))), words)
    if not named.names and not named.words:
        hint = "ktrial workload list names them; a command of your own stands at the end: -- CMD ARGS"
        raise BadOption(option="--workload", problem="which workload, or which command?", hint=hint)
    return named


def one_use(name: str | None, words: tuple[str, ...]) -> "WorkloadUse":
    """The only workload: of `--workload`, or the command. Raises BadOption where there are two."""
    if name and words:
        raise BadOption(option="--workload", problem="there is a command too: give one of the two")
    (use,) = asked([name] if name else [], words).uses()
    return use


def use_of(name: str) -> "WorkloadUse":
    """The workload of this name, or in this file. Raises WorkloadError, StudyError."""
    from ktrial.cli.studies import registry
    from ktrial.model.workload import WorkloadUse
    from ktrial.studyfile.workloads import workload_from_file
    from ktrial.workloads import check

    if name.endswith(".toml"):
        return workload_from_file(Path(name).expanduser(), registry())
    return check(WorkloadUse(name=name))


def captured(words: tuple[str, ...]) -> "Captured":
    """What the command needs; it runs here, once, unless all that it needs is as it was. Tells what it does.

    Raises what `ktrial.workloads.capture.capture_command` raises.
    """
    from ktrial.cli.console import breakable, say
    from ktrial.cli.studies import registry
    from ktrial.workloads import capture
    from ktrial.workloads.capture import CaptureOptions, capture_command, name_of, summary

    directory = Path.cwd()
    known = capture.find_capture(words, directory)
    if known is None:
        say(f"running it once here, under strace, to find what it needs: {' '.join(words)}")
        name = name_of(words[0], frozenset(registry().workloads))
        known = capture_command(words, directory, CaptureOptions(name))
        capture.keep_capture(words, directory, known)
    say(breakable(f"{known.use.name}: {summary(known)}"))
    for note in known.notes:
        say(f"note: {note.text}" + (f"\n  {note.advice}" if note.advice else ""))
    return known


def study_table(workload: "Captured") -> dict[str, Any]:
    """The workload as a study's table."""
    from ktrial.workloads.capture import table

    return table(workload.use)


def memory_for(words: tuple[str, ...], given: str | None) -> str | None:
    """What was given; else as much as the command's files need, where that is more than usual."""
    from ktrial.workloads import capture
    from ktrial.workloads.capture import USUAL_MEMORY_MIB

    known = capture.find_capture(words, Path.cwd()) if words and given is None else None
    if known is None or known.memory_mib <= USUAL_MEMORY_MIB:
        return given
    from ktrial.cli.console import say

    say(f"the guest gets {known.memory_mib} MiB of memory, for its files; --memory says otherwise")
    return f"{known.memory_mib}M"


def check_name(name: str, taken: frozenset[str]) -> str:
    """The name, if a workload can have it. Raises BadOption."""
    import re

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise BadOption(option="--name", problem=f'{name!r}: letters, digits, ".", "_" and "-", 64 at most')
    if name in taken:
        raise BadOption(
            option="--name", problem=f"{name} is a workload of ktrial's own: give it another name"
        )
    return name


def file_text(workload: "Captured") -> str:
    """The workload's file, with what it will miss as comments."""
    import tomli_w

    from ktrial.cli.console import breakable
    from ktrial.workloads.capture import summary

    lines = [
        f"captured by ktrial workload capture: {breakable(summary(workload))}",
        "paths are this machine's; edit it as you like: ktrial help workloads",
    ]
    comments = "".join(f"# {_one_line(line)}\n" for line in lines)
    return comments + tomli_w.dumps({"workload": study_table(workload)})


def _one_line(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1] if os.linesep in text else text
