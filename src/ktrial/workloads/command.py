"""Any command of the user's as a workload, with the program and the files that it needs."""

import json
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ktrial import program_outputs
from ktrial.model.design import Perturbation
from ktrial.model.machine import CarriedFile
from ktrial.model.notation import nearest
from ktrial.model.profile import Marking, RegionCounts
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
from ktrial.program_outputs import FormatNotKnown, Measured, OutputError, Report, is_by_clock
from ktrial.target import Step, StepResult
from ktrial.workloads.errors import (
    BadCommand,
    BadOutput,
    MetricNotANumber,
    MetricNotFound,
    NoMarkedRegion,
    WrongMarks,
)
from ktrial.workloads.host_files import (
    directories,
    expanded,
    program_path,
    with_all_they_need,
    with_links_kept,
)
from ktrial.workloads.protocol import MarkedRegion, beside_instructions, ended_well, last_words, run_step

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


# A command's own marks: what was counted of its runs, and what is wrong with the marks.
#
# docs/architecture/guest-protocol.md has the marks, crates/insn/src/region.rs what is counted between them.


def counted_runs(label: str, results: Sequence[StepResult]) -> list[RegionCounts]:
    """What was counted of each run. Raises NoMarkedRegion where nothing was, and WrongMarks."""
    counts = [_region_counts(label, result) for result in results]
    marked = sum(marks_operations(each) for each in counts)
    if 0 < marked < len(counts):
        problem = f"{marked} of its {len(counts)} runs mark regions, the others none"
        raise WrongMarks(workload=label, problem=problem)
    return counts


def marks_operations(counts: RegionCounts) -> bool:
    """Whether the program marks regions of its own; else the whole run is one operation."""
    return counts.marking.regions > 0


def each_operation(label: str, counts: RegionCounts) -> list[float]:
    """Instructions of each operation of a run, in order. Raises NoMarkedRegion."""
    operations = counts.operations
    each = (operations.total,) if operations.count == 1 else operations.vector
    if each is None:
        raise NoMarkedRegion(workload=label, problem="each operation's count was not asked for")
    return [float(count) for count in each]


def median_run(runs: Sequence[RegionCounts]) -> MarkedRegion:
    """The run whose operations' median is the median (the lower of two), and its operations."""
    ranked = sorted(runs, key=lambda counts: counts.operations.median)
    chosen = ranked[(len(ranked) - 1) // 2]
    return MarkedRegion(chosen, chosen.operations.count)


def warnings_of(label: str, results: Sequence[StepResult]) -> tuple[DataWarning, ...]:
    """What of the marks may not be meant, in runs that are counted all the same."""
    markings = [result.region.marking for result in results if result.region]
    loose = sum(marking.loose_operations for marking in markings)
    foreign = sum(marking.foreign for marking in markings)
    warnings = []
    if loose:
        text = f"{label}: {loose} operations that it marks outside of its regions do not count"
        warnings.append(_marks_warning(text, "begin the region before them, or leave them unmarked"))
    if foreign:
        text = (
            f"{label}: {foreign} marks came from another thread or process than the one that began the "
            "region; an operation goes from one mark to the next, whoever marked"
        )
        warnings.append(_marks_warning(text, "mark in one thread only"))
    return tuple(warnings)


def _marks_warning(text: str, advice: str) -> DataWarning:
    return DataWarning(kind=WarningKind.MARKS, text=text, advice=advice)


def _region_counts(label: str, result: StepResult) -> RegionCounts:
    if result.region is None:
        raise NoMarkedRegion(workload=label, problem="nothing was counted of one of its runs")
    problem = _marks_problem(result.region.marking)
    if problem:
        raise WrongMarks(workload=label, problem=problem)
    if not result.region.whole:
        raise NoMarkedRegion(workload=label, problem="nothing was counted of one of its runs")
    if not result.region.instructions:
        raise WrongMarks(workload=label, problem="it marks a region with nothing in it")
    return result.region


def _marks_problem(marking: Marking) -> str:
    """What cannot be counted; empty where all can be."""
    problems = {
        "regions that begin before the last one has ended (nested, or of several threads or processes)": (
            marking.nested
        ),
        "ends of regions that have not begun": marking.loose_ends,
        "regions that have not ended when the program does": marking.unclosed,
        "operations or regions beyond what is kept (4,194,304 operations and 16,384 regions a run)": (
            marking.dropped
        ),
        "operations without a region": 0 if marking.regions else marking.loose_operations,
    }
    return next((f"{what}: {count:,}" for what, count in problems.items() if count), "")


# Metrics of a command that prints what a known program prints: fio's JSON, sysbench's report.

MOST_METRICS = 200


_LONGEST_NAME = 200


_MOST_NOTES = 5


_LONGEST_QUOTE = 80


def check_format(workload: str, rule: MetricRule) -> None:
    """Raise BadCommand where the rule's format is not known, or says less than it has to."""
    if rule.format:
        try:
            program_outputs.find(rule.format)
        except FormatNotKnown as error:
            raise BadCommand(workload=workload, problem=error.message.removesuffix(".")) from None
    elif not rule.name:
        raise BadCommand(workload=workload, problem="a metric has no name")


def printed_samples(
    label: str, rule: MetricRule, mode: Mode, results: Sequence[StepResult]
) -> tuple[Sample, ...]:
    """A sample of each metric that every run tells; its values are those of all runs.

    Raises MetricNotFound, BadOutput.
    """
    reports = [_printed_report(label, rule, result).named() for result in results]
    if rule.metric:
        for report, result in zip(reports, results, strict=True):
            _check_there(label, rule, report, result)
        return (_printed_sample(label, rule.name, mode, [report[rule.metric] for report in reports]),)
    common = [name for name in reports[0] if all(name in report for report in reports)]
    if len(common) > MOST_METRICS:
        problem = (
            f"it tells of {len(common)} metrics, where {MOST_METRICS} are the most; name those that count: "
            f'metrics = [{{ format = "{rule.format}", metric = "…" }}]'
        )
        raise BadOutput(workload=label, problem=problem)
    if not common:
        raise _printed_missing(label, rule, results[0], "no metric is in every run")
    return tuple(_printed_sample(label, name, mode, [report[name] for report in reports]) for name in common)


def _check_there(label: str, rule: MetricRule, report: dict[str, Measured], result: StepResult) -> None:
    if rule.metric not in report:
        known = ", ".join(list(report)[:20])
        problem = f"{rule.format} tells of no {rule.metric}{nearest(rule.metric, report)}; it tells: {known}"
        raise _printed_missing(label, rule, result, problem)


def _printed_report(label: str, rule: MetricRule, result: StepResult) -> Report:
    """What standard output tells, or else standard error. What failed in it is an error."""
    format = program_outputs.find(rule.format)
    text = next((each for each in (result.stdout, result.stderr) if format.recognises(each)), None)
    if text is None:
        problem = (
            f"nothing in it looks like what is printed by: {format.summary}; it ends with "
            f"{last_words(result)[-_LONGEST_QUOTE:]!r}"
        )
        raise _printed_missing(label, rule, result, problem)
    try:
        report = format.read(text)
    except OutputError as error:
        problem = error.message.removesuffix(".")
        raise BadOutput(workload=label, problem=problem, hint=error.advice) from None
    for failed in report.failures:
        raise BadOutput(workload=label, problem=failed.text, hint=failed.advice)
    for name in report.named():
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise BadOutput(workload=label, problem=f"a name that no metric can have: {name[:40]!r}")
    return report


def _printed_missing(label: str, rule: MetricRule, result: StepResult, problem: str) -> MetricNotFound:
    metric = rule.name or rule.format
    return MetricNotFound(workload=label, metric=metric, problem=problem, said=last_words(result))


def _printed_sample(label: str, name: str, mode: Mode, runs: list[Measured]) -> Sample:
    values = [value for run in runs for value in run.values]
    median = statistics.median(values)
    return Sample(
        workload=label,
        metric=name,
        unit=runs[0].unit,
        direction=runs[0].direction,
        # The program has found it out by itself: it is not what the plugin counts.
        mode=Mode.EXACT_CLOCK if mode is Mode.EXACT_PLUGIN else mode,
        value=median,
        operations=len(values),
        minimum=min(values),
        median=median,
        mean=statistics.fmean(values),
    )


def printed_warnings(
    label: str, rules: Sequence[MetricRule], results: Sequence[StepResult]
) -> tuple[DataWarning, ...]:
    """What the formats say about outputs that are good all the same."""
    told = dict.fromkeys(note for rule in rules if rule.format for note in _notes(label, rule, results))
    return tuple(
        DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=f"{label}: {note.text}", advice=note.advice)
        for note in list(told)[:_MOST_NOTES]
    )


def _notes(label: str, rule: MetricRule, results: Sequence[StepResult]) -> Iterator[program_outputs.Told]:
    reports = [_printed_report(label, rule, result) for result in results]
    for report in reports:
        yield from (replace(note) for note in report.notes)
    names = dict.fromkeys(name for report in reports for name in report.named())
    for name in names:
        if not rule.metric and any(name not in report.named() for report in reports):
            yield program_outputs.Told(f"{name} is not in every run's output: it is left out")


def guest_time_warnings(
    command: Command | None, samples: Sequence[Sample], mode: Mode
) -> tuple[DataWarning, ...]:
    """In exact mode: that the times and rates that a program tells are by the guest's clock."""
    formats = [rule for rule in command.metrics if rule.format] if command else []
    if mode not in EXACT_MODES or not formats:
        return ()
    own = {rule.name for rule in command.metrics if not rule.format} if command else set()
    timed = [each for each in samples if each.metric not in own and is_by_clock(each.unit)]
    if not timed:
        return ()
    names = f"{timed[0].metric} is" if len(timed) == 1 else f"{timed[0].metric} and others are"
    text = (
        f"{timed[0].workload}: {names} by the guest's clock, on which an instruction takes 1 ns, and "
        "waiting costs nothing: no times of any hardware"
    )
    advice = (
        "they rank the kernels' work; times are to be measured in real time (machine host or kvm), and "
        "without metrics the instructions of a whole run are counted"
    )
    return (DataWarning(kind=WarningKind.GUEST_TIME, text=text, advice=advice),)
