"""Programs that others wrote and that are installed, as workloads: one module each, by this form.

A use first asks the program for its version, which is recorded with its arguments, then makes what it needs,
runs it once, and cleans up. Each number is what the program itself reports, in its own unit.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from ktrial import program_outputs
from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode, Parameter, Sample, WorkloadDescription, WorkloadUse
from ktrial.package_names import INSTALL
from ktrial.program_outputs import Note, OutputError, Report
from ktrial.system_tools import Tool
from ktrial.target import Run, Step, StepResult
from ktrial.workloads.command import ENVIRONMENT
from ktrial.workloads.errors import BadOutput, WorkloadError
from ktrial.workloads.host_files import with_all_they_need
from ktrial.workloads.protocol import ended_well, last_words, run_step, sample_of

GROUP = "installed programs"
_SCRATCH = "/tmp"
Settings = Mapping[str, int | float | str]
"""Every parameter, with its value."""
Arguments = Callable[[Settings], tuple[str, ...]]
Reading = Callable[[str, Settings], Mapping[str, float | list[float]]]
"""What it printed, and the settings → metric → its number, or several. Raises ValueError, LookupError."""


@dataclass(frozen=True)
class Program:
    """A program that has to be there."""

    name: str
    package: str
    """Debian's package that brings it; else where it comes from."""
    version_flags: tuple[str, ...] = ("--version",)
    version_pattern: str = r"(\S.*)"
    """One group: the version, in the first place where it matches."""

    @property
    def tool(self) -> Tool:
        """As other rooms declare what they need."""
        return Tool(self.name, self.package, "is measured", search=ENVIRONMENT["PATH"])

    def path(self, workload: str) -> str:
        """Where it is. Raises WorkloadError."""
        program = self.tool.path()
        if not program:
            raise WorkloadError(
                f"Workload {workload} needs the program {self.name}, which is not installed here.",
                hint=f"{INSTALL} {self.package}",
            )
        return program


@dataclass(frozen=True)
class AdapterCommand:
    """One command around the run: its program's path (None: the workload's own), and its arguments."""

    arguments: Arguments
    program: str | None = None


@dataclass(frozen=True)
class InstalledProgram:
    """A workload that runs an installed program."""

    description: WorkloadDescription
    program: Program
    arguments: Arguments
    read: Reading
    before: tuple[AdapterCommand, ...] = ()
    after: tuple[AdapterCommand, ...] = ()
    others: tuple[Program, ...] = ()
    """Further programs that it needs, whose versions count."""
    tools: tuple[str, ...] = ()
    """Programs of every system that its scripts call."""
    data: tuple[str, ...] = ()
    """Files that those read, where this host has them."""
    directory: Callable[[Settings], str] = field(default=lambda _settings: _SCRATCH)

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """The programs, which may be missing."""
        return tuple(program.tool for program in self._programs())

    def _programs(self) -> tuple[Program, ...]:
        return (self.program, *self.others, *(Program(name, "coreutils") for name in self.tools))

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """The programs and what they need. Raises WorkloadError."""
        data = tuple(path for path in self.data if Path(path).is_file())
        programs = (program.path(use.label) for program in self._programs())
        return with_all_they_need(use.label, (*programs, *data))

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """Version, preparation, the run itself, cleaning. Raises WorkloadError."""
        settings, program = self.settings(use), self.program.path(use.label)
        directory = self.directory(settings)

        def plain(command: AdapterCommand) -> Run:
            argv = (command.program or program, *command.arguments(settings))
            return Run(argv=argv, environment=ENVIRONMENT, directory=directory)

        version = Run(
            argv=(program, *self.program.version_flags), environment=ENVIRONMENT, directory=_SCRATCH
        )
        measured = run_step((program, *self.arguments(settings)), perturbation, ENVIRONMENT, directory)
        return (version, *map(plain, self.before), measured, *map(plain, self.after))

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """What the program reported. Raises WorkloadError where it failed, or reported nothing known."""
        finished = ended_well(use.label, results[1:], expected=1 + len(self.before) + len(self.after))
        result = finished[len(self.before)]
        try:
            metrics = self.read(result.stdout or result.stderr, self.settings(use))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"{error}; it ended with: {last_words(result)}"
            raise BadOutput(use.label, problem) from None
        if not metrics:
            raise BadOutput(use.label, f"there is no number in it: {last_words(result)}")
        described = {metric.name: metric for metric in self.description.metrics}
        return tuple(
            sample_of(use.label, described[name], mode, numbers if isinstance(numbers, list) else [numbers])
            for name, numbers in metrics.items()
        )

    def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
        """What the report says that is good all the same: transactions that failed."""
        if not isinstance(self.read, ReportsNotes):
            return ()
        result = results[1 + len(self.before)]
        return tuple(
            DataWarning(
                kind=WarningKind.INPUT_INCOMPLETE, text=f"{use.label}: {note.text}", advice=note.advice
            )
            for note in self.read.notes(result.stdout or result.stderr)
        )

    def programs(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> dict[str, str]:
        """Program → its version and the arguments that it was run with."""
        if not results:
            return {}
        flags = " ".join(word for word in self.arguments(self.settings(use)) if "\n" not in word)
        versions = {self.program.name: f"{_version(self.program, results[:1])}: {flags}"}
        # A script tells the versions of what it runs.
        return versions | {program.name: _version(program, results) for program in self.others}

    def settings(self, use: WorkloadUse) -> Settings:
        """Every parameter of a use, those that it does not set at their defaults."""
        return {
            parameter.name: parameter.default for parameter in self.description.parameters
        } | use.parameters


def _version(program: Program, results: tuple[StepResult, ...]) -> str:
    output = "\n".join(f"{result.stdout}\n{result.stderr}" for result in results)
    match = re.search(program.version_pattern, output, re.MULTILINE)
    return match[1].strip() if match else "its version is not told"


@runtime_checkable
class ReportsNotes(Protocol):
    """A reading that may find something odd about a report that is good all the same."""

    def notes(self, output: str) -> tuple[Note, ...]:
        """What it found, in what could be read."""
        ...


@dataclass(frozen=True)
class Reported:
    """The metrics that a workload promises, in what its program reports, by a format of `program_outputs`."""

    format: str
    """`fio-json`, as `ktrial workload formats` names it."""
    required: tuple[str, ...] = ()
    """Metrics without which a report is of no use."""
    optional: tuple[str, ...] = ()
    """Metrics that it need not have."""
    of: Callable[[Settings], str] | None = None
    """What was to be measured, as the report names it; None: it has to be one thing, whatever its name."""

    def __call__(self, output: str, settings: Settings) -> dict[str, float | list[float]]:
        """Metric → its numbers. Raises ValueError where it is damaged, failed, or of something else."""
        report = self._report(output)
        for failure in report.failures:
            raise ValueError(failure.text)
        self._check_what_it_is_of(report, settings)
        values = {metric.metric: list(metric.values) for metric in report.measured}
        if missing := [name for name in self.required if name not in values]:
            raise ValueError(f"there is no {', no '.join(missing)} in it; it tells: {', '.join(values)}")
        return {name: values[name] for name in (*self.required, *self.optional) if name in values}

    def notes(self, output: str) -> tuple[Note, ...]:
        """What is to be known about a report that could be read: transactions that failed."""
        return self._report(output).notes

    def _report(self, output: str) -> Report:
        format = program_outputs.find(self.format)
        try:
            return format.read(output)
        except OutputError as error:
            raise ValueError(error.message.removesuffix(".")) from None

    def _check_what_it_is_of(self, report: Report, settings: Settings) -> None:
        subjects = dict.fromkeys(metric.of for metric in report.measured)
        expected = {self.of(settings)} if self.of else set(list(subjects)[:1])
        if subjects.keys() - expected:
            raise ValueError(f"it tells of {', '.join(subjects)}, where {', '.join(expected)} is meant")


# --- Short forms in which adapters describe themselves.


def described(
    name: str,
    summary: str,
    does: str,
    metrics: tuple[Metric, ...],
    parameters: tuple[Parameter, ...],
    source: str,
) -> WorkloadDescription:
    """The description of an installed program."""
    return WorkloadDescription(
        name=name,
        summary=summary,
        does=does,
        metrics=metrics,
        parameters=parameters,
        source=source,
        group=GROUP,
    )


def more(name: str, unit: str) -> Metric:
    """A metric of which more is better."""
    return Metric(name=name, unit=unit, direction=Direction.HIGHER)


def less(name: str, unit: str) -> Metric:
    """A metric of which less is better."""
    return Metric(name=name, unit=unit, direction=Direction.LOWER)


def whole(name: str, summary: str, default: int, low: int = 1, high: int = 2**31 - 1) -> Parameter:
    """A parameter that is a whole number."""
    return Parameter(name=name, summary=summary, default=default, minimum=low, maximum=high)


def choice(name: str, summary: str, *choices: str) -> Parameter:
    """A parameter that is one of some words, the first where nothing is said."""
    return Parameter(name=name, summary=summary, default=choices[0], choices=choices)


def word(name: str, summary: str, default: str) -> Parameter:
    """A parameter that is text."""
    return Parameter(name=name, summary=summary, default=default)


def number(pattern: str, text: str) -> float:
    """The number that the pattern's group finds. Raises ValueError where nothing matches."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise ValueError(f"nothing in it matches {pattern!r}")
    return float(match[1])


SHELL = Program("sh", "dash", ("-c", ":"), r"$^(.)")
PROLOGUE = """set -eu
scratch=$(mktemp -d /tmp/ktrial-server-XXXXXX)
trap 'stop_server; rm -rf "$scratch"' EXIT
stop_server() { :; }
fail() { echo "$1" >&2; exit 1; }
"""
"""A directory that is removed at the end, whatever happens; `stop_server` is the script's own to define."""
