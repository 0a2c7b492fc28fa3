"""`ktrial profile`: one kernel's instructions in a workload, by function."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.caches import Caches, FirstCode, FirstData, LastLevel
from ktrial.cli.options.common import BootParameters, GuestMemory, Json, OwnWorkloadName, Top
from ktrial.cli.options.completion import kernel_names
from ktrial.cli.options.counting_machine import CountedCpus, CountedModel, CountedOn, RankedBy
from ktrial.cli.options.exports import Exports, FlameGraph, Folded

if TYPE_CHECKING:
    from ktrial.machines.exact.plugin import CacheShapes
    from ktrial.model.profile import Profile


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
    from ktrial.cli.console import output, print_json
    from ktrial.cli.files import check_writable, write_text
    from ktrial.cli.options.caches import shapes
    from ktrial.cli.options.exports import wanted
    from ktrial.cli.options.own_command import own_words
    from ktrial.cli.render.modelled_costs import print_profile_costs
    from ktrial.cli.render.profile import print_profile
    from ktrial.cli.render.profile_json import profile_as_json

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
        from ktrial.cli.render.cache_misses import print_caches

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
    from ktrial.cli.installed import registry
    from ktrial.cli.options.counting_machine import on_machine, on_model
    from ktrial.cli.options.duration_size_share import memory_of
    from ktrial.cli.options.own_command import memory_for, one_use
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.progress import progress
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
