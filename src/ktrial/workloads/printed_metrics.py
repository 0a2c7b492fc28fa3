"""Metrics of a command that prints what a known program prints: fio's JSON, sysbench's report."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ktrial import program_outputs
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import EXACT_MODES, Command, MetricRule, Mode, Sample
from ktrial.program_outputs import FormatNotKnown, Measured, OutputError, Report
from ktrial.program_outputs.protocol import is_by_clock
from ktrial.target import StepResult
from ktrial.workloads.errors import BadCommand, BadOutput, MetricNotFound
from ktrial.workloads.program_runs import last_words

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
    reports = [_report(label, rule, result).named() for result in results]
    if rule.metric:
        for report, result in zip(reports, results, strict=True):
            _check_there(label, rule, report, result)
        return (_sample(label, rule.name, mode, [report[rule.metric] for report in reports]),)
    common = [name for name in reports[0] if all(name in report for report in reports)]
    if len(common) > MOST_METRICS:
        problem = (
            f"it tells of {len(common)} metrics, where {MOST_METRICS} are the most; name those that count: "
            f'metrics = [{{ format = "{rule.format}", metric = "…" }}]'
        )
        raise BadOutput(workload=label, problem=problem)
    if not common:
        raise _missing(label, rule, results[0], "no metric is in every run")
    return tuple(_sample(label, name, mode, [report[name] for report in reports]) for name in common)


def _check_there(label: str, rule: MetricRule, report: dict[str, Measured], result: StepResult) -> None:
    if rule.metric not in report:
        known = ", ".join(list(report)[:20])
        problem = f"{rule.format} tells of no {rule.metric}{nearest(rule.metric, report)}; it tells: {known}"
        raise _missing(label, rule, result, problem)


def _report(label: str, rule: MetricRule, result: StepResult) -> Report:
    """What standard output tells, or else standard error. What failed in it is an error."""
    format = program_outputs.find(rule.format)
    text = next((each for each in (result.stdout, result.stderr) if format.recognises(each)), None)
    if text is None:
        problem = (
            f"nothing in it looks like what is printed by: {format.summary}; it ends with "
            f"{last_words(result)[-_LONGEST_QUOTE:]!r}"
        )
        raise _missing(label, rule, result, problem)
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


def _missing(label: str, rule: MetricRule, result: StepResult, problem: str) -> MetricNotFound:
    metric = rule.name or rule.format
    return MetricNotFound(workload=label, metric=metric, problem=problem, said=last_words(result))


def _sample(label: str, name: str, mode: Mode, runs: list[Measured]) -> Sample:
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
    reports = [_report(label, rule, result) for result in results]
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
