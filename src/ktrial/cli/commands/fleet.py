"""`ktrial fleet`: be a worker of a fleet, and see who does what in one, and who has which machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from ktrial.fleet.held_machines import WorkerStatus
    from ktrial.store.leases import HeldLease

app = command_group("Have exact trials performed by many machines.")

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS|FILE", help="Where the scheduler listens (tcp://HOST:8786), or the fleet's file."
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="The network is trusted: traffic goes in the clear."),
]


def _batch_systems(incomplete: str) -> list[str]:
    from ktrial.fleet.settings import BATCH_SYSTEMS

    return [name for name in BATCH_SYSTEMS if name.startswith(incomplete)]


@app.command("worker", cls=KtrialCommand)
@examples("ktrial fleet worker tcp://127.0.0.1:8786", "ktrial fleet worker lab.toml --jobs 8")
def worker(
    address: Address,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is called; else as the host.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Trials at once; else one a core."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where it keeps files and snapshots; else KTRIAL_CACHE."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when the scheduler is gone.")] = False,
    insecure: Insecure = False,
) -> None:
    """Be a worker: perform trials for whoever asks the fleet, until Ctrl-C.

    The scheduler is Dask's own: dask scheduler --host 127.0.0.1.
    """
    import os

    from ktrial.cli.console import say
    from ktrial.fleet.serving import Service, own_name, serve, use_cache
    from ktrial.fleet.settings import fleet

    settings = fleet(address, insecure=insecure)
    if settings.local_workers:
        raise _no_worker_of(address)
    use_cache(cache)
    slots = jobs or len(os.sched_getaffinity(0))
    serve(Service(settings, name or own_name(), slots, once), say)


@app.command("up", cls=KtrialCommand)
@examples("ktrial fleet up --slurm lab.toml", "ktrial fleet up lab.toml --workers 64 --dry-run")
def up(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The fleet's file, with a table of the batch system's name."),
    ],
    slurm: Annotated[bool, typer.Option("--slurm", help="Workers are jobs of Slurm.")] = False,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM",
            help="slurm, pbs, lsf, htcondor, sge, oar; else that of which the file has a table.",
            autocompletion=_batch_systems,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=100_000, metavar="N", help="How many; else as the file says.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be submitted, and submit nothing.")
    ] = False,
    insecure: Insecure = False,
) -> None:
    """Start a scheduler here, and workers as jobs of a batch system, until Ctrl-C.

    A job that ends (its time is up, its host is lost) is submitted again.
    """
    from ktrial.cli.console import output, say
    from ktrial.fleet.batch_jobs import keep_up, read, script
    from ktrial.fleet.settings import fleet

    settings = fleet(str(file), insecure=insecure)
    jobs = read(file, "slurm" if slurm else batch, workers)
    if settings.local_workers:
        raise _no_worker_of(settings.address)
    if dry_run:
        output().print(script(jobs, settings), markup=False, highlight=False, soft_wrap=True)
        return
    keep_up(jobs, settings, say)


@app.command("status", cls=KtrialCommand)
@examples("ktrial fleet status tcp://127.0.0.1:8786", "ktrial fleet status --json")
def status(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS|FILE]", help="As for a worker; else KTRIAL_FLEET.", show_default=False
        ),
    ] = None,
    json: Json = False,
    insecure: Insecure = False,
) -> None:
    """Say who is in a fleet, what each worker does, and who holds which machine there."""
    from ktrial.cli.console import print_json, say
    from ktrial.fleet.errors import FleetUsageError
    from ktrial.fleet.held_machines import status_of
    from ktrial.fleet.settings import asked_for, fleet

    settings = fleet(address, insecure=insecure) if address else asked_for(None)
    if settings is None:
        raise FleetUsageError(
            "No fleet is named.",
            hint=(
                "give the address of its scheduler (tcp://127.0.0.1:8786) or its file (lab.toml); else "
                "KTRIAL_FLEET says it, or [fleet] in the configuration: ktrial help fleet"
            ),
        )
    if settings.local_workers:
        raise _no_worker_of(settings.address)
    workers, held = status_of(settings)
    if json:
        there = [one.as_json() for one in workers]
        data = {"workers": there, "machines": [_lease_data(one) for one in held]}
        print_json({"address": settings.address} | data)
        return
    if workers:
        _print(workers)
    else:
        say("no worker is there; ktrial fleet worker starts one")
    if held:
        _print_leases(held)


@app.command("machines", cls=KtrialCommand)
@examples("ktrial fleet machines", "ktrial fleet machines --store postgresql://db/ktrial --json")
def machines(store: StoreOption = None, json: Json = False) -> None:
    """Say who holds which real machine: runs over ssh hold one each, one trial at a time, in the store."""
    from ktrial.cli.console import print_json, say
    from ktrial.cli.studies import open_existing

    with open_existing(store) as opened:
        held, name = opened.machine_leases(), opened.name
    if json:
        print_json([_lease_data(one) for one in held])
    elif held:
        _print_leases(held)
    else:
        say(f"nobody holds a machine, as far as {name} tells")


def _lease_data(one: "HeldLease") -> dict[str, Any]:
    plain = one.lease.model_dump(mode="json", exclude={"key", "born"})
    return plain | {"silent_seconds": one.silent_seconds, "is_gone": one.is_over}


def _print_leases(held: "tuple[HeldLease, ...]") -> None:
    from ktrial.cli.console import output
    from ktrial.cli.render.table import rendered
    from ktrial.format.sanitize import one_line
    from ktrial.format.table import Field, table, text_field

    def heard(one: "HeldLease") -> str:
        return f"{one.silent_seconds:.0f} s ago{', is gone' if one.is_over else ''}"

    fields: tuple[Field[HeldLease], ...] = (
        text_field("machine", lambda one: one_line(one.lease.called)),
        text_field("leads to", lambda one: one_line(one.lease.machine)),
        text_field("held by", lambda one: one_line(one.lease.who)),
        text_field("since (UTC)", lambda one: f"{one.lease.since:%Y-%m-%d %H:%M}"),
        text_field("heard", heard),
        text_field("for study", lambda one: one_line(one.lease.study)),
    )
    output().print(rendered(table(fields, held)))


def _print(workers: "tuple[WorkerStatus, ...]") -> None:
    from ktrial.cli.console import output
    from ktrial.cli.render.table import rendered
    from ktrial.format.sanitize import one_line
    from ktrial.format.table import Field, table, text_field

    fields: tuple[Field[WorkerStatus], ...] = (
        text_field("worker", lambda one: one_line(one.name)),
        text_field("at once", lambda one: str(one.slots)),
        text_field("standing", lambda one: one_line(one.standing)),
        text_field("does", lambda one: one_line("; ".join(one.under_way)) or "nothing"),
    )
    output().print(rendered(table(fields, workers)))


def _no_worker_of(address: str) -> Exception:
    from ktrial.fleet.errors import BadFleet

    return BadFleet(address=address, problem="workers come to a scheduler, which has an address")
