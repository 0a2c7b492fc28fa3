"""`ktrial explain`: what the difference between two treatments is made of, function by function."""

from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import BootParameters, Jobs, Json, StoredStudyName, StoreOption
from ktrial.cli.options.completion import kernel_names, treatment_names, workloads_of_study
from ktrial.cli.options.counting_machine import CountedCpus, CountedModel, CountedOn, RankedBy
from ktrial.cli.options.exports import FlameGraph, FlameWidth, Folded, WidthOf
from ktrial.cli.options.fleet import on_fleet

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
    from ktrial.cli.console import output, print_json
    from ktrial.cli.files import check_writable
    from ktrial.cli.options.exports import write_difference
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.render.citation import UNITS, citation_as_json, citations, cited
    from ktrial.cli.render.conditions_diff import print_differences
    from ktrial.cli.render.functions import print_explanation
    from ktrial.cli.render.guest_time import print_guest_time_difference
    from ktrial.cli.render.modelled_costs import check_modelled, print_costs
    from ktrial.cli.render.profile_json import why_as_json
    from ktrial.cli.render.proof import print_proof
    from ktrial.cli.running.explanation import ExplainOptions, ProveOptions, proven, refuse_of_proofs, why
    from ktrial.cli.running.stored_fidelity import stored_tables
    from ktrial.format.sanitize import one_line
    from ktrial.report.json.proof import proof_as_json
    from ktrial.report.text.call_tree import call_tree

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
