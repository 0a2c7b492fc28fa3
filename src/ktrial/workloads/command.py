"""Any command of the user's as a workload: its files, its runs, and the metrics in what it prints or marks.

Without metrics the whole run is measured. A program may mark operations of its own: the marks are in
docs/architecture/guest-protocol.md, what is counted between them in crates/insn/src/region.rs. What it prints
is read by a format of `program_outputs`, a regular expression, or a path into its JSON.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence

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
from ktrial.program_outputs import FormatNotKnown, Note, OutputError, Report, is_by_clock
from ktrial.target import Step, StepResult
from ktrial.workloads.errors import BadOutput, BadWorkload, NoMarkedRegion, WorkloadError, WrongMarks
from ktrial.workloads.host_files import (
    directories,
    expanded,
    program_path,
    with_all_they_need,
    with_links_kept,
)
from ktrial.workloads.later_start import (
    AFTER_SET_UP,
    begins_later,
    problem_of_start,
    refuse_never_begun,
    refuse_uncounted,
    set_up_note,
    watched,
    watching_files,
)
from ktrial.workloads.protocol import (
    MarkedRegion,
    beside_instructions,
    ended_well,
    last_words,
    run_step,
    sample_of,
)

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
MOST_METRICS = 200
_LONGEST_NAME = 200
_MOST_NOTES = 5
_LONGEST_QUOTE = 80
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

        Raises WorkloadError.
        """
        command = _command(use)
        program = program_path(use.label, command.argv[0])
        if command.keep_links:
            carried = with_links_kept(use.label, program, command.files)
        else:
            carried = with_all_they_need(use.label, (program, *command.files))
        return (*directories(command.directories), *carried, *watching_files(command))

    def program(self, workload: str, name: str) -> str:
        """The path of what is started. Raises WorkloadError."""
        return program_path(workload, name)

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """The runs that are discarded, then the repeats. Raises WorkloadError: there is no such program."""
        command = _command(use)
        argv = (self.program(use.label, command.argv[0]), *command.argv[1:])
        environment, directory = ENVIRONMENT | command.environment, command.directory or "/tmp"
        run = run_step(argv, perturbation, environment, directory=directory, user=command.user)
        if begins_later(command):
            refuse_uncounted(use.label, mode)
        return (run,) * command.discarded + (watched(run, command),) * command.repeats

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        """One sample a metric. Raises WorkloadError where a run failed, or a metric is not in its output."""
        command = _command(use)
        expected = command.discarded + command.repeats
        measured = list(ended_well(use.label, results, expected=expected)[command.discarded :])
        if begins_later(command):
            refuse_never_begun(use.label, command, measured)
        if mode is Mode.EXACT_PLUGIN:
            runs = counted_runs(use.label, measured)
            # Where the program marks operations, the value is the median of one of them.
            clock = OPERATION if marks_operations(runs[0]) else WALL_TIME
            if begins_later(command):
                clock = AFTER_SET_UP
            clock_values = [count for run in runs for count in each_operation(use.label, run)]
        else:
            runs, clock = [], WALL_TIME
            clock_values = [float(result.wall_ns) for result in measured]
        samples: list[Sample] = []
        for rule in command.metrics or (clock,):
            if rule.format:
                samples += printed_samples(use.label, rule, mode, measured)
                continue
            is_clock = not rule.regex and not rule.json_path
            clock_unit = "ns" if mode not in EXACT_MODES or mode is Mode.EXACT_PARALLEL else "instructions"
            unit = rule.unit or (clock_unit if is_clock else "")
            metric = Metric(name=rule.name, unit=unit, direction=rule.direction)
            numbers = clock_values if is_clock else values(use.label, rule, measured)
            samples.append(sample_of(use.label, metric, mode, numbers))
        if runs and not command.metrics:
            samples += beside_instructions(use.label, median_run(runs))
        return tuple(samples)

    def region(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> MarkedRegion:
        """Of the run that is the median: from its start to its end, as one operation.

        A program that marks regions of its own has those instead. Raises NoMarkedRegion, WrongMarks.
        """
        return median_run(counted_runs(use.label, results[_command(use).discarded :]))

    def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
        """What its marks say that may not be meant, and which of its files could not be carried."""
        command, label = _command(use), use.label
        marks = warnings_of_marks(label, results[command.discarded :])
        set_up = set_up_note(label, command, results)
        captured = tuple(
            DataWarning(kind=WarningKind.CAPTURED, text=f"{label}: {note}") for note in command.notes
        )
        printed = printed_warnings(label, command.metrics, results[command.discarded :])
        left_out = expanded(label, command.files, keep_links=command.keep_links).left_out
        files: tuple[DataWarning, ...] = ()
        if left_out:
            some = ", ".join(f"{path} ({kind})" for path, kind in list(left_out.items())[:3])
            text = f"{label}: {len(left_out)} of what is in its directories is left out: {some}"
            advice = "files, directories and links are carried; remove the others from its files if they "
            files = (DataWarning(kind=WarningKind.FILES, text=text, advice=f"{advice}matter"),)
        return (*marks, *set_up, *captured, *printed, *files)

    def operations(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> int:
        """A run is an operation."""
        return len(results)


class RemoteCommand(CommandWorkload):
    """Runs what `use.command` says; its program is looked for on the machine that it runs on."""

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """None. Raises BadWorkload where the study wants some carried there."""
        if use.command and (use.command.files or use.command.directories):
            problem = "the machine ssh carries no files: put them there first"
            raise BadWorkload(f"Workload {use.label}: {problem}.")
        return ()

    def program(self, workload: str, name: str) -> str:
        """As it was named."""
        return name


WORKLOAD = CommandWorkload()


def check_command(use: WorkloadUse) -> None:
    """Raise BadWorkload where the command or one of its metric rules cannot be meant."""
    command = _command(use)
    problem = "" if command.argv and command.argv[0] else "the command is empty"
    problem = problem or problem_of_start(command)
    for rule in command.metrics:
        problem = problem or _problem_of(rule)
    if problem:
        raise BadWorkload(f"Workload {use.name}: {problem}.")


def _problem_of(rule: MetricRule) -> str:
    """Why a rule cannot find a number; empty where it may."""
    if rule.format:
        try:
            program_outputs.find(rule.format)
        except FormatNotKnown as error:
            return error.message.removesuffix(".")
    elif not rule.name:
        return "a metric has no name"
    if rule.regex and rule.json_path:
        return f"the metric {rule.name} has a regular expression and a JSON path; give one of them"
    if rule.regex:
        try:
            groups = re.compile(rule.regex).groups
        except re.error as error:
            return f"the metric {rule.name} has a bad regular expression, {rule.regex!r}: {error}"
        if groups != 1:
            return f"the regular expression of {rule.name} has {groups} groups; give one, round the number"
    return ""


def _command(use: WorkloadUse) -> Command:
    if use.command is None:
        raise BadWorkload(f"Workload {use.name}: it has no command.")
    return use.command


def values(workload: str, rule: MetricRule, results: Sequence[StepResult]) -> list[float]:
    """Every number that a regular expression or a JSON path finds in the runs, at least one in each.

    Raises WorkloadError.
    """
    numbers = []
    for result in results:
        where, texts = _by_regex(workload, rule, result) if rule.regex else _by_json(workload, rule, result)
        for place, text in zip(where, texts, strict=True):
            plain = isinstance(text, int | float | str) and not isinstance(text, bool)
            try:
                number = float(str(text)) if plain else math.nan
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise WorkloadError(
                    f"Workload {workload}: its {rule.name} is {json.dumps(text)}, read from {place}; "
                    "expected: a finite number.",
                    hint="let the command print a number, or exit with a status other than 0 where it has "
                    f"none: that run counts as failed. The output ends with: {last_words(result)}",
                )
            numbers.append(number)
    return numbers


def _by_regex(workload: str, rule: MetricRule, result: StepResult) -> tuple[list[str], list[object]]:
    """Places and texts, in standard output and in standard error: many programs print their figures there."""
    matches = list(re.finditer(rule.regex, f"{result.stdout}\n{result.stderr}", re.MULTILINE))
    if not matches:
        raise _not_there(workload, rule.name, result, f"nothing matches {rule.regex!r}")
    places = [f"{match[0].strip()!r} in its output" for match in matches]
    return places, [match[1] for match in matches]


def _by_json(workload: str, rule: MetricRule, result: StepResult) -> tuple[list[str], list[object]]:
    try:
        value = json.loads(result.stdout)
    except json.JSONDecodeError as error:
        raise _not_there(workload, rule.name, result, f"its output is not JSON ({error})") from None
    way = ""
    for key in rule.json_path.split("."):
        way = f"{way}.{key}" if way else key
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise _not_there(workload, rule.name, result, f"there is no {way!r} in the JSON") from None
    texts = value if isinstance(value, list) and value else [value]
    return [f"{rule.json_path} in the JSON that it printed"] * len(texts), texts


def _not_there(workload: str, metric: str, result: StepResult, problem: str) -> WorkloadError:
    message = f"Workload {workload}: the metric {metric} is not in what it printed: {problem}."
    return WorkloadError(message, hint=f"the output ends with: {last_words(result)}")


def counted_runs(label: str, results: Sequence[StepResult]) -> list[RegionCounts]:
    """What was counted of each run. Raises NoMarkedRegion where nothing was, and WrongMarks."""
    counts = [_region_counts(label, result) for result in results]
    marked = sum(marks_operations(count) for count in counts)
    if 0 < marked < len(counts):
        problem = f"{marked} of its {len(counts)} runs mark regions, the others none"
        raise WrongMarks(label, problem)
    return counts


def marks_operations(counts: RegionCounts) -> bool:
    """Whether the program marks regions of its own; else the whole run is one operation."""
    return counts.marking.regions > 0


def each_operation(label: str, counts: RegionCounts) -> list[float]:
    """Instructions of each operation of a run, in order. Raises NoMarkedRegion."""
    operations = counts.operations
    instructions = (operations.total,) if operations.count == 1 else operations.vector
    if instructions is None:
        raise NoMarkedRegion(label, "each operation's count was not asked for")
    return [float(count) for count in instructions]


def median_run(runs: Sequence[RegionCounts]) -> MarkedRegion:
    """The run whose operations' median is the median (the lower of two), and its operations."""
    ranked = sorted(runs, key=lambda counts: counts.operations.median)
    chosen = ranked[(len(ranked) - 1) // 2]
    return MarkedRegion(chosen, chosen.operations.count)


def _region_counts(label: str, result: StepResult) -> RegionCounts:
    if result.region is None:
        raise NoMarkedRegion(label, "nothing was counted of one of its runs")
    problem = _marks_problem(result.region.marking)
    if problem:
        raise WrongMarks(label, problem)
    if not result.region.whole:
        raise NoMarkedRegion(label, "nothing was counted of one of its runs")
    if not result.region.instructions:
        raise WrongMarks(label, "it marks a region with nothing in it")
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
    return next((f"{problem}: {count:,}" for problem, count in problems.items() if count), "")


def warnings_of_marks(label: str, results: Sequence[StepResult]) -> Iterator[DataWarning]:
    """What of the marks may not be meant, in runs that are counted all the same."""
    markings = [result.region.marking for result in results if result.region]
    if loose := sum(marking.loose_operations for marking in markings):
        yield DataWarning(
            kind=WarningKind.MARKS,
            text=f"{label}: {loose} operations that it marks outside of its regions do not count",
            advice="begin the region before them, or leave them unmarked",
        )
    if foreign := sum(marking.foreign for marking in markings):
        yield DataWarning(
            kind=WarningKind.MARKS,
            text=f"{label}: {foreign} marks came from another thread or process than the one that began the "
            "region; an operation goes from one mark to the next, whoever marked",
            advice="mark in one thread only",
        )


def printed_samples(label: str, rule: MetricRule, mode: Mode, results: Sequence[StepResult]) -> list[Sample]:
    """A sample of each metric that every run tells, or of the rule's; its values are those of all runs.

    Raises WorkloadError.
    """
    reports = [_report(label, rule, result).named() for result in results]
    if rule.metric:
        for report, result in zip(reports, results, strict=True):
            if rule.metric not in report:
                similar, names = nearest(rule.metric, report), ", ".join(list(report)[:20])
                problem = f"{rule.format} tells of no {rule.metric}{similar}; it tells: {names}"
                raise _not_there(label, rule.name or rule.format, result, problem)
        metrics = {rule.name: [report[rule.metric] for report in reports]}
    else:
        common = [name for name in reports[0] if all(name in report for report in reports)]
        if len(common) > MOST_METRICS:
            problem = (
                f"it tells of {len(common)} metrics, where {MOST_METRICS} are the most; name those that "
                f'count: metrics = [{{ format = "{rule.format}", metric = "…" }}]'
            )
            raise BadOutput(label, problem)
        if not common:
            raise _not_there(label, rule.name or rule.format, results[0], "no metric is in every run")
        metrics = {name: [report[name] for report in reports] for name in common}
    # The program has found it out by itself: it is not what the plugin counts.
    mode = Mode.EXACT_CLOCK if mode is Mode.EXACT_PLUGIN else mode
    return [
        sample_of(
            label,
            Metric(name=name, unit=runs[0].unit, direction=runs[0].direction),
            mode,
            [value for run in runs for value in run.values],
        )
        for name, runs in metrics.items()
    ]


def _report(label: str, rule: MetricRule, result: StepResult) -> Report:
    """What standard output tells, or else standard error. What failed in it is an error."""
    format = program_outputs.find(rule.format)
    text = next((output for output in (result.stdout, result.stderr) if format.recognises(output)), None)
    if text is None:
        problem = (
            f"nothing in it looks like what is printed by: {format.summary}; it ends with "
            f"{last_words(result)[-_LONGEST_QUOTE:]!r}"
        )
        raise _not_there(label, rule.name or rule.format, result, problem)
    try:
        report = format.read(text)
    except OutputError as error:
        raise BadOutput(label, error.message.removesuffix("."), hint=error.advice) from None
    for failure in report.failures:
        raise BadOutput(label, failure.text, hint=failure.advice)
    for name in report.named():
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise BadOutput(label, f"a name that no metric can have: {name[:40]!r}")
    return report


def printed_warnings(
    label: str, rules: Sequence[MetricRule], results: Sequence[StepResult]
) -> tuple[DataWarning, ...]:
    """What the formats say about outputs that are good all the same."""
    notes = dict.fromkeys(note for rule in rules if rule.format for note in _notes(label, rule, results))
    return tuple(
        DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=f"{label}: {note.text}", advice=note.advice)
        for note in list(notes)[:_MOST_NOTES]
    )


def _notes(label: str, rule: MetricRule, results: Sequence[StepResult]) -> Iterator[Note]:
    reports = [_report(label, rule, result) for result in results]
    for report in reports:
        yield from report.notes
    for name in dict.fromkeys(name for report in reports for name in report.named()):
        if not rule.metric and any(name not in report.named() for report in reports):
            yield Note(f"{name} is not in every run's output: it is left out")


def guest_time_warnings(
    command: Command | None, samples: Sequence[Sample], mode: Mode
) -> tuple[DataWarning, ...]:
    """In exact mode: that the times and rates that a program tells are by the guest's clock."""
    formats = [rule for rule in command.metrics if rule.format] if command else []
    if mode not in EXACT_MODES or not formats:
        return ()
    by_rule = {rule.name for rule in command.metrics if not rule.format} if command else set()
    timed = [sample for sample in samples if sample.metric not in by_rule and is_by_clock(sample.unit)]
    if not timed:
        return ()
    names = f"{timed[0].metric} is" if len(timed) == 1 else f"{timed[0].metric} and others are"
    if mode is Mode.EXACT_PARALLEL:
        clock = "by simulated time, in which a CPU's instruction takes 1 ns: no times of any hardware"
        advice = (
            "they rank kernels and numbers of CPUs; times are to be measured in real time (machine host or "
            "kvm)"
        )
    else:
        clock = (
            "by the guest's clock, on which an instruction takes 1 ns, and waiting costs nothing: no times "
            "of any hardware"
        )
        advice = (
            "they rank the kernels' work; times are to be measured in real time (machine host or kvm), and "
            "without metrics the instructions of a whole run are counted"
        )
    text = f"{timed[0].workload}: {names} {clock}"
    return (DataWarning(kind=WarningKind.GUEST_TIME, text=text, advice=advice),)
