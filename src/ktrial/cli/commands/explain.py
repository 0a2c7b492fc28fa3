"""`ktrial explain`: what the difference between two treatments is made of, function by function."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    BootParameters,
    GuestMemory,
    Jobs,
    Json,
    OwnMetrics,
    OwnWorkloadName,
    Perturbations,
    StoredStudyName,
    StoreOption,
    Top,
    on_fleet,
)
from ktrial.cli.options.completion import kernel_names, treatment_names, workloads_of_study
from ktrial.cli.options.counting import (
    Caches,
    CountedCpus,
    CountedModel,
    CountedOn,
    Exports,
    FirstCode,
    FirstData,
    FlameGraph,
    FlameWidth,
    Folded,
    LastLevel,
    RankedBy,
    WidthOf,
)
from ktrial.cli.options.kernel_measurement import Cpus, Workloads

if TYPE_CHECKING:
    from ktrial.analysis.counters import CounterRow
    from ktrial.machines.qemu.plugin import CacheShapes
    from ktrial.model.profile import Profile
    from ktrial.model.study import StudyRecord


_TOP = 20


_PERTURBATIONS = 3


_BOOT = "Of --kernel: a boot parameter of {side} only; may be repeated."


Workload = Annotated[
    str | None,
    typer.Option(metavar="W", help="One workload; else the only one.", autocompletion=workloads_of_study),
]


Before = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="A", help="A treatment; else the baseline.", autocompletion=treatment_names
    ),
]


After = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="B", help="A treatment; else the only other.", autocompletion=treatment_names
    ),
]


Kernels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Instead of a study: a kernel to count now; given twice: from, to.",
        autocompletion=kernel_names,
    ),
]


FromBoot = Annotated[list[str] | None, typer.Option(metavar="PARAMETER", help=_BOOT.format(side="the first"))]


ToBoot = Annotated[list[str] | None, typer.Option(metavar="PARAMETER", help=_BOOT.format(side="the second"))]


@examples(
    "ktrial explain --kernel debian:6.1 --kernel debian:7.2 --workload fork --prove",
    "ktrial explain --kernel debian:6.1 --kernel debian:7.2 --cpus 4 -- ./server",
    "ktrial explain my-study --from debian:6.1 --to debian:6.12 --workload fork",
)
@on_fleet
def explain(
    context: typer.Context,
    study: StoredStudyName = None,
    workload: Workload = None,
    from_: Before = None,
    to: After = None,
    kernel: Kernels = None,
    from_boot: FromBoot = None,
    to_boot: ToBoot = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many functions to show.")] = _TOP,
    all_: Annotated[bool, typer.Option("--all", help="Show all functions, and all that differs.")] = False,
    no_values: Annotated[
        bool, typer.Option("--no-values", help="Do not read the kernels' settings in their guests.")
    ] = False,
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Take back what differs, one thing at a time, and count its share."),
    ] = False,
    perturbations: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Of --prove: perturbations of each trial."),
    ] = _PERTURBATIONS,
    budget: Annotated[
        str | None,
        typer.Option(metavar="10min", help="Of --prove: CPU time that its trials may take, as estimated."),
    ] = None,
    candidates: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of --prove: only these (HRTICK, 'vm.*'); may be repeated."),
    ] = None,
    each: Annotated[
        bool,
        typer.Option("--each", help="Of --prove: try each alone, also of a group that moves nothing."),
    ] = False,
    jobs: Jobs = None,
    json: Json = False,
    folded: Folded = None,
    flame_graph: FlameGraph = None,
    width: FlameWidth = WidthOf.TO,
    memory: Annotated[
        str | None, typer.Option(metavar="512M", help="Of --kernel: the guest's memory; else 512M.")
    ] = None,
    boot: BootParameters = None,
    machine: CountedOn = None,
    cpus: CountedCpus = None,
    model: CountedModel = None,
    by: RankedBy = None,
    store: StoreOption = None,
) -> None:
    """Say which functions make a difference, and why they may.

    Between two treatments of a result or a study file, or directly between two kernels. What may be the cause
    is suspected; with --prove it is taken back and measured. A command of your own stands at the end:
    -- COMMAND.
    """
    from ktrial.cli.console import check_writable, output, print_json
    from ktrial.cli.options.counting import write_difference
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.render.explanation import (
        UNITS,
        check_modelled,
        citation_as_json,
        citations,
        cited,
        print_costs,
        print_differences,
        print_explanation,
        print_proof,
    )
    from ktrial.cli.render.profile import print_guest_time_difference, why_as_json
    from ktrial.cli.running.explanation import (
        ExplainOptions,
        ProveOptions,
        proven,
        refuse_of_proofs,
        stored_tables,
        why,
    )
    from ktrial.format.sanitize import one_line
    from ktrial.report.call_tree import call_tree
    from ktrial.report.proof import proof_as_json

    check_writable([path for path in (folded, flame_graph) if path])
    given = ExplainOptions(
        study=study,
        words=own_words(context),
        workload=workload,
        before=from_,
        after=to,
        kernels=tuple(kernel or ()),
        boot_before=tuple(from_boot or ()),
        boot_after=tuple(to_boot or ()),
        boot=tuple(boot or ()),
        memory=memory,
        store=store,
        values=not no_values,
        machine=machine,
        cpus=cpus,
        model=model,
    )
    how = ProveOptions(perturbations, budget, tuple(candidates or ()), each, jobs)
    proof = None
    if prove:
        explained = proven(given, how)
        attribution, proof = explained.attribution, explained.proof
    else:
        refuse_of_proofs(how)
        attribution = why(given)
    check_modelled(attribution.explanation, by)
    write_difference(
        attribution.before,
        attribution.after,
        attribution.explanation,
        folded=folded,
        flame_graph=flame_graph,
        width=width,
    )
    in_time = citations(attribution, stored_tables(store))
    if json:
        said = {"fidelity": {count: citation_as_json(one) for count, one in in_time.items()}}
        print_json(why_as_json(attribution) | said | ({"proof": proof_as_json(proof)} if proof else {}))
        return
    console = output()
    print_explanation(
        attribution.explanation,
        None if all_ else top,
        console,
        counted_anew=attribution.counted_anew,
        tree=call_tree(attribution.before, attribution.after, attribution.explanation),
    )
    print_costs(attribution.explanation, by, None if all_ else top, console)
    for count, one in in_time.items():
        if sentence := cited(one, UNITS[count]):
            console.print(one_line(f"{count}: {sentence}"))
    print_guest_time_difference(attribution.before, attribution.after, console)
    print_differences(attribution, console, everything=all_)
    if proof:
        print_proof(proof, console)


# `ktrial profile`: one kernel's instructions in a workload, by function.


@examples(
    "ktrial profile --kernel debian:6.12 --workload fork --flame-graph fork.svg",
    "ktrial profile --kernel debian:6.12 --workload fork --cpus 4",
    "ktrial profile --kernel debian:6.12 -- sqlite3 my.db 'select 1'",
)
def profile(
    context: typer.Context,
    kernel: Annotated[str, typer.Option(metavar="NAME", help="A kernel.", autocompletion=kernel_names)],
    workload: OwnWorkloadName = None,
    top: Top = 20,
    json: Json = False,
    folded: Folded = None,
    flame_graph: FlameGraph = None,
    vector: Annotated[
        Path | None,
        typer.Option("--vector", metavar="FILE", help="Write each operation's instructions there."),
    ] = None,
    export: Exports = None,
    caches: Caches = False,
    l1i: FirstCode = None,
    l1d: FirstData = None,
    llc: LastLevel = None,
    memory: GuestMemory = None,
    boot: BootParameters = None,
    machine: CountedOn = None,
    cpus: CountedCpus = None,
    model: CountedModel = None,
    by: RankedBy = None,
) -> None:
    """Count a kernel's instructions by function.

    In a workload, or with a command of your own: -- COMMAND.
    """
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import check_writable, output, print_json, write_text
    from ktrial.cli.options.counting import shapes, wanted
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.render.explanation import print_profile_costs
    from ktrial.cli.render.profile import print_profile, profile_as_json

    shorthands = {"folded": folded, "flame-graph": flame_graph, "vector": vector}
    files = wanted(export or (), shorthands)
    check_writable([path for _, path in files])
    modelled = shapes(caches, l1i, l1d, llc)
    if by and not model:
        raise BadOption(option="--by", problem="nothing is modelled without --model: --model desktop")
    words = own_words(context)
    (counted,) = count(
        [kernel], workload, memory, boot, modelled, words=words, machine=machine, cpus=cpus, model=model
    )
    for form, path in files:
        write_text(path, form.text(counted))
    if json:
        print_json(profile_as_json(counted))
        return
    print_profile(counted, top, output())
    print_profile_costs(counted, by, top, output())
    if modelled:
        from ktrial.cli.render.profile import print_caches

        print_caches(counted, top, modelled, output())


def count(
    kernels: list[str],
    workload: str | None,
    memory: str | None,
    boot: list[str] | None,
    caches: "CacheShapes | None" = None,
    words: tuple[str, ...] = (),
    machine: str | None = None,
    cpus: int | None = None,
    model: str | None = None,
) -> "tuple[Profile, ...]":
    """A profile of each kernel. Raises BadOption, and what `ktrial.experiment.profile.profile` raises."""
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.options.common import memory_of
    from ktrial.cli.options.counting import on_machine, on_model
    from ktrial.cli.options.own_command import memory_for, one_use
    from ktrial.cli.progress import progress
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.studies import registry
    from ktrial.experiment.profile import profile
    from ktrial.model.study import MachineSettings

    name_of = registry().kernel_name
    if words:
        several = (cpus or 1) > 1
        kind = machine or ("exact-parallel" if several else "exact")
        check_first(kind=kind, kernels=kernels, words=words)
    use = one_use(workload, words)
    common = MachineSettings(
        memory_mib=memory_of(memory_for(words, memory) or "512M"), boot=tuple(boot or ())
    )
    common = on_model(on_machine(common, machine, cpus), model)
    if caches and common.kind == "exact-parallel":
        raise BadOption(option="--caches", problem="caches are modelled on the machine exact, on one CPU")
    settings = [common.model_copy(update={"kernel": name_of(name)}) for name in kernels]
    with progress() as observer:
        return tuple(profile(each, use, observer=observer, caches=caches) for each in settings)


# `ktrial counters`: which kernel events happened more or less often.

_ROWS = 20


@examples(
    "ktrial counters --kernel debian:6.1 --kernel debian:6.12 --workload fork",
    "ktrial counters my-study --glob 'vmstat.pg*'",
    "ktrial counters --kernel debian:6.1 --kernel debian:6.12 -- ./bench.sh",
)
@on_fleet
def counters(
    context: typer.Context,
    study: StoredStudyName = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Instead of a study: kernels to measure now; the first is the baseline.",
            autocompletion=kernel_names,
        ),
    ] = None,
    workload: Workloads = None,
    metrics: OwnMetrics = None,
    glob: Annotated[str, typer.Option(metavar="PATTERN", help="Which counters: 'vmstat.pg*'.")] = "*",
    all_: Annotated[bool, typer.Option("--all", help="Show those that did not change, too.")] = False,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many to show of each.")] = _ROWS,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Compare event counters: faults, switches, allocations…

    Of a study's treatments, or of two kernels in workloads or with a command of your own: -- COMMAND.
    """
    from ktrial.analysis.counters import compared
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.console import print_json
    from ktrial.cli.options.kernel_measurement import MeasurementOptions
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.studies import open_existing
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    if kernel and study:
        raise BadOption(option="--kernel", problem="give a study or kernels, not both")
    words = own_words(context)
    if words and not kernel:
        raise BadOption(option="--", problem="a command goes with --kernel: a study has its own workloads")
    if metrics and not kernel:
        raise BadOption(option="--metrics", problem="it goes with --kernel: a study has its own workloads")
    given = MeasurementOptions.of(workload, memory, cpus, boot, perturbations, words, metrics)
    with open_store(store or default_location()) if kernel else open_existing(store) as opened:
        record = _measured(kernel, given, opened, jobs) if kernel else _stored(study, opened)
    rows = compared(record.study, record.trials, glob)
    named = given.workloads if study or not kernel else ()
    chosen = [row for row in rows if not named or row.comparison.workload in named]
    if json:
        print_json(_as_json(record, chosen))
    else:
        _print(record, chosen, top, show_all=all_)


def _stored(study: str | None, store: Any) -> "StudyRecord":
    from ktrial.analysis.result import record as record_of
    from ktrial.cli.studies import find

    return record_of(store, find(store, study).id)


def _measured(names: list[str], given: Any, store: Any, jobs: int | None) -> "StudyRecord":
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.options import kernel_measurement as measuring
    from ktrial.cli.progress import progress
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.studies import registry
    from ktrial.experiment.session import run
    from ktrial.experiment.single_kernel import kernel_factor
    from ktrial.model.study import Study

    kernels = list(dict.fromkeys(map(registry().kernel_name, names)))
    if len(kernels) < 2:
        raise BadOption(option="--kernel", problem="give two or more; the first is the baseline")
    if given.words:
        check_first(kernels=kernels, workloads=given.workloads, words=given.words, jobs=jobs)
    how = measuring.measurement(given)
    study = Study(
        name="counters",
        question=f"Which events does {' and '.join(kernels[1:])} have more or less often than {kernels[0]}?",
        machine=how.settings,
        factors=(kernel_factor(*kernels),),
        workloads=how.workloads,
        perturbations=how.perturbations,
    )
    with progress() as observer:
        runs = measuring.runs(store, observer, jobs)
        return run(
            study, store=store, machine=runs.machine, observer=observer, jobs=jobs, sources=runs.sources
        )


def _print(record: "StudyRecord", rows: "list[CounterRow]", top: int, *, show_all: bool) -> None:
    from rich.text import Text

    from ktrial.cli.console import output
    from ktrial.cli.render.table import rendered
    from ktrial.format.sanitize import one_line
    from ktrial.report.counters import against_baseline

    console = output()
    console.print(Text(one_line(f"{record.study.name}: {record.study.question}".rstrip(": ")), style="bold"))
    groups: dict[tuple[str, str], list[CounterRow]] = {}
    for row in rows:
        groups.setdefault((row.comparison.workload, row.comparison.treatment), []).append(row)
    for (workload, treatment), own in groups.items():
        shown = [row for row in own if show_all or row.changed]
        baseline, unit = own[0].comparison.baseline, own[0].comparison.unit
        console.print()
        console.print(Text(one_line(f"{workload}: {treatment} against {baseline}, {unit}"), style="bold"))
        if shown:
            console.print(rendered(against_baseline(shown[:top])))
        console.print(Text(_rest(own, shown, top, show_all), style="dim"))
    if not groups:
        console.print("no counter matches, or the study has one treatment")


def _rest(own: "list[CounterRow]", shown: "list[CounterRow]", top: int, show_all: bool) -> str:
    from ktrial.cli.console import breakable
    from ktrial.format import number_format

    parts = []
    if len(shown) > top:
        parts.append(f"{len(shown) - top} more: --top {len(shown)}")
    if not show_all:
        same = breakable(number_format.counted(len(own) - len(shown), "counter"))
        parts.append(f"{same} did not change by more than margin and spread: --all")
    return "; ".join(parts)


def _as_json(record: "StudyRecord", rows: "list[CounterRow]") -> dict[str, Any]:
    """What `counters --json` prints; docs/check.md names every field."""
    from ktrial.report.counters import against_baseline

    return {
        "study": record.study.name,
        "id": record.id,
        "counters": against_baseline(rows).data(),
    }
