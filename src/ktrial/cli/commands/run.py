"""`ktrial run`: run a study's trials, and print the verdicts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import BadOption, examples, words_again
from ktrial.cli.options.common import (
    Count,
    GuestMemory,
    Hosts,
    Html,
    Jobs,
    Json,
    Margin,
    NoHtml,
    OwnMetrics,
    Perturbations,
    StoreOption,
    User,
    on_fleet,
    on_hosts,
    waits_for_machine,
    with_user,
)
from ktrial.cli.options.completion import kernel_names, study_files, workload_names
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.study import Study


class NothingToCount(KtrialError):
    """--count `count`: the machine `machine` measures time, and counts no instructions."""

    text = "--count {count}: the machine {machine} measures time, and counts no instructions."
    exit_code = 2


class ModelledByThePlugin(KtrialError):
    """--count `count`: the study models cycles on `model`, and only the plugin does that."""

    text = "--count {count}: the study models cycles on {model}, and only the plugin does that."
    hint = 'leave the option out, or take the line model = "{model}" out of its [machine]'
    exit_code = 2


class NoSchedules(KtrialError):
    """--seeds `seeds`: on the machine `machine` no order of CPUs follows from a seed."""

    text = "--seeds {seeds}: on the machine {machine} no order of CPUs follows from a seed."
    hint = 'kind = "exact-parallel" in [machine], and cpus = 2 or more; --perturbations N on other machines'
    exit_code = 2


class SeedsTwice(KtrialError):
    """--seeds `seeds` and --perturbations `perturbations`: seeds are those of the perturbations."""

    text = "--seeds {seeds} and --perturbations {perturbations}: seeds are those of the perturbations."
    hint = "give one of the two"
    exit_code = 2


class StudyMissing(KtrialError):
    """Missing argument 'STUDY'."""

    text = "Missing argument 'STUDY'."
    hint = "name a file, or a study that comes with ktrial (ktrial run --list)"
    exit_code = 2


_SCHEDULED = "exact-parallel"


Given = Annotated[
    Path | None,
    typer.Argument(
        metavar="STUDY",
        help="A study file (TOML), or the name of one that comes with ktrial, or of a stored one.",
        autocompletion=study_files,
        readable=False,  # `load` says better what is wrong
        show_default=False,
    ),
]


Patches = Annotated[
    list[str] | None,
    typer.Option(
        "--patch", metavar="[FACTOR=]FILE", help='The patch that a study leaves to you (its level "?").'
    ),
]


AllowHostChanges = Annotated[
    bool,
    typer.Option(
        "--allow-host-changes",
        help="Machines host and ssh: settings may be changed, ssh may boot; all is undone.",
    ),
]


Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        max=1000,
        metavar="N",
        help="Machine exact-parallel: trials of each treatment, each with another order of its CPUs.",
    ),
]


Confirm = Annotated[
    int | None,
    typer.Option(
        "--confirm",
        min=3,
        max=10_000,
        metavar="N",
        help="In real time: then run N fresh blocks, for the size of the effects.",
    ),
]


@examples("ktrial run quick", "ktrial run my-study.toml --host lab1,lab2", "ktrial run --list")
@on_fleet
@waits_for_machine
def run(
    context: typer.Context,
    study: Given = None,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
    perturbations: Perturbations = None,
    seeds: Seeds = None,
    count: Count = None,
    patch: Patches = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run trials again that failed before.")
    ] = False,
    allow_host_changes: AllowHostChanges = False,
    user: User = None,
    host: Hosts = None,
    confirm: Confirm = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Only list the studies that come with ktrial.")
    ] = False,
) -> None:
    """Run a study, and print the verdicts.

    Trials that the store has already are not run again: interrupted (Ctrl-C) or killed, the same command
    goes on where it stopped.
    """
    from ktrial.cli.running.study import RunOptions, run_and_print
    from ktrial.experiment.single_kernel import confirmation_of

    if list_:
        _list(json)
        return
    if study is None:
        raise StudyMissing()
    given = _loaded(study, patch or (), store)
    loaded = with_user(_changed(given, _seeded(given, seeds, perturbations), count), user)
    there = on_hosts(loaded, host) if host else {}
    if len(there) > 1:
        _on_each(there, context, json=json, store=store, html=html)
        return
    loaded = next(iter(there.values()), loaded)
    confirmation = confirmation_of(loaded, confirm) if confirm else None
    run_and_print(
        loaded,
        confirmation=confirmation,
        options=RunOptions(
            json=json,
            store=store,
            html=html,
            no_html=no_html,
            jobs=jobs,
            retry_failed=retry_failed,
            allow_host_changes=allow_host_changes,
        ),
    )


def _on_each(
    studies: "dict[str, Study]", context: typer.Context, *, json: bool, store: str | None, html: Path | None
) -> None:
    from ktrial import machines
    from ktrial.cli.console import say
    from ktrial.cli.running.study import run_on_each
    from ktrial.experiment.executor import ThisSystem, chosen

    if html:
        raise BadOption(option="--html", problem="each of several machines has a report of its own")
    for study in studies.values():  # a fleet that has no part in them is told once
        chosen(ThisSystem).where_leased(machines.find(study.machine.kind), say)
    run_on_each(studies, words_again(context, without={"host"}), json=json, store=store)


def _loaded(given: Path, patches: Sequence[str], store: str | None) -> "Study":
    """The study of the file, the one that comes with ktrial, or the newest stored one of this name."""
    from ktrial.cli.studies import registry
    from ktrial.studyfile import toml_files
    from ktrial.studyfile.errors import TuningError
    from ktrial.studyfile.reader import load

    file = toml_files.file_of(given)
    stored = None if file.exists() or patches else _stored(str(given), store)
    loaded = stored or load(file, registry(), patches)
    if loaded.search:
        raise TuningError(
            f"The study {given} has a section [search]: its configurations are chosen as it goes.",
            hint=f"ktrial tune {given}",
        )
    return loaded


def _stored(name: str, store: str | None) -> "Study | None":
    """What `compare`, `revalidate` and the like made has no file, and is run again by its name."""
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    location = store or default_location()
    if "://" not in location and not Path(location).exists():
        return None
    with open_store(location) as opened:
        return opened.find(name).study if name in opened.names() else None


def _seeded(loaded: "Study", seeds: int | None, perturbations: int | None) -> int | None:
    """How many perturbations: one for each seed that is asked for. Raises SeedsTwice, NoSchedules."""
    if seeds is None:
        return perturbations
    if perturbations is not None:
        raise SeedsTwice(seeds=seeds, perturbations=perturbations)
    if loaded.machine.kind != _SCHEDULED:
        raise NoSchedules(seeds=seeds, machine=loaded.machine.kind)
    return seeds


def _changed(loaded: "Study", perturbations: int | None, count: str | None) -> "Study":
    from ktrial.model.study import EXACT_MACHINES

    if perturbations is not None:
        # So many, in place of as many as it takes.
        by_seeds = loaded.machine.kind in EXACT_MACHINES
        timing = None if by_seeds else loaded.timing
        loaded = loaded.model_copy(update={"perturbations": perturbations, "timing": timing})
    return loaded if count is None else _counted_by(loaded, count)


def _list(json: bool) -> None:
    from ktrial.cli.console import output, print_json
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field
    from ktrial.studyfile import toml_files

    if json:
        print_json(toml_files.names())
        return
    fields: tuple[Field[tuple[str, str]], ...] = (
        text_field("study", lambda one: one[0]),
        text_field("question", lambda one: one[1]),
    )
    output().print(rendered(table(fields, toml_files.names().items())))


def _counted_by(study: "Study", count: str) -> "Study":
    from ktrial.model.workload import CountedBy

    if study.machine.kind != "exact":
        raise NothingToCount(count=count, machine=study.machine.kind)
    if study.machine.model and count == CountedBy.CLOCK.value:
        raise ModelledByThePlugin(count=count, model=study.machine.model.reference)
    machine = study.machine.model_copy(update={"count": CountedBy(count)})
    return study.model_copy(update={"machine": machine})


# `ktrial compare`: compare kernels without a study file.

_OPTIONS = {
    "factors": "--kernel",
    "workloads": "--workload",
    "margin": "--margin",
    "perturbations": "--perturbations",
    "machine.count": "--count",
    "machine.memory": "--memory",
    "machine.boot": "--boot",
    "machine.cpus": "--cpus",
}
"""Key of a study file → the option that stands for it, for messages."""


@examples(
    "ktrial compare --kernel debian:6.1 --kernel debian:6.12 --workload fork,pipe",
    "ktrial compare --kernel debian:6.1 --kernel debian:6.12 -- ./bench.sh",
)
@on_fleet
def compare(
    context: typer.Context,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A kernel, at least two; the first is the baseline.",
            autocompletion=kernel_names,
        ),
    ],
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="W1,W2…",
            help="Workloads, or files of such; your own command stands at the end.",
            autocompletion=workload_names,
        ),
    ] = None,
    metrics: OwnMetrics = None,
    perturbations: Perturbations = None,
    count: Count = None,
    margin: Margin = None,
    memory: GuestMemory = None,
    cpus: Annotated[int | None, typer.Option(metavar="N", help="The guest's CPUs; else 1.")] = None,
    boot: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="A boot parameter; may be repeated.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare kernels without a study file.

    In workloads; or with a command of your own, which runs once here, to find what it needs, then on the
    kernels.
    """
    from ktrial.cli.options.own_command import asked, memory_for, own_words
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.study import RunOptions, run_and_print
    from ktrial.cli.studies import registry
    from ktrial.kernels.providers.git import pinned
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    words = own_words(context)
    if words:
        check_first(kernels=kernel, workloads=workload, words=words, jobs=jobs)
    wanted = asked(workload, words).printing(metrics)
    kernel = [pinned(name) for name in kernel]
    tables = wanted.tables()
    memory = memory_for(words, memory)
    machine = {"count": count, "memory": memory, "boot": boot, "cpus": cpus}
    data: dict[str, Any] = {
        "question": _question(kernel),
        "factors": {"kernel": {"levels": kernel}},
        "workloads": tables,
        "machine": _given(machine),
        **_given({"margin": margin, "perturbations": perturbations}),
    }
    source = StudySource("command line", options=_OPTIONS)
    study = study_from(data, source, "compare", Path.cwd(), registry())
    run_and_print(study, RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs))


def _question(kernels: list[str]) -> str:
    verb = "does" if len(kernels) == 2 else "do"
    return f"How {verb} {' and '.join(kernels[1:])} compare with {kernels[0]}?"


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


# `ktrial scale`: throughput over the number of CPUs, of one kernel or several.

_SCALE_OPTIONS = {
    "factors.kernel": "--kernel",
    "factors.cpus": "--cpus",
    "factors": "--kernel",
    "workloads": "--workload",
    "perturbations": "--seeds",
    "margin": "--margin",
    "machine.kernel": "--kernel",
    "machine.memory": "--memory",
    "machine.boot": "--boot",
    "machine.quantum": "--quantum",
}
"""Key of a study file → the option that stands for it, for messages."""


_CPUS = "1,2,4"


@examples(
    "ktrial scale --kernel debian:6.12 --workload open2,append2",
    "ktrial scale --kernel A --kernel B --workload page-fault1 --cpus 1,2,4,8",
)
@on_fleet
def scale(
    context: typer.Context,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A kernel; may be repeated: the first is the baseline.",
            autocompletion=kernel_names,
        ),
    ],
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="W1,W2…",
            help="Workloads, or files of such; your own command stands at the end.",
            autocompletion=workload_names,
        ),
    ] = None,
    metrics: OwnMetrics = None,
    cpus: Annotated[
        str, typer.Option(metavar="N1,N2…", help="Numbers of CPUs; from three on a law is fitted.")
    ] = _CPUS,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Trials at each number of CPUs.")
    ] = 3,
    quantum: Annotated[
        int | None, typer.Option(metavar="NS", help="Nanoseconds of guest time in a round (100).")
    ] = None,
    waits: Annotated[
        bool,
        typer.Option("--waits", help="Also count where the CPUs wait, under the first seed."),
    ] = False,
    margin: Margin = None,
    memory: GuestMemory = None,
    boot: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="A boot parameter; may be repeated.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Show how throughput grows with CPUs.

    Each kernel runs the workloads on machines of so many CPUs, in simulated time; a table and a chart show
    speed-up, efficiency, and the Universal Scalability Law that comes nearest.
    """
    from ktrial.cli.options.own_command import asked, memory_for, own_words
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.study import RunOptions, run_and_print
    from ktrial.cli.studies import registry
    from ktrial.kernels.providers.git import pinned
    from ktrial.model.parallel import WAITS
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    words = own_words(context)
    if words:
        check_first(kind="exact-parallel", kernels=kernel, workloads=workload, words=words, jobs=jobs)
    wanted = asked(workload, words).printing(metrics)
    kernels = list(dict.fromkeys(pinned(name) for name in kernel))
    several = len(kernels) > 1
    machine: dict[str, Any] = {"kind": "exact-parallel", "kernel": None if several else kernels[0]}
    machine |= {"memory": memory_for(words, memory), "boot": boot, "quantum": quantum}
    machine |= {"monitors": [WAITS] if waits else None}
    factors = {"kernel": {"levels": kernels}} if several else {}
    data: dict[str, Any] = {
        "question": f"How does throughput grow with CPUs on {' and '.join(kernels)}?",
        "factors": factors | {"cpus": {"levels": _counts(cpus)}},
        "workloads": wanted.tables(),
        "machine": _scale_given(machine),
        "perturbations": seeds,
        **_scale_given({"margin": margin}),
    }
    source = StudySource("command line", options=_SCALE_OPTIONS)
    study = study_from(data, source, "scale", Path.cwd(), registry())
    options = RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs)
    run_and_print(study, options)


def _counts(text: str) -> list[int | str]:
    """Numbers of CPUs; what is none stays as it is, for the study's own message."""
    words = [word.strip() for word in text.split(",")]
    return [int(word) if word.isdecimal() else word for word in words if word]


def _scale_given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


# `ktrial try`: a first result, without a study, and without a word to learn.

_WORKLOAD, _PERTURBATIONS = "pipe", 2


_TRY__OPTIONS = {"factors": "--kernel", "workloads": "--workload", "perturbations": "--perturbations"}
"""Key of a study file → the option that stands for it, for messages."""


Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="A kernel; twice: old, new. Else the oldest and the newest in the cache, or Debian's two.",
        autocompletion=kernel_names,
    ),
]


Workload = Annotated[
    str, typer.Option("--workload", metavar="W1,W2…", help="Workloads.", autocompletion=workload_names)
]


@examples("ktrial try", "ktrial try --workload fork --kernel debian:6.1 --kernel debian:6.12")
@on_fleet
def try_(
    workload: Workload = _WORKLOAD,
    kernel: Kernels = None,
    perturbations: Perturbations = _PERTURBATIONS,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare two kernels in one workload, at once.

    Nothing has to be written or chosen: each trial's number is told as it ends, then the verdict, the report,
    and what to do next.
    """
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.running.study import RunOptions, run_and_advise
    from ktrial.cli.studies import registry
    from ktrial.experiment.kernel_choice import two_kernels
    from ktrial.kernels.providers.git import pinned
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    if len(kernel or ()) > 2:
        raise BadOption(option="--kernel", problem="ktrial try compares two; ktrial compare takes more")
    kernels = [pinned(name) for name in two_kernels(kernel or ())]
    data: dict[str, Any] = {
        "question": f"How does {kernels[1]} compare with {kernels[0]}?",
        "factors": {"kernel": {"levels": kernels}},
        "workloads": [name.strip() for name in workload.split(",")],
        "perturbations": perturbations,
    }
    study = study_from(
        data, StudySource("command line", options=_TRY__OPTIONS), "try", Path.cwd(), registry()
    )
    run_and_advise(
        study, RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs, each_trial=True)
    )
