"""Any command of the user's as a workload, with the program and the files that it needs."""

import json
import math
import re
import statistics
from collections.abc import Iterable

from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import (
    EXACT_MODES,
    Command,
    Direction,
    Metric,
    MetricRule,
    Mode,
    Sample,
    WorkloadDescription,
    WorkloadUse,
)
from ktrial.target import Step, StepResult
from ktrial.workloads.command_marks import (
    counted_runs,
    each_operation,
    marks_operations,
    median_run,
    warnings_of,
)
from ktrial.workloads.errors import BadCommand, MetricNotANumber, MetricNotFound
from ktrial.workloads.file_trees import directories, expanded
from ktrial.workloads.host_files import program_path, with_all_they_need, with_links_kept
from ktrial.workloads.marked_region import MarkedRegion, beside_instructions
from ktrial.workloads.printed_metrics import check_format, printed_samples, printed_warnings
from ktrial.workloads.program_runs import ended_well, last_words, run_step

NAME = "command"
WALL_TIME = MetricRule(name="wall time")
"""What is measured where no metric is asked for."""
OPERATION = MetricRule(name="operation")
"""The same, where the program marks operations of its own and they are counted.

It has another name than the whole run's: the two are never compared.
"""

ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C",
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TZ": "UTC",
}
"""What a command finds in its environment; nothing of the host's."""

_DESCRIPTION = WorkloadDescription(
    name=NAME,
    summary="a command of your own",
    does="One operation runs the command once, in /tmp, with the program, its shared libraries and the files "
    "that you name. It runs once unmeasured, then as often as `repeats` says. The exit status must be 0 each "
    "time. The value is the median: of the wall clock, or of the numbers that a format (ktrial workload "
    "formats), a regular expression or a path into the JSON finds in what the command prints. In exact mode "
    "a program that marks operations of its own has the median of one of them instead.",
    metrics=(Metric(name=WALL_TIME.name, unit="ns", direction=Direction.LOWER),),
    source="you",
    group="command",
)


class CommandWorkload:
    """Runs what `use.command` says."""

    @property
    def description(self) -> WorkloadDescription:
        """Of commands in general."""
        return _DESCRIPTION

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """The program, its interpreter, shared libraries, and the files named, all at their host's paths.

        Raises ProgramNotFound, LibraryNotFound, FileNotCarried.
        """
        command = _command(use)
        program = program_path(use.label, command.argv[0])
        if command.keep_links:
            carried = with_links_kept(use.label, program, command.files)
        else:
            carried = with_all_they_need(use.label, (program, *command.files))
        return (*directories(use.label, command.directories), *carried)

    def program(self, workload: str, named: str) -> str:
        """What is started. Raises ProgramNotFound."""
        return program_path(workload, named)

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """The runs that are discarded, then the repeats. Raises ProgramNotFound."""
        command = _command(use)
        argv = (self.program(use.label, command.argv[0]), *command.argv[1:])
        environment, directory = ENVIRONMENT | command.environment, command.directory or "/tmp"
        run = run_step(argv, perturbation, environment, directory=directory, user=command.user)
        return (run,) * (command.discarded + command.repeats)

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """One sample a metric. Raises WorkloadError where a run failed, or a metric is not in its output."""
        command = _command(use)
        wanted = command.discarded + command.repeats
        counted = list(ended_well(use.label, results, wanted=wanted)[command.discarded :])
        if mode is Mode.EXACT_PLUGIN:
            return _counted_samples(use.label, command.metrics, counted)
        rules = command.metrics or (WALL_TIME,)
        return tuple(
            sample
            for rule in rules
            for sample in (
                printed_samples(use.label, rule, mode, counted)
                if rule.format
                else (_sample(use.label, rule, mode, _found(use.label, rule, counted)),)
            )
        )

    def region(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> MarkedRegion:
        """Of the run that is the median: from its start to its end, as one operation.

        A program that marks regions of its own has those instead. Raises NoMarkedRegion, WrongMarks.
        """
        return median_run(counted_runs(use.label, results[_command(use).discarded :]))

    def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
        """What its marks say that may not be meant, and which of its files could not be carried."""
        command = _command(use)
        marks = warnings_of(use.label, results[command.discarded :])
        told = tuple(
            DataWarning(kind=WarningKind.CAPTURED, text=f"{use.label}: {note}") for note in command.notes
        )
        printed = printed_warnings(use.label, command.metrics, results[command.discarded :])
        return (*marks, *told, *printed, *_left_out(use.label, command))

    def operations(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> int:
        """A run is an operation."""
        return len(results)


WORKLOAD = CommandWorkload()


def check_command(use: WorkloadUse) -> None:
    """Raise BadCommand where the command or one of its metric rules cannot be meant."""
    command = _command(use)
    if not command.argv or not command.argv[0]:
        raise BadCommand(workload=use.name, problem="the command is empty")
    for rule in command.metrics:
        check_format(use.name, rule)
        if rule.regex and rule.json_path:
            problem = f"the metric {rule.name} has a regular expression and a JSON path; give one of them"
            raise BadCommand(workload=use.name, problem=problem)
        if rule.regex:
            _check_regex(use.name, rule)


def _check_regex(workload: str, rule: MetricRule) -> None:
    try:
        groups = re.compile(rule.regex).groups
    except re.error as error:
        problem = f"the metric {rule.name} has a bad regular expression, {rule.regex!r}: {error}"
        raise BadCommand(workload=workload, problem=problem) from None
    if groups != 1:
        problem = f"the regular expression of {rule.name} has {groups} groups; give one, round the number"
        raise BadCommand(workload=workload, problem=problem)


def _left_out(label: str, command: Command) -> tuple[DataWarning, ...]:
    """One warning for what stands in its directories and cannot be carried."""
    left_out = expanded(label, command.files, keep_links=command.keep_links).left_out
    if not left_out:
        return ()
    some = ", ".join(f"{path} ({what})" for path, what in list(left_out.items())[:3])
    text = f"{label}: {len(left_out)} of what is in its directories is left out: {some}"
    advice = "files, directories and links are carried; remove the others from its files if they matter"
    return (DataWarning(kind=WarningKind.FILES, text=text, advice=advice),)


def _command(use: WorkloadUse) -> Command:
    if use.command is None:
        raise BadCommand(workload=use.name, problem="it has no command")
    return use.command


def _counted_samples(
    label: str, metrics: tuple[MetricRule, ...], counted: list[StepResult]
) -> tuple[Sample, ...]:
    """Of runs under the plugin: where the program marks operations, the value is the median of one."""
    runs = counted_runs(label, counted)
    instructions = [count for run in runs for count in each_operation(label, run)]
    whole = OPERATION if marks_operations(runs[0]) else WALL_TIME
    samples: list[Sample] = []
    for rule in metrics or (whole,):
        if rule.format:
            samples += printed_samples(label, rule, Mode.EXACT_PLUGIN, counted)
        else:
            measured = instructions if _is_clock(rule) else values(label, rule, counted)
            samples.append(_sample(label, rule, Mode.EXACT_PLUGIN, measured))
    return tuple(samples) if metrics else (*samples, *beside_instructions(label, median_run(runs)))


def _found(label: str, rule: MetricRule, results: list[StepResult]) -> list[float]:
    if _is_clock(rule):
        return [float(each.wall_ns) for each in results]
    return values(label, rule, results)


def _is_clock(rule: MetricRule) -> bool:
    return not rule.regex and not rule.json_path and not rule.format


def _sample(label: str, rule: MetricRule, mode: Mode, measured: list[float]) -> Sample:
    median = statistics.median(measured)
    return Sample(
        workload=label,
        metric=rule.name,
        unit=rule.unit or (_clock_unit(mode) if _is_clock(rule) else ""),
        direction=rule.direction,
        mode=mode,
        value=median,
        operations=len(measured),
        minimum=min(measured),
        median=median,
        mean=statistics.fmean(measured),
    )


def _clock_unit(mode: Mode) -> str:
    return "ns" if mode not in EXACT_MODES or mode is Mode.EXACT_PARALLEL else "instructions"


def values(workload: str, rule: MetricRule, results: Iterable[StepResult]) -> list[float]:
    """Every number that the rule finds in the runs, at least one in each. Raises MetricNotFound."""
    find = _by_regex if rule.regex else _by_json
    return [number for result in results for number in find(workload, rule, result)]


def _by_regex(workload: str, rule: MetricRule, result: StepResult) -> list[float]:
    """In standard output and in standard error: many programs print their figures there."""
    matches = list(re.finditer(rule.regex, f"{result.stdout}\n{result.stderr}", re.MULTILINE))
    if not matches:
        raise _not_found(workload, rule, result, f"nothing matches {rule.regex!r}")
    return [
        _number(workload, rule, result, match[1], f"{match[0].strip()!r} in its output") for match in matches
    ]


def _by_json(workload: str, rule: MetricRule, result: StepResult) -> list[float]:
    try:
        value = json.loads(result.stdout)
    except json.JSONDecodeError as error:
        raise _not_found(workload, rule, result, f"its output is no JSON ({error})") from None
    way = ""
    for key in rule.json_path.split("."):
        way = f"{way}.{key}" if way else key
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise _not_found(workload, rule, result, f"there is no {way!r} in the JSON") from None
    numbers = value if isinstance(value, list) and value else [value]
    where = f"{rule.json_path} in the JSON that it printed"
    return [_number(workload, rule, result, number, where) for number in numbers]


def _number(workload: str, rule: MetricRule, result: StepResult, value: object, where: str) -> float:
    plain = isinstance(value, int | float | str) and not isinstance(value, bool)
    try:
        number = float(str(value)) if plain else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    facts = {"where": where, "value": json.dumps(value), "said": last_words(result)}
    raise MetricNotANumber(workload=workload, metric=rule.name, **facts)


def _not_found(workload: str, rule: MetricRule, result: StepResult, problem: str) -> MetricNotFound:
    return MetricNotFound(workload=workload, metric=rule.name, problem=problem, said=last_words(result))
