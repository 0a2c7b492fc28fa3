"""Options that several commands share: a type is an option with its help, a dataclass a family of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ktrial.analysis.errors import BadAmount
from ktrial.cli.command_line import BadOption, with_added
from ktrial.cli.console import check_page, say
from ktrial.cli.error_handling import CheckEndings
from ktrial.cli.options.completion import format_names, host_names, study_names, workload_names
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
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help=("Print the whole result, not only the 25 lines with the answer.")),
]
NoHtml = Annotated[bool, typer.Option("--no-html", help="Write no report.")]
PageFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page here too.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Trials at once; else one a core."),
]
Perturbations = Annotated[
    int | None,
    typer.Option(
        "--perturbations",
        min=1,
        max=1000,
        metavar="N",
        help="Perturbations of each treatment; else 3, or the study's.",
    ),
]
Margin = Annotated[
    str | None, typer.Option("--margin", metavar="1%", help="The smallest change that matters; else 1%.")
]
EstimandOption = Annotated[
    Literal["typical", "total", "tail"] | None,
    typer.Option(
        "--estimand", help="What verdicts are about: typical trials (default), all together, the worst tenth."
    ),
]
GuestMemory = Annotated[
    str | None, typer.Option("--memory", metavar="512M", help="The guest's memory; else 512M.")
]
GuestSwap = Annotated[
    str | None, typer.Option("--swap", metavar="64M", help="Swap of the guest, beside its memory; else none.")
]
AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="Machine host: settings are changed, and put back.")
]
Count = Annotated[
    Literal["plugin", "clock"] | None,
    typer.Option(
        "--count",
        metavar="plugin|clock",
        help="What counts instructions: the QEMU plugin where it loads, else the guest's clock.",
    ),
]
StoredStudyName = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="A study's name, number or file; else the latest.", autocompletion=study_names
    ),
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
        help="A bundle must be signed by somebody in this file (ssh-keygen's allowed signers).",
    ),
]
MetricsFormat = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="FORMAT",
        help="What the command prints: fio-json… (ktrial workload formats).",
        autocompletion=format_names,
    ),
]
AfterText = Annotated[
    str | None,
    typer.Option("--after", metavar="TEXT", help="Count from when it prints this: listening."),
]
SkipStart = Annotated[
    str | None,
    typer.Option("--skip-start", metavar="WHAT", help="Count from a call, signal or output: 'accept4 3'."),
]
MeasuredWorkloads = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="W1,W2…",
        help="Workloads, or their files; your own command comes at the end.",
        autocompletion=workload_names,
    ),
]
BootParameters = Annotated[
    list[str] | None, typer.Option("--boot", metavar="PARAMETER", help="A boot parameter; may be repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and measure nothing.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait for another ktrial that changes knobs.")]


@dataclass(frozen=True)
class RunOptions:
    """How a study is run, and where its result goes."""

    json: Json = False
    store: StoreOption = None
    html: Html = None
    no_html: NoHtml = False
    verbose: Verbose = False
    jobs: Jobs = None
    retry_failed: bool = False
    allow_host_changes: bool = False
    each_trial: bool = False
    """Whether each trial's numbers are told as it ends."""

    def __post_init__(self) -> None:
        """Raise KtrialError where the report cannot be written, before a kernel is booted for it."""
        check_page(self.html)


@dataclass(frozen=True)
class StudyRunOptions(RunOptions):
    """How one study is run, all of whose trials are known before the first."""

    dry_run: DryRun = False


def share(option: str, value: str, *, least: float, most: float) -> float:
    """The fraction that `1%` or `1 %` means, between the two. Raises BadAmount."""
    try:
        fraction = notation.share(value)
    except ValueError as error:
        raise BadAmount(option=option, value=value, problem=error) from None
    if not least <= fraction <= most:
        problem = f"it must be between {least * 100:g} % and {most * 100:g} %"
        raise BadAmount(option=option, value=value, problem=problem)
    return fraction


def duration(option: str, text: str, *, bare: bool = False) -> float:
    """Seconds in `90s`, `10min`, `6h`; with `bare`, in `90` too. Raises BadOption."""
    try:
        return notation.seconds(text, bare=bare)
    except ValueError as error:
        raise BadOption(option, f"{text} is not a time: {error}") from None


def margin_of(text: str | None) -> float | None:
    """`1%` → 0.01; None where there is none. Raises BadOption."""
    try:
        return None if text is None else notation.margin(text)
    except ValueError as error:
        raise BadOption("--margin", error) from None


def memory_of(text: str) -> int:
    """`1G` → 1024, in MiB. Raises BadOption."""
    try:
        return notation.memory_mib(text)
    except ValueError as error:
        raise BadOption("--memory", error) from None


Fleet = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="local:N|ADDRESS|FILE",
        help="Who performs the trials: ktrial help fleet. Else KTRIAL_FLEET; none: this system.",
    ),
]


def on_fleet_in_bisection(command: Callable[..., None]) -> Callable[..., None]:
    """As on_fleet, for a command whose exit code is a verdict: a fleet that cannot be had is none."""
    return on_fleet(command, CheckEndings)


def on_fleet(
    command: Callable[..., None], endings: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Callable[..., None]:
    """Give a command the option --fleet: the fleet that is named there performs its trials."""

    @contextmanager
    def on_named_fleet(name: str | None) -> Iterator[None]:
        with endings(), performed_by_fleet(name):
            yield

    return with_added(command, "fleet", Fleet, on_named_fleet)


@contextmanager
def performed_by_fleet(name: str | None) -> Iterator[None]:
    """Meanwhile the fleet of `--fleet` performs trials; None: the one of KTRIAL_FLEET, or this system."""
    from ktrial.fleet.settings import asked_for

    settings = asked_for(name)
    if settings is None:
        yield
        return
    from ktrial.experiment.executor import performed_by
    from ktrial.fleet import fleet

    with fleet.Fleet(settings, say) as opened, performed_by(opened):
        yield


_WAIT = typer.Option(
    "--wait",
    metavar="TIME",
    help=(
        "Machine ssh: how long to wait for a machine that somebody else holds: 30min, 2h; else that is an "
        "error."
    ),
)


def waits_for_machine(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --wait: a real machine that somebody else has is waited for."""

    @contextmanager
    def waiting_for(time: str | None) -> Iterator[None]:
        if time is None:
            yield
            return
        from ktrial.experiment.machine_lease import waiting

        with waiting(duration("--wait", time)):
            yield

    return with_added(command, "wait", Annotated[str | None, _WAIT], waiting_for)


Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="H1,H2…",
        help=(
            "Machine ssh: use this machine instead of the study's; several: run on all at once, and "
            "compare them."
        ),
        autocompletion=host_names,
    ),
]


def on_hosts(study: "Study", texts: Sequence[str]) -> "dict[str, Study]":
    """Each of the machines of `--host` → the study there. Raises BadOption."""
    from ktrial.experiment.single_kernel import study_on
    from ktrial.model.machine import ALLOWED, is_host_name

    if study.machine.kind != "ssh":
        problem = f'the study\'s machine is {study.machine.kind}; it goes with kind = "ssh"'
        raise BadOption("--host", problem)
    hosts = [host for text in texts for host in text.split(",")]
    machines: set[str] = set()
    for host in hosts:
        if not is_host_name(host):
            raise BadOption("--host", f"{host!r} is not a name of a machine: {ALLOWED}")
        machine = host.rpartition("@")[2]  # without the user
        if machine in machines:
            raise BadOption("--host", f"{machine} is named twice")
        machines.add(machine)
    return {host: study_on(study, host) for host in hosts}


User = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="NAME", help="Machine host, as root: your own commands run as this user (nobody)."
    ),
]


def with_user(study: "Study", user: str | None) -> "Study":
    """The study, each command that names no user with the one of `--user`. Raises BadOption."""
    if user is None:
        return study
    if study.machine.kind != "host":
        problem = (
            f"it goes with the machine host; a guest on the machine {study.machine.kind} has only its root"
        )
        raise BadOption("--user", problem)
    if not any(use.command for use in study.workloads):
        raise BadOption("--user", "no workload of the study is a command of your own")
    uses = tuple(
        use.model_copy(update={"command": use.command.model_copy(update={"user": use.command.user or user})})
        if use.command
        else use
        for use in study.workloads
    )
    return study.model_copy(update={"workloads": uses})
