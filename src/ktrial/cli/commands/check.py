"""`ktrial check` and `check baseline`: is a kernel within a limit of another one?"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import (
    BadOption,
    BadUsage,
    CommandWithSource,
    Option,
    command_group,
    examples,
    users_command,
)
from ktrial.cli.console import append_text, output, print_json, print_texts, say
from ktrial.cli.error_handling import code_of
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.arguments import Arguments, named_by
from ktrial.cli.options.common import Json, StoreOption, Verbose, on_fleet, on_fleet_in_bisection
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.kernel_measurement import (
    CommandMeasurementOptions,
    KernelOptions,
    KernelSelection,
    Limits,
    MeasurementOptions,
)
from ktrial.cli.options.workloads import workload_names_of
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import DAMAGED, open_existing, open_store, registry, tell_left_out
from ktrial.format import number_format
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.experiment.regression_check import Baseline
    from ktrial.model.regression_check import RegressionCheck
    from ktrial.studyfile.tree_rules import TreeRules

Summary = Annotated[
    Path | None,
    typer.Option("--summary", metavar="FILE.md", help="Append the result as Markdown, for a pull request."),
]


@examples(
    "ktrial check 6.1 6.12",
    "ktrial check --against before --source . fork,pipe --max +1%",
    "ktrial check 6.12 path:vmlinux -- ./bench.sh",
)
@on_fleet_in_bisection
def check(
    context: typer.Context,
    *,
    arguments: Arguments = None,
    against: str | None = Option(
        None,
        metavar="BASELINE",
        help="What to compare with: a saved baseline or a kernel; else the first of two kernels.",
        autocompletion=kernel_names,
    ),
    kernel: KernelOptions,
    options: CommandMeasurementOptions,
    maximum: Limits = None,
    top: int = Option(5, min=0, metavar="N", help="Functions to show for each change."),
    route: bool | None = Option(
        None,
        "--route/--no-route",
        help="Measure on 4 simulated CPUs, too; else what one CPU cannot tell.",
        show_default=False,
    ),
    find: bool = Option(False, "--find", help="If nothing ran the change: find what does."),
    summary: Summary = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Measure a kernel against an older one, for CI and git bisect.

    Name the older kernel first, or a saved baseline: --against. Then name workloads (else the set quick), or
    a command of your own: -- COMMAND. Stored trials are not run again. What ktrial accept let stay is allowed
    on top of --max.

    Exit codes, as git bisect run wants them: 0 within the limit; 1 beyond it; 125 if the kernel does not
    build or boot, its workload fails, or nothing can be decided; 2 for a mistake on the command line; 128 or
    more for a problem that says nothing about the kernel.
    """
    named = named_by(arguments)
    older, tested = _older_and_tested(named.kernels, against, kernel)
    words, workloads = users_command(context), [*named.workloads, *(options.workload or ())]
    if not words and _is_kernel(older):
        rules = _rules(tested.source) if not (workloads and maximum) else None
        workloads = workloads or [*(rules.workloads if rules else ())] or ["quick"]
        if rules and not maximum:
            maximum = rules.options(workload_names_of(workloads))
    options = replace(options, words=words, workload=workloads or None)
    check_and_print(
        tested.selection(),
        older,
        options,
        maximum or [],
        top=top,
        route=route,
        find=find,
        summary=summary,
        verbose=verbose,
        json=json,
    )


def _older_and_tested(
    kernels: Sequence[str], against: str | None, options: KernelOptions
) -> tuple[str, KernelOptions]:
    """The baseline, and the kernel to be measured against it. Raises BadUsage."""
    names = list(kernels)
    if against is None and names:
        against = names.pop(0)
    if options.kernel is None and options.source is None and names:
        options = replace(options, kernel=names.pop(0))
    if names:
        raise BadUsage(
            f"{', '.join(names)}: a check compares two kernels.",
            hint="ktrial check OLD NEW WORKLOAD; ktrial compare takes more kernels",
        )
    if against is None or (options.kernel is None and options.source is None):
        raise BadUsage(
            "Which kernel is measured, and against which?",
            hint="ktrial check 6.1 6.12; or --against BASELINE, --source DIR",
        )
    return against, options


def _rules(source: str | None) -> "TreeRules | None":
    """What the `.ktrial.toml` of the tree says, of whatever paths; None without one. Raises as `rules_in`."""
    from ktrial.kernels.errors import SourceUnusable
    from ktrial.studyfile.tree_rules import NAME, rules_in
    from ktrial.workloads import DEFAULT, DISK

    rules = None
    with suppress(SourceUnusable):  # what is wrong with a source is told where it is built
        rules = rules_in(source, (*DEFAULT, *DISK)) if source is not None else None
    if rules is None or not rules.rules:
        return None
    say(f"{NAME}: {'; '.join(map(str, rules.rules))}")
    return rules


def _is_kernel(name: str) -> bool:
    """Whether it is spelled as a kernel, which no baseline is called like."""
    from ktrial.experiment.regression_check import HOST
    from ktrial.kernels.providers import full_name

    return ":" in full_name(name) or name == HOST


def check_and_print(
    tested: KernelSelection,
    against: str,
    options: MeasurementOptions,
    maximum: list[str],
    *,
    top: int,
    route: bool | None = None,
    find: bool = False,
    summary: Path | None,
    verbose: bool,
    json: bool,
) -> None:
    """Check, print, and end with the decision's exit code: the worse one's, of one CPU and of several.

    `route`: whether all workloads are measured on several CPUs, too; None: those whose difference rests on
    functions that lock memory. `find`: look for workloads that run the change where none of these did.
    """
    from ktrial.cli.render.regression_check import as_json, as_markdown, print_check
    from ktrial.experiment import regression_check

    check_first(
        kernels=(tested.kernel, against),
        builds=tested.builds,
        workloads=options.workload,
        words=options.words,
        jobs=options.jobs,
    )
    if route and not _is_kernel(against):
        raise BadOption("--route", "a saved baseline was measured on one CPU: give a kernel to --against")
    if route and (options.after or options.skip_start):
        raise BadOption(
            "--route", "on several CPUs whole runs are counted: leave out --after and --skip-start"
        )
    if options.cpus not in {None, 1}:
        if route:
            raise BadOption("--route", "it compares one CPU with several: leave out --cpus")
        route = False
    if route:
        check_first(kind=regression_check.ON_SEVERAL)
    result = _checked(tested, against, options, maximum, route=route, find=find)
    if summary:
        append_text(summary, as_markdown(result, top))
    if json:
        print_json(as_json(result))
    else:
        print_check(result, top, output(), whole=verbose)
    raise typer.Exit(code_of(regression_check.worst(result.decisions)))


def _checked(
    tested: KernelSelection,
    against: str,
    options: MeasurementOptions,
    maximum: list[str],
    *,
    route: bool | None,
    find: bool,
) -> "RegressionCheck":
    from ktrial.analysis.fidelity_citation import known
    from ktrial.cli.progress import progress
    from ktrial.cli.running.regressions import record_check
    from ktrial.cli.running.series import built_in_candidates
    from ktrial.experiment import regression_check
    from ktrial.experiment import regression_check as baselines
    from ktrial.model.regression_check import Decision
    from ktrial.series.run import find_telling
    from ktrial.workloads.tours import NAMES as TOURS

    with open_store(options.store) as store, progress() as observer:
        runs = kernel_measurement.runs(store, observer, options.jobs)
        if _is_kernel(against):
            name = registry().kernel_name(against)
            measured = kernel_measurement.measurement(options)
            limits = kernel_measurement.limits(maximum, measured.workloads)
            # Both kernels are at hand before anything is booted.
            before, kernel = baselines.kernel_named(name, runs), tested.obtained(runs)
            baseline = baselines.of_kernel(before, measured, runs)
        else:
            before = None
            baseline = baselines.find_baseline(against, store)
            measured = kernel_measurement.measurement_like(baseline, options)
            limits = kernel_measurement.limits(maximum, measured.workloads)
            kernel = tested.obtained(runs)
        checked = regression_check.check(kernel, baseline, measured, limits, runs)
        if before and route is not False:
            checked = regression_check.routed(
                checked, kernel, before, measured, limits, runs, whole=bool(route)
            )
        if before and find and regression_check.worst(checked.decisions) is Decision.NOT_EXECUTED:
            telling = find_telling((before, kernel), built_in_candidates(), TOURS, measured, runs)
            checked = replace(checked, telling=tuple(use.label for use in telling))
        return replace(record_check(store, checked, "check"), fidelity=known(store))


app = command_group("Save what a kernel costs, for later checks.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The baseline's name.")]


@app.declare("save", CommandWithSource)
@examples(
    "ktrial check baseline save before 6.12 fork,pipe",
    "ktrial check baseline save before --source . fork",
)
@on_fleet
def save(
    name: Name,
    kernel: KernelOptions,
    options: MeasurementOptions,
    arguments: Arguments = None,
    json: Json = False,
) -> None:
    """Measure a kernel now, and keep the numbers.

    A baseline that has the name already is replaced.
    """
    from ktrial.cli.progress import progress
    from ktrial.experiment import regression_check as baselines

    baselines.check_name(name)
    named = named_by(arguments)
    if len(named.kernels) > 1 or (named.kernels and (kernel.kernel or kernel.source)):
        problem = f"{', '.join(named.kernels)}: a baseline has one kernel."
        raise BadUsage(problem, hint="save a baseline for each kernel, each with a name of its own")
    if named.kernels:
        kernel = replace(kernel, kernel=named.kernels[0])
    options = replace(options, workload=[*named.workloads, *(options.workload or ())] or None)
    selection = kernel.selection()
    check_first(
        kernels=(selection.kernel,), builds=selection.builds, workloads=options.workload, jobs=options.jobs
    )
    measured = kernel_measurement.measurement(options)
    with open_store(options.store) as store, progress() as observer:
        runs = kernel_measurement.runs(store, observer, options.jobs)
        saved = baselines.save_baseline(name, selection.obtained(runs), measured, runs)
    _show(saved, json)


@app.declare("show")
@examples("ktrial check baseline show before")
def show(name: Name, json: Json = False, store: StoreOption = None) -> None:
    """Show a baseline's numbers, and all that they depend on."""
    from ktrial.experiment.regression_check import find_baseline

    with open_existing(store) as opened:
        baseline = find_baseline(name, opened)
    _show(baseline, json)


@app.declare("list")
@examples("ktrial check baseline list")
def list_baselines(json: Json = False, store: StoreOption = None) -> None:
    """Show the baselines in the store.

    Exit code 1: a baseline is damaged. It is named, and the others are listed.
    """
    from ktrial.experiment import regression_check as baselines

    with open_existing(store) as opened:
        stored, damaged = baselines.all_baselines(opened)
    if json:
        print_json([_data(baseline) for baseline in stored])
    elif not (stored or damaged):
        say("there are no baselines yet; save one: ktrial check baseline save NAME 6.12 fork")
    elif stored:
        rows = (
            (
                baseline.label,
                baseline.kernel,
                ", ".join(use.label for use in baseline.record.study.workloads),
                f"{baseline.record.created:%Y-%m-%d %H:%M}",
            )
            for baseline in stored
        )
        print_texts(("name", "kernel", "workloads", "saved"), rows)
    if tell_left_out([f"baseline {name}" for name in damaged], "listed"):
        raise typer.Exit(DAMAGED)


@app.declare("remove")
@examples("ktrial check baseline remove before")
def remove(name: Name, store: StoreOption = None) -> None:
    """Remove a baseline from the store."""
    from ktrial.experiment import regression_check as baselines

    with open_existing(store) as opened:
        baselines.remove_baseline(name, opened)
    print(f"removed {name}")


def _show(baseline: "Baseline", json: bool) -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import facts

    if json:
        print_json(_data(baseline))
        return
    console = output()
    console.print(rendered(facts({name: one_line(value) for name, value in _facts(baseline).items()})))
    console.print()
    rows = (
        (
            workload,
            f"{metric} [{unit}]" if unit not in ("", metric) and not number_format.is_time(unit) else metric,
            number_format.quantity(min(values), unit),
            number_format.quantity(max(values), unit),
        )
        for (workload, metric, unit), values in _values(baseline).items()
    )
    print_texts(("workload", "metric", "least", "most"), rows, numeric=("least", "most"))


def _facts(baseline: "Baseline") -> dict[str, str]:
    """What the numbers depend on: a check refuses to compare across most of it."""
    record = baseline.record
    origin = record.trials[0].provenance
    settings = record.study.machine
    return {
        "name": baseline.label,
        "saved": f"{record.created:%Y-%m-%d %H:%M} UTC",
        "kernel": f"{baseline.kernel} ({origin.kernel_release})",
        "content": origin.kernel_digest,
        "machine": f"{origin.machine}, {settings.memory_mib} MiB, CPUs: {settings.cpus}",
        "QEMU": origin.qemu,
        "CPU model": origin.cpu_model,
        "command line": origin.command_line,
        "guest agent": origin.agent_digest,
        "mode": ", ".join(sorted({s.mode.value for trial in record.trials for s in trial.samples})),
        "perturbations": str(record.study.perturbations),
        "ktrial": origin.ktrial,
    }


def _values(baseline: "Baseline") -> dict[tuple[str, str, str], list[float]]:
    """Workload, metric and unit → its values, in the order of perturbations."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for trial in sorted(baseline.record.trials, key=lambda trial: trial.planned.perturbation.number):
        for sample in trial.samples:
            values.setdefault((sample.workload, sample.metric, sample.unit), []).append(sample.value)
    return values


def _data(baseline: "Baseline") -> dict[str, Any]:
    numbers = [
        {"workload": workload, "metric": metric, "unit": unit, "values": values}
        for (workload, metric, unit), values in _values(baseline).items()
    ]
    return {**_facts(baseline), "study": baseline.record.id, "numbers": numbers}
