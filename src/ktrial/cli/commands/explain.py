"""`ktrial explain`, `explain counters` and `profile`: what kernels do, and what a difference is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ktrial.cli.command_line import BadOption, Option, examples, users_command
from ktrial.cli.console import breakable, check_writable, output, print_json, write_text
from ktrial.cli.error_handling import tell_warnings
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.arguments import Arguments, StudyOrKernels, named_by, named_with_study
from ktrial.cli.options.common import Jobs, Json, StoreOption, Verbose, on_fleet
from ktrial.cli.options.completion import (
    kernel_names,
    treatment_names,
    workload_names,
    workloads_of_study,
)
from ktrial.cli.options.counting import (
    CacheOptions,
    CountingOptions,
    DifferenceFiles,
    Exports,
    FlameGraph,
    Folded,
    export_files,
)
from ktrial.cli.options.kernel_measurement import CommandMeasurementOptions
from ktrial.cli.options.workloads import single_use
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import find, open_existing, open_store, registry
from ktrial.format import number_format
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.analysis.counters import CounterRow
    from ktrial.model.study import StudyRecord
    from ktrial.store.store import Store

_BOOT = "With --kernel: a boot parameter of {side} only; may be repeated."


@dataclass(frozen=True)
class ExplainOptions(CountingOptions):
    """Of which two treatments the difference is explained: of a study, or of kernels that are counted now."""

    arguments: StudyOrKernels = None
    study: str | None = None
    """The one that the arguments name."""
    workload: str | None = Option(
        None,
        metavar="W",
        help=("The workload to explain; else the only one."),
        autocompletion=workloads_of_study,
    )
    before: str | None = Option(
        None,
        "--from",
        metavar="A",
        help=("The first treatment; else the baseline."),
        autocompletion=treatment_names,
    )
    after: str | None = Option(
        None,
        "--to",
        metavar="B",
        help=("The second treatment; else the only other one."),
        autocompletion=treatment_names,
    )
    kernel: list[str] | None = Option(
        None,
        metavar="NAME",
        help="Instead of a study: a kernel to count now. Give it twice: from, to.",
        autocompletion=kernel_names,
    )
    from_boot: list[str] | None = Option(None, metavar="PARAMETER", help=_BOOT.format(side="the first"))
    to_boot: list[str] | None = Option(None, metavar="PARAMETER", help=_BOOT.format(side="the second"))
    no_values: bool = Option(False, "--no-values", help="Do not read the kernels' settings in their guests.")
    store: StoreOption = None


@dataclass(frozen=True)
class ProveOptions:
    """How the causes are proven."""

    prove: bool = Option(
        False, "--prove", help="Take the differences back, one at a time, and count the share of each."
    )
    perturbations: int = Option(
        3, min=1, max=1000, metavar="N", help="With --prove: perturbations of each trial."
    )
    budget: str | None = Option(
        None, metavar="10min", help="With --prove: the most CPU time of its trials, as estimated."
    )
    candidates: list[str] | None = Option(
        None, metavar="NAME", help="With --prove: try only these (HRTICK, 'vm.*'); may be repeated."
    )
    each_alone: bool = Option(
        False, "--each", help="With --prove: try each alone, even those of a group that changes nothing."
    )
    jobs: Jobs = None


@dataclass(frozen=True)
class CommitOptions:
    """The commits behind the difference."""

    commits: str | None = Option(
        None, metavar="git:DIR", help="List the commits of this tree that touch the difference."
    )
    range: str | None = Option(
        None, metavar="A..B", help="With --commits: these; else from one kernel to the other."
    )


@examples(
    "ktrial explain 6.1 7.2 fork --prove",
    "ktrial explain 6.1 7.2 --cpus 4 -- ./server",
    "ktrial explain my-study fork --from debian:6.1 --to debian:6.12",
)
@on_fleet
def explain(
    context: typer.Context,
    options: ExplainOptions,
    proving: ProveOptions,
    behind: CommitOptions,
    files: DifferenceFiles,
    lines: str | None = Option(None, metavar="FUNCTION", help="Open this row: count it by source line."),
    top: int = Option(20, min=1, metavar="N", help="With -v: how many functions to show."),
    verbose: Verbose = False,
    all_: bool = Option(False, "--all", help="Print all functions, and all that differs."),
    json: Json = False,
) -> None:
    """Show which functions make up a difference, and why.

    Compares two treatments of a result or a study file, or two kernels directly. --prove takes the suspected
    causes back, and measures the share of each. A command of your own comes at the end: -- COMMAND.
    """
    from ktrial.cli.render.explanation import (
        check_modelled,
        explained_as_json,
        print_answer,
        print_explained,
    )
    from ktrial.cli.running import explanation
    from ktrial.cli.running.explanation import citations_of, proven, refuse_of_proofs

    check_writable([files.folded, files.flame_graph])
    options = replace(_with_arguments(options), words=users_command(context))
    if behind.range and not behind.commits:
        raise BadOption("--range", "it goes with --commits: the tree that has the commits")
    if lines is not None:
        _refuse_with_lines(options, proving, behind, files)
        most = None if all_ else top
        _explain_lines(options, lines, whole=verbose or all_, most=most, json=json)
        return
    if behind.commits:
        _explain_commits(options, proving, behind, files, top=top if verbose or all_ else None, json=json)
        return
    measured = None
    if not proving.prove:
        refuse_of_proofs(proving)
    else:
        measured = proven(options, proving)
    attribution, proof = (measured.attribution, measured.proof) if measured else explanation.why(options)
    check_modelled(attribution.explanation, options.by)
    files.write(attribution.before, attribution.after, attribution.explanation)
    citations = citations_of(attribution, options.store)
    if json:
        print_json(explained_as_json(attribution, citations, proof))
        return
    if not (verbose or all_):
        print_answer(attribution, citations, proof, output(), by=options.by)
        return
    print_explained(
        attribution, citations, proof, output(), by=options.by, top=None if all_ else top, everything=all_
    )


def _explain_lines(
    options: ExplainOptions, function: str, *, whole: bool, most: int | None, json: bool
) -> None:
    from ktrial.cli.running.source_lines import lines_behind, print_lines_as_json, print_lines_behind

    attribution, opened = lines_behind(options, function)
    if json:
        print_lines_as_json(opened)
    else:
        print_lines_behind(attribution, opened, output(), whole=whole, most=most)


def _refuse_with_lines(
    options: ExplainOptions, proving: ProveOptions, behind: CommitOptions, files: DifferenceFiles
) -> None:
    """Raise BadOption where something else is to be done, too."""
    from ktrial.cli.running.explanation import refuse_of_proofs

    if proving.prove or behind.commits or files.folded or files.flame_graph or options.by:
        raise BadOption(
            "--lines", "it opens one row, and nothing else is proven, ranked or written beside it"
        )
    if options.machine == "exact-parallel" or options.cpus or options.model:
        raise BadOption("--lines", "lines are counted on the machine exact, on one CPU")
    refuse_of_proofs(proving)


def _explain_commits(
    options: ExplainOptions,
    proving: ProveOptions,
    behind: CommitOptions,
    files: DifferenceFiles,
    *,
    top: int | None,
    json: bool,
) -> None:
    from ktrial.cli.running import commits
    from ktrial.cli.running.commits import print_commits, print_commits_as_json
    from ktrial.cli.running.explanation import refuse_of_proofs

    if proving.prove:
        commits.check_provable(options, proving)
    else:
        refuse_of_proofs(proving)
    result = commits.listed(options, behind.commits or "", behind.range)
    if proving.prove:
        result = commits.proven(result, options, proving)
    attribution = result.attribution
    files.write(attribution.before, attribution.after, attribution.explanation)
    if json:
        print_commits_as_json(result)
    else:
        print_commits(result, output(), most=top)


def _with_arguments(options: ExplainOptions) -> ExplainOptions:
    """The options with the study, the kernels and the workload that the arguments name. Raises BadUsage."""
    named = named_with_study(options.arguments, options.store).with_options(options.kernel, options.workload)
    return replace(
        options,
        study=named.study,
        kernel=list(named.kernels) or None,
        workload=named.single_workload(),
    )


@examples(
    "ktrial profile 6.12 fork --flame-graph fork.svg",
    "ktrial profile 6.12 fork --cpus 4",
    "ktrial profile 6.12 -- sqlite3 my.db 'select 1'",
)
def profile(
    context: typer.Context,
    *,
    arguments: Arguments = None,
    kernel: str | None = Option(None, metavar="NAME", help="A kernel.", autocompletion=kernel_names),
    options: CountingOptions,
    caches: CacheOptions,
    workload: str | None = Option(
        None,
        metavar="W",
        help="A workload (ktrial workload list) or its file; else -- COMMAND.",
        autocompletion=workload_names,
    ),
    top: int = Option(20, min=1, metavar="N", help="Functions to show."),
    lines: str | None = Option(None, metavar="FUNCTION", help="Count this function only: by source line."),
    json: Json = False,
    folded: Folded = None,
    flame_graph: FlameGraph = None,
    vector: Path | None = Option(None, metavar="FILE", help=("Write each operation's instructions here.")),
    export: Exports = None,
) -> None:
    """Count a kernel's instructions by function.

    In a workload, or with a command of your own: -- COMMAND.
    """
    from ktrial.cli.progress import progress
    from ktrial.cli.render.profile import print_caches, print_profile, print_profile_costs, profile_as_json
    from ktrial.cli.render.source_lines import print_lines
    from ktrial.experiment import profile as profiles
    from ktrial.experiment import source_lines

    files = export_files(export or (), {"folded": folded, "flame-graph": flame_graph, "vector": vector})
    check_writable([path for _, path in files])
    shapes = caches.shapes()
    if options.by and not options.model:
        raise BadOption("--by", "it needs a modelled machine: add --model desktop")
    options = replace(options, words=users_command(context))
    named = named_by(arguments).with_options(kernel, workload)
    name = registry().kernel_name(named.single_kernel())
    options.check_system((name,))
    use = single_use(named.single_workload(), options.words)
    settings = options.settings(name)
    if shapes and settings.kind == "exact-parallel":
        raise BadOption("--caches", "caches are modelled on the machine exact, on one CPU")
    if lines is not None:
        if files or shapes or options.by or settings.kind == "exact-parallel":
            raise BadOption(
                "--lines", "a function's lines are counted alone, on one CPU, and written nowhere else"
            )
        with progress() as observer:
            by_line = source_lines.function_lines(settings, use, lines, observer=observer)
        if json:
            print_json(by_line.model_dump(mode="json"))
        else:
            print_lines(by_line, top, output())
        return
    with progress() as observer:
        counted = profiles.profile(settings, use, observer=observer, caches=shapes)
    tell_warnings(counted.warnings)
    for form, path in files:
        write_text(path, form.text(counted))
    if json:
        print_json(profile_as_json(counted))
        return
    print_profile(counted, top, output())
    print_profile_costs(counted, options.by, top, output())
    if shapes:
        print_caches(counted, top, shapes, output())


@examples(
    "ktrial explain counters 6.1 6.12 fork",
    "ktrial explain counters my-study --glob 'vmstat.pg*'",
    "ktrial explain counters 6.1 6.12 -- ./bench.sh",
)
@on_fleet
def counters(
    context: typer.Context,
    options: CommandMeasurementOptions,
    arguments: StudyOrKernels = None,
    kernel: list[str] | None = Option(
        None,
        metavar="NAME",
        help="Instead of a study: kernels to measure now; the first is the baseline.",
        autocompletion=kernel_names,
    ),
    glob: str = Option("*", metavar="PATTERN", help="Which counters: 'vmstat.pg*'."),
    all_: bool = Option(False, "--all", help="Show unchanged counters, too."),
    top: int = Option(20, min=1, metavar="N", help="How many counters to show for each comparison."),
    json: Json = False,
) -> None:
    """Compare event counters: faults, switches, allocations…

    Compares a study's treatments, or two kernels in workloads or with a command of your own: -- COMMAND.
    """
    from ktrial.analysis.counters import compared
    from ktrial.analysis.result import load_record
    from ktrial.report.counters import against_baseline

    named = named_with_study(arguments, options.store).with_options(kernel, options.workload)
    if named.kernels and named.study:
        raise BadOption("--kernel", "give a study or kernels, not both")
    options = replace(options, words=users_command(context), workload=list(named.workloads) or None)
    if options.words and not named.kernels:
        raise BadOption("--", "a command goes with kernels: a study has its own workloads")
    if options.of_command and not named.kernels:
        raise BadOption(min(options.of_command), "it goes with kernels: a study has its own workloads")
    if named.kernels:
        with open_store(options.store) as store:
            record = _measured(named.kernels, options, store)
    else:
        with open_existing(options.store) as store:
            record = load_record(store, find(store, named.study).id)
    workloads = () if named.kernels else options.workload_names
    rows = [
        row
        for row in compared(record.study, record.trials, glob)
        if not workloads or row.comparison.workload in workloads
    ]
    if json:  # docs/check.md names every field
        counters = against_baseline(rows).data()
        print_json({"study": record.study.name, "id": record.id, "counters": counters})
    else:
        _print_counters(record, rows, top, show_all=all_)


def _measured(names: Sequence[str], options: CommandMeasurementOptions, store: "Store") -> "StudyRecord":
    from ktrial.cli.progress import progress
    from ktrial.experiment.session import run
    from ktrial.experiment.single_kernel import kernel_factor
    from ktrial.model.study import Study

    kernels = list(dict.fromkeys(map(registry().kernel_name, names)))
    if len(kernels) < 2:
        raise BadOption("--kernel", "give two or more; the first is the baseline")
    jobs = options.jobs
    if options.words:
        check_first(kernels=kernels, workloads=options.workload_names, words=options.words, jobs=jobs)
    measured = kernel_measurement.measurement(options)
    study = Study(
        name="counters",
        question=f"Which events does {' and '.join(kernels[1:])} have more or less often than {kernels[0]}?",
        machine=measured.settings,
        factors=(kernel_factor(*kernels),),
        workloads=measured.workloads,
        perturbations=measured.perturbations,
    )
    with progress() as observer:
        runs = kernel_measurement.runs(store, observer, jobs)
        return run(
            study, store=store, machine=runs.machine, observer=observer, jobs=jobs, resources=runs.resources
        )


def _print_counters(record: "StudyRecord", rows: "list[CounterRow]", top: int, *, show_all: bool) -> None:
    from rich.text import Text

    from ktrial.cli.render.table import rendered
    from ktrial.report.counters import against_baseline

    console = output()
    console.print(Text(one_line(f"{record.study.name}: {record.study.question}".rstrip(": ")), style="bold"))
    groups: dict[tuple[str, str], list[CounterRow]] = {}
    for row in rows:
        groups.setdefault((row.comparison.workload, row.comparison.treatment), []).append(row)
    for (workload, treatment), group in groups.items():
        shown = [row for row in group if show_all or row.changed]
        baseline, unit = group[0].comparison.baseline, group[0].comparison.unit
        console.print()
        console.print(Text(one_line(f"{workload}: {treatment} against {baseline}, {unit}"), style="bold"))
        if shown:
            console.print(rendered(against_baseline(shown[:top])))
        hidden = [f"{len(shown) - top} more: --top {len(shown)}"] if len(shown) > top else []
        if not show_all:
            same = breakable(number_format.counted(len(group) - len(shown), "counter"))
            hidden.append(f"{same} stayed within margin and spread: --all")
        console.print(Text("; ".join(hidden), style="dim"))
    if not groups:
        console.print("no counter matches, or the study has one treatment")
