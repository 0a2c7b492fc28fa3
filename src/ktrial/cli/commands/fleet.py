"""`ktrial fleet`: be a worker of a fleet, and see who does what in one, and who has which machine."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import Argument, Option, command_group, examples
from ktrial.cli.console import output, print_json, print_texts, say
from ktrial.cli.options.common import Jobs, Json, StoreOption
from ktrial.cli.studies import open_existing
from ktrial.fleet.errors import BadFleet, FleetUsageError
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.fleet.settings import FleetSettings
    from ktrial.store.leases import StoredLease

app = command_group("Run exact trials on many machines.")
Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS|FILE", help="Where the scheduler listens (tcp://HOST:8786), or the fleet's file."
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Trust the network: traffic is not encrypted."),
]


def _batch_systems(incomplete: str) -> list[str]:
    from ktrial.fleet.settings import BATCH_SYSTEMS

    return [name for name in BATCH_SYSTEMS if name.startswith(incomplete)]


@app.declare("worker")
@examples("ktrial fleet worker tcp://127.0.0.1:8786", "ktrial fleet worker lab.toml --jobs 8")
def worker(
    address: Address,
    name: str | None = Option(None, metavar="NAME", help="The worker's name; else the host's."),
    jobs: Jobs = None,
    cache: Path | None = Option(
        None, metavar="DIRECTORY", help="Where it keeps files and snapshots; else KTRIAL_CACHE."
    ),
    once: bool = Option(False, "--once", help="End when the scheduler is gone."),
    insecure: Insecure = False,
) -> None:
    """Perform trials for the fleet, until Ctrl-C.

    The scheduler is Dask's own: dask scheduler --host 127.0.0.1.
    """
    import os

    from ktrial.fleet.serving import Service, own_name, serve, use_cache
    from ktrial.fleet.settings import fleet

    settings = fleet(address, insecure=insecure)
    _check_has_scheduler(settings)
    use_cache(cache)
    slots = jobs or len(os.sched_getaffinity(0))
    serve(Service(settings, name or own_name(), slots, once), say)


@app.declare("up")
@examples("ktrial fleet up --slurm lab.toml", "ktrial fleet up lab.toml --workers 64 --dry-run")
def up(
    file: Path = Argument(
        ..., metavar="FILE", help="The fleet's file, with a table named after the batch system."
    ),
    slurm: bool = Option(False, "--slurm", help="Workers are jobs of Slurm."),
    batch: str | None = Option(
        None,
        metavar="SYSTEM",
        help="slurm, pbs, lsf, htcondor, sge, oar; else the one that has a table in the file.",
        autocompletion=_batch_systems,
    ),
    workers: int | None = Option(
        None, min=1, max=100_000, metavar="N", help="How many workers; else as in the file."
    ),
    dry_run: bool = Option(False, "--dry-run", help="Print what would be submitted, and submit nothing."),
    insecure: Insecure = False,
) -> None:
    """Start a scheduler, and workers as batch jobs.

    They run until Ctrl-C.

    A job that ends (its time is up, its host is lost) is submitted again.
    """
    from ktrial.fleet.batch_jobs import keep_up, read, script
    from ktrial.fleet.settings import fleet

    settings = fleet(str(file), insecure=insecure)
    jobs = read(file, "slurm" if slurm else batch, workers)
    _check_has_scheduler(settings)
    if dry_run:
        output().print(script(jobs, settings), markup=False, highlight=False, soft_wrap=True)
        return
    keep_up(jobs, settings, say)


@app.declare("status")
@examples("ktrial fleet status tcp://127.0.0.1:8786", "ktrial fleet status --json")
def status(
    address: str | None = Argument(
        None,
        metavar="[ADDRESS|FILE]",
        help=("The scheduler's address or the fleet's file; else KTRIAL_FLEET."),
        show_default=False,
    ),
    json: Json = False,
    insecure: Insecure = False,
) -> None:
    """Show the workers of a fleet, and what each does.

    It also shows who holds which machine.
    """
    from ktrial.fleet.held_machines import status_of
    from ktrial.fleet.settings import asked_for, fleet

    settings = fleet(address, insecure=insecure) if address else asked_for(None)
    if settings is None:
        raise FleetUsageError(
            "No fleet is named.",
            hint=(
                "give the address of its scheduler (tcp://127.0.0.1:8786) or its file (lab.toml); or set "
                "KTRIAL_FLEET, or [fleet] in the configuration: ktrial help fleet"
            ),
        )
    _check_has_scheduler(settings)
    workers, leases = status_of(settings)
    if json:
        print_json(
            {
                "address": settings.address,
                "workers": [asdict(worker) for worker in workers],
                "machines": [_lease_data(lease) for lease in leases],
            }
        )
        return
    if workers:
        rows = (
            (
                one_line(worker.name),
                str(worker.slots),
                one_line(worker.standing),
                one_line("; ".join(worker.under_way)) or "nothing",
            )
            for worker in workers
        )
        print_texts(("worker", "at once", "standing", "does"), rows)
    else:
        say("there are no workers; ktrial fleet worker starts one")
    if leases:
        _print_leases(leases)


@app.declare("machines")
@examples("ktrial fleet machines", "ktrial fleet machines --store postgresql://db/ktrial --json")
def machines(store: StoreOption = None, json: Json = False) -> None:
    """Show who holds which real machine.

    A run over ssh holds its machine for one trial at a time. The store records who holds it.
    """
    with open_existing(store) as opened:
        leases, name = opened.machine_leases(), opened.name
    if json:
        print_json([_lease_data(lease) for lease in leases])
    elif leases:
        _print_leases(leases)
    else:
        say(f"nobody holds a machine, according to {name}")


def _lease_data(held: "StoredLease") -> dict[str, Any]:
    plain = held.lease.model_dump(mode="json", exclude={"key", "born"})
    return plain | {"silent_seconds": held.silent_seconds, "is_gone": held.is_over}


def _print_leases(leases: "tuple[StoredLease, ...]") -> None:

    headings = ("machine", "leads to", "held by", "since (UTC)", "heard", "for study")
    rows = (
        (
            one_line(held.lease.called),
            one_line(held.lease.machine),
            one_line(held.lease.who),
            f"{held.lease.since:%Y-%m-%d %H:%M}",
            f"{held.silent_seconds:.0f} s ago{', is gone' if held.is_over else ''}",
            one_line(held.lease.study),
        )
        for held in leases
    )
    print_texts(headings, rows)


def _check_has_scheduler(settings: "FleetSettings") -> None:
    """Raise BadFleet where the fleet is one of local processes."""
    if settings.local_workers:
        raise BadFleet(settings.address, "workers need a scheduler, which has an address")
