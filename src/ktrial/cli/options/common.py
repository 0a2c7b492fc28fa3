"""Options that several commands share."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.completion import format_names, own_hosts, study_names, workload_names
from ktrial.model import notation

if TYPE_CHECKING:
    from ktrial.model.study import Study


Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]


StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE|URL", help="The store; else KTRIAL_STORE, else the user's own."),
]


Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Where to write the report; else reports/ beside the store."),
]


NoHtml = Annotated[bool, typer.Option("--no-html", help="Write no report.")]


Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Trials at once; else one a core."),
]


Perturbations = Annotated[
    int | None,
    typer.Option(
        min=1, max=1000, metavar="N", help="Perturbations of each treatment; else 3, or the study's."
    ),
]


Margin = Annotated[
    str | None, typer.Option("--margin", metavar="1%", help="The smallest change that matters; else 1%.")
]


GuestMemory = Annotated[
    str | None, typer.Option("--memory", metavar="512M", help="The guest's memory; else 512M.")
]


AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="Machine host: settings are changed, and put back.")
]


Count = Annotated[
    Literal["plugin", "clock"] | None,
    typer.Option(
        metavar="plugin|clock",
        help="What counts instructions: the QEMU plugin where it loads, else the clock.",
    ),
]


StoredStudyName = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="A study's name, number or file; else the latest.", autocompletion=study_names
    ),
]


WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload", metavar="W", help="A workload: ktrial workload list.", autocompletion=workload_names
    ),
]


OwnWorkloadName = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="W",
        help="A workload (ktrial workload list), or the file of one; else -- COMMAND.",
        autocompletion=workload_names,
    ),
]


OwnMetrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="FORMAT",
        help="What the command prints: fio-json… (ktrial workload formats).",
        autocompletion=format_names,
    ),
]


Top = Annotated[int, typer.Option(min=1, metavar="N", help="How many functions to show.")]


Memory = Annotated[str, typer.Option(metavar="512M", help="The guest's memory.")]


BootParameters = Annotated[
    list[str] | None, typer.Option("--boot", metavar="PARAMETER", help="A boot parameter; may be repeated.")
]


StudyOrBundle = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study's name, number or file, or a bundle's file; else the latest.",
        autocompletion=study_names,
    ),
]


Signers = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="A bundle must be signed by one of these (ssh-keygen's allowed signers).",
    ),
]


# Quantities on the command line: what cannot be read is told with the option that it stands behind.


def share(option: str, value: str, *, least: float, most: float) -> float:
    """The fraction that `1%` or `1 %` means, between the two. Raises BadAmount."""
    from ktrial.analysis.errors import BadAmount

    try:
        fraction = notation.share(value)
    except ValueError as error:
        raise BadAmount(option=option, value=value, problem=error) from None
    if not least <= fraction <= most:
        problem = f"it has to lie between {least * 100:g} % and {most * 100:g} %"
        raise BadAmount(option=option, value=value, problem=problem)
    return fraction


def duration(option: str, text: str, *, bare: bool = False) -> float:
    """Seconds in `90s`, `10min`, `6h`; with `bare`, in `90` too. Raises BadOption."""
    try:
        return notation.seconds(text, bare=bare)
    except ValueError as error:
        raise BadOption(option=option, problem=f"{text} is no time: {error}") from None


def margin_of(text: str | None) -> float | None:
    """`1%` → 0.01; None where nothing was given. Raises BadOption."""
    try:
        return None if text is None else notation.margin(text)
    except ValueError as error:
        raise BadOption(option="--margin", problem=error) from None


def memory_of(text: str) -> int:
    """`1G` → 1024, in MiB. Raises BadOption."""
    try:
        return notation.memory_mib(text)
    except ValueError as error:
        raise BadOption(option="--memory", problem=error) from None


# Give a command one more option, which is in force around all that the command does.


def with_added(
    command: Callable[..., None],
    name: str,
    annotation: object,
    around: Callable[[Any], AbstractContextManager[object]],
) -> Callable[..., None]:
    """The command with the keyword `name`, None unless it is given; `around` is entered with its value."""

    @wraps(command)
    def performed(*arguments: Any, **options: Any) -> None:
        with around(options.pop(name, None)):
            command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter(name, kind, default=None, annotation=annotation)
    parameters = [one.replace(kind=kind) for one in own.parameters.values()]
    performed.__signature__ = own.replace(parameters=[*parameters, option])  # type: ignore[attr-defined]
    performed.__annotations__ = {one.name: one.annotation for one in [*parameters, option]}
    return performed


# The option `--fleet` of commands that measure: their trials are performed by many machines.

_OPTION = typer.Option(
    "--fleet",
    metavar="local:N|ADDRESS|FILE",
    help="Who performs the trials: ktrial help fleet. Else KTRIAL_FLEET; none: this system.",
)


def on_fleet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option; its trials are performed by the fleet that is named there."""
    return _with_option(command, nullcontext)


def on_fleet_in_bisection(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose exit code is a verdict: a fleet that cannot be had is none."""

    def endings() -> AbstractContextManager[object]:
        from ktrial.cli.git_bisect import Endings

        return Endings()

    return _with_option(command, endings)


def _with_option(
    command: Callable[..., None], around: Callable[[], AbstractContextManager[object]]
) -> Callable[..., None]:
    @contextmanager
    def performed(fleet: str | None) -> Iterator[None]:
        with around(), _performed_by(fleet):
            yield

    return with_added(command, "fleet", Annotated[str | None, _OPTION], performed)


@contextmanager
def _performed_by(named: str | None) -> Iterator[None]:
    from ktrial.fleet.settings import asked_for

    settings = asked_for(named)
    if settings is None:
        yield
        return
    from ktrial.cli.console import say
    from ktrial.experiment.executor import performed_by
    from ktrial.fleet.fleet import Fleet

    with Fleet(settings, say) as fleet, performed_by(fleet):
        yield


# The option `--wait` of commands that measure on real machines: one that somebody has is waited for.

_MACHINE_WAIT_OPTION = typer.Option(
    "--wait",
    metavar="TIME",
    help="Machine ssh: so long for a machine that somebody else has: 30min, 2h; else that is an error.",
)


def waits_for_machine(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option."""
    return with_added(command, "wait", Annotated[str | None, _MACHINE_WAIT_OPTION], _waiting)


@contextmanager
def _waiting(given: str | None) -> Iterator[None]:
    if given is None:
        yield
        return
    from ktrial.experiment.machine_lease import waiting

    with waiting(duration("--wait", given)):
        yield


# `--host H1,H2`: on which machines, that ssh reaches, a study is run.

Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="H1,H2…",
        help="Machine ssh: this one in place of the study's; several: on all at once, and compared.",
        autocompletion=own_hosts,
    ),
]


_SSH = "ssh"


def on_hosts(study: "Study", given: Sequence[str]) -> "dict[str, Study]":
    """Each of the machines → the study there. Raises BadOption."""
    from ktrial.experiment.single_kernel import study_on
    from ktrial.model import machine

    if study.machine.kind != _SSH:
        raise BadOption(
            option="--host",
            problem=f'the study\'s machine is {study.machine.kind}; it goes with kind = "ssh"',
        )
    hosts = [host for text in given for host in text.split(",")]
    for place, host in enumerate(hosts):
        if not machine.is_host_name(host):
            raise BadOption(option="--host", problem=f"{host!r} is no name of a machine: {machine.ALLOWED}")
        if _machine(host) in map(_machine, hosts[:place]):
            raise BadOption(option="--host", problem=f"{_machine(host)} is named twice")
    return {host: study_on(study, host) for host in hosts}


def _machine(host: str) -> str:
    """Without the user."""
    return host.rpartition("@")[2]


# `--user NAME`: as whom a study's own commands run, where ktrial is root.

User = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="NAME", help="Machine host, as root: your own commands run as this user (nobody)."
    ),
]


def with_user(study: "Study", user: str | None) -> "Study":
    """The study, each command that names no user of its own with this one. Raises BadOption."""
    if user is None:
        return study
    if study.machine.kind != "host":
        problem = f"it is for the machine host; a guest on the machine {study.machine.kind} has only its root"
        raise BadOption(option="--user", problem=problem)
    if not any(use.command for use in study.workloads):
        raise BadOption(option="--user", problem="no workload of the study is a command of yours")
    uses = tuple(
        use.model_copy(update={"command": use.command.model_copy(update={"user": use.command.user or user})})
        if use.command
        else use
        for use in study.workloads
    )
    return study.model_copy(update={"workloads": uses})
