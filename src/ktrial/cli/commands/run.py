"""`ktrial run`, `compare`, `scale` and `try`: run a study that has a file, or one that options make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ktrial.cli.command_line import (
    Argument,
    BadOption,
    BadUsage,
    Option,
    examples,
    users_command,
    words_again,
)
from ktrial.cli.console import print_json, print_texts
from ktrial.cli.options.arguments import Arguments, named_by
from ktrial.cli.options.common import (
    AfterText,
    BootParameters,
    Count,
    EstimandOption,
    GuestMemory,
    GuestSwap,
    Hosts,
    Margin,
    MeasuredWorkloads,
    MetricsFormat,
    Perturbations,
    SkipStart,
    StudyRunOptions,
    User,
    on_fleet,
    on_hosts,
    waits_for_machine,
    with_user,
)
from ktrial.cli.options.completion import kernel_names, study_files, workload_names
from ktrial.cli.options.settings import KnobLevels, knob_levels
from ktrial.cli.options.workloads import memory_for, named_workloads, workload_names_of
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import open_store, registry, study_of_options
from ktrial.store.location import default_location
from ktrial.studyfile.errors import TuningError

if TYPE_CHECKING:
    from ktrial.model.study import Study


@dataclass(frozen=True)
class StudyFileOptions(StudyRunOptions):
    """How the study of a file is run."""

    retry_failed: bool = Option(False, "--retry-failed", help="Run failed trials again.")
    allow_host_changes: bool = Option(
        False,
        "--allow-host-changes",
        help="Machines host and ssh: settings may be changed, and ssh may boot; ktrial undoes all of it.",
    )


@examples("ktrial run quick --dry-run", "ktrial run my-study.toml --host lab1,lab2", "ktrial run --list")
@on_fleet
@waits_for_machine
def run(
    context: typer.Context,
    options: StudyFileOptions,
    study: Path | None = Argument(
        None,
        metavar="STUDY",
        help="A study file (TOML), or a study that is stored (name, id) or comes with ktrial (name).",
        autocompletion=study_files,
        readable=False,  # `load` says better what is wrong
        show_default=False,
    ),
    perturbations: Perturbations = None,
    seeds: int | None = Option(
        None,
        min=1,
        max=1000,
        metavar="N",
        help=(
            "Machine exact-parallel: trials of each treatment. A seed decides only when the CPUs start "
            "and which is first in a round: an unlocked update within a block of instructions is never "
            "lost."
        ),
    ),
    count: Count = None,
    estimand: EstimandOption = None,
    patch: list[str] | None = Option(
        None, metavar="[FACTOR=]FILE", help='The patch for the study\'s level "?".'
    ),
    user: User = None,
    host: Hosts = None,
    confirm: int | None = Option(
        None,
        min=3,
        max=10_000,
        metavar="N",
        help="In real time: then run N fresh blocks, to measure the size of the effects.",
    ),
    list_: bool = Option(False, "--list", help="Only list the studies that come with ktrial."),
) -> None:
    """Run a study, and print the verdicts.

    Stored trials are not run again. After Ctrl-C or a kill, the same command goes on where it stopped.
    """
    from ktrial.cli.running.study import run_and_print, run_on_each, show_plans
    from ktrial.experiment.single_kernel import confirmation_of

    if list_:
        _list(options.json)
        return
    if study is None:
        hint = "name a file, or a study that comes with ktrial (ktrial run --list)"
        raise BadUsage("Missing argument 'STUDY'.", hint=hint)
    loaded = _loaded(study, patch or (), options.store)
    loaded = with_user(_changed(loaded, _seeded(loaded, seeds, perturbations), count), user)
    loaded = _about(loaded, estimand)
    by_host = on_hosts(loaded, host) if host else {}
    if options.dry_run and len(by_host) > 1:
        show_plans(by_host, options)
        return
    if len(by_host) <= 1:
        loaded = next(iter(by_host.values()), loaded)
        run_and_print(loaded, options, confirmation_of(loaded, confirm) if confirm else None)
        return
    if options.html:
        raise BadOption("--html", "each of several machines has a report of its own")
    words = words_again(context, without={"host"})
    run_on_each(by_host, words, json=options.json, store=options.store)


def _loaded(path: Path, patches: Sequence[str], store: str | None) -> "Study":
    """The study of the file, the one that comes with ktrial, the stored one of this id, or the newest of this
    name.
    """
    from ktrial.studyfile import toml_files
    from ktrial.studyfile.reader import load

    file = toml_files.file_of(path)
    stored = None if file.exists() or patches else _stored(str(path), store)
    loaded = stored or load(file, registry(), patches)
    if loaded.search:
        raise TuningError(
            f"The study {path} has a section [search]: its configurations are chosen as it goes.",
            hint=f"ktrial tune {path}",
        )
    return loaded


def _stored(name: str, store: str | None) -> "Study | None":
    """What `compare`, `tune revalidate` and the like made has no file, and is run again by its name or id."""
    location = store or default_location()
    if "://" not in location and not Path(location).exists():
        return None
    with open_store(location) as opened:
        return opened.find(name).study if name in opened.names() or name.isdecimal() else None


def _seeded(study: "Study", seeds: int | None, perturbations: int | None) -> int | None:
    """How many perturbations: one for each seed. Raises BadOption."""
    if seeds is None:
        return perturbations
    if perturbations is not None:
        raise BadOption(
            f"--seeds {seeds} and --perturbations {perturbations}",
            "a seed is that of a perturbation.",
            hint="give one of the two",
        )
    if study.machine.kind != "exact-parallel":
        raise BadOption(
            f"--seeds {seeds}",
            f"on the machine {study.machine.kind} a seed does not change the order of CPUs.",
            hint='kind = "exact-parallel" in [machine], and cpus = 2 or more; --perturbations N on other '
            "machines",
        )
    return seeds


def _about(study: "Study", estimand: str | None) -> "Study":
    """The study with verdicts about that. Raises BadOption."""
    from ktrial.model.comparison import FEWEST_BLOCKS, Estimand

    if estimand is None:
        return study
    if study.timing is None:
        problem = f"the numbers of the study {study.name} are exact: each verdict is about all of them."
        raise BadOption(f"--estimand {estimand}", problem)
    fewest = FEWEST_BLOCKS.get(Estimand(estimand), 0)
    if study.timing.blocks < fewest:
        raise BadOption(
            f"--estimand {estimand}",
            f"that takes {fewest} blocks at least, and the study has {study.timing.blocks} at most.",
            hint=f"blocks = {fewest} in its [timed]",
        )
    timing = study.timing.model_copy(update={"estimand": Estimand(estimand)})
    return study.model_copy(update={"timing": timing})


def _changed(study: "Study", perturbations: int | None, count: str | None) -> "Study":
    """The study with so many perturbations, and counted so. Raises BadOption."""
    from ktrial.model.study import EXACT_MACHINES
    from ktrial.model.workload import CountedBy

    if perturbations is not None:
        # So many, in place of as many as it takes.
        timing = None if study.machine.kind in EXACT_MACHINES else study.timing
        study = study.model_copy(update={"perturbations": perturbations, "timing": timing})
    if count is None:
        return study
    if study.machine.kind != "exact":
        problem = f"the machine {study.machine.kind} measures time, and counts no instructions."
        raise BadOption(f"--count {count}", problem)
    model = study.machine.model
    if model and count == CountedBy.CLOCK.value:
        raise BadOption(
            f"--count {count}",
            f"the study models cycles on {model.reference}, and only the plugin does that.",
            hint=f'leave the option out, or take the line model = "{model.reference}" out of its [machine]',
        )
    machine = study.machine.model_copy(update={"count": CountedBy(count)})
    return study.model_copy(update={"machine": machine})


def _list(json: bool) -> None:
    from ktrial.studyfile import toml_files

    if json:
        print_json(toml_files.names())
        return
    print_texts(("study", "question"), toml_files.names().items())


@examples(
    "ktrial compare 6.1 6.12 fork,pipe",
    "ktrial compare 6.12 fork --knob vm.overcommit_memory=0,2",
    "ktrial compare 6.1 6.12 -- ./bench.sh",
)
@on_fleet
def compare(
    context: typer.Context,
    *,
    arguments: Arguments = None,
    kernel: list[str] | None = Option(
        None,
        metavar="NAME",
        help="A kernel. The first is the baseline.",
        autocompletion=kernel_names,
    ),
    options: StudyRunOptions,
    workload: MeasuredWorkloads = None,
    metrics: MetricsFormat = None,
    after: AfterText = None,
    skip_start: SkipStart = None,
    perturbations: Perturbations = None,
    count: Count = None,
    margin: Margin = None,
    memory: GuestMemory = None,
    swap: GuestSwap = None,
    cpus: int | None = Option(None, metavar="N", help="The guest's CPUs; else 1."),
    knob: KnobLevels = None,
    boot: BootParameters = None,
) -> None:
    """Compare kernels, or settings of a kernel, without a study file.

    Name the kernels, the baseline first; then workloads, or a command of your own. The command runs once
    here, to find the files that it needs, and then on the kernels. --knob compares values of a setting.
    """
    from ktrial.cli.running.study import run_and_print
    from ktrial.kernels.providers.git import pinned

    words, named = users_command(context), named_by(arguments).with_options(kernel, workload)
    settings = knob_levels(knob)
    if not named.kernels:
        raise _no_kernel("Which kernels are compared?", "ktrial compare 6.1 6.12 fork")
    if words:
        check_first(kernels=named.kernels, workloads=named.workloads, words=words, jobs=options.jobs)
    workloads = named_workloads(named.workloads, words).printing(metrics)
    workloads = workloads.counted_from(after, skip_start)
    kernels = [pinned(name) for name in named.kernels]
    several = len(kernels) > 1
    if not several and not settings:
        raise _no_kernel(
            f"What is {kernels[0]} compared with?",
            "ktrial compare 6.1 6.12 fork; settings of one kernel: --knob vm.swappiness=60,10",
        )
    study = study_of_options(
        {
            "question": _question(kernels, settings),
            "factors": {"kernel": {"levels": kernels} if several else None, **settings},
            "workloads": workloads.tables(),
            "machine": {
                "count": count,
                "kernel": None if several else kernels[0],
                "memory": memory_for(words, memory),
                "swap": swap,
                "boot": boot,
                "cpus": cpus,
            },
            "margin": margin,
            "perturbations": perturbations,
        },
        "compare",
        {
            "factors.kernel": "--kernel",
            "factors": "--knob" if settings else "--kernel",
            "workloads": "--workload",
            "margin": "--margin",
            "perturbations": "--perturbations",
            "machine.count": "--count",
            "machine.kernel": "--kernel",
            "machine.memory": "--memory",
            "machine.swap": "--swap",
            "machine.boot": "--boot",
            "machine.cpus": "--cpus",
        },
    )
    run_and_print(study, options)


def _question(kernels: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> str:
    """What is asked of the kernels, and of their settings."""
    if not settings:
        verb = "does" if len(kernels) == 2 else "do"
        return f"How {verb} {' and '.join(kernels[1:])} compare with {kernels[0]}?"
    names = " and ".join(settings)
    return f"{'Does' if len(settings) == 1 else 'Do'} {names} matter on {' and '.join(kernels)}?"


@examples(
    "ktrial scale 6.12 open2,append2",
    "ktrial scale 6.1 6.12 page-fault1 --cpus 1,2,4,8",
)
@on_fleet
def scale(
    context: typer.Context,
    *,
    arguments: Arguments = None,
    kernel: list[str] | None = Option(
        None,
        metavar="NAME",
        help="A kernel; may be repeated: the first is the baseline.",
        autocompletion=kernel_names,
    ),
    options: StudyRunOptions,
    workload: MeasuredWorkloads = None,
    metrics: MetricsFormat = None,
    cpus: str = Option(
        "1,2,4",
        metavar="N1,N2…",
        help="Numbers of CPUs. Three or more: a scaling law is fitted; one: kernels are compared.",
    ),
    seeds: int | None = Option(
        None,
        min=1,
        max=1000,
        metavar="N",
        help=(
            "Trials at each number of CPUs (3; with one number, as many as a verdict needs). A seed "
            "decides only when CPUs start and which is first."
        ),
    ),
    quantum: int | None = Option(None, metavar="NS", help="Nanoseconds of guest time in a round (100)."),
    waits: bool = Option(False, "--waits", help="Also count where the CPUs wait, under the first seed."),
    margin: Margin = None,
    memory: GuestMemory = None,
    boot: BootParameters = None,
) -> None:
    """Show how throughput grows with the number of CPUs.

    Each kernel runs the workloads on machines of these numbers of CPUs, in simulated time. A table and a
    chart show speed-up, efficiency, and the Universal Scalability Law that fits best. No seed shows all
    races: a block of instructions is atomic, memory is sequentially consistent, and plain loads and stores
    share cache lines for free.
    """
    from ktrial.cli.running.study import run_and_print
    from ktrial.kernels.providers.git import pinned
    from ktrial.model.parallel import WAITS

    words, named = users_command(context), named_by(arguments).with_options(kernel, workload)
    if not named.kernels:
        raise _no_kernel("Which kernel scales?", "ktrial scale 6.12 open2")
    if words:
        check_first(
            kind="exact-parallel",
            kernels=named.kernels,
            workloads=named.workloads,
            words=words,
            jobs=options.jobs,
        )
    workloads = named_workloads(named.workloads, words).printing(metrics)
    kernels = list(dict.fromkeys(pinned(name) for name in named.kernels))
    several = len(kernels) > 1
    # What is no number stays as it is, for the study's own message.
    counts = [int(word) if word.isdecimal() else word for word in map(str.strip, cpus.split(",")) if word]
    is_one = len(counts) == 1
    if is_one and not several:
        problem = f"one kernel on {cpus.strip()} CPUs leaves nothing to compare"
        raise BadOption("--cpus", problem, hint="give several numbers, --cpus 1,2,4, or a second kernel")
    question = f"How much more gets done with more CPUs on {' and '.join(kernels)}?"
    if is_one:
        noun = "CPU" if counts == [1] else "CPUs"
        verb = "does" if len(kernels) == 2 else "do"
        question = f"How {verb} {' and '.join(kernels[1:])} compare with {kernels[0]} on {counts[0]} {noun}?"
    study = study_of_options(
        {
            "question": question,
            "factors": {
                "kernel": {"levels": kernels} if several else None,
                "cpus": None if is_one else {"levels": counts},
            },
            "workloads": workloads.tables(),
            "machine": {
                "kind": "exact-parallel",
                "cpus": counts[0] if is_one else None,
                "kernel": None if several else kernels[0],
                "memory": memory_for(words, memory),
                "boot": boot,
                "quantum": quantum,
                "monitors": [WAITS] if waits else None,
            },
            "perturbations": seeds or (None if is_one else 3),
            "margin": margin,
        },
        "scale",
        {
            "factors.kernel": "--kernel",
            "factors.cpus": "--cpus",
            "machine.cpus": "--cpus",
            "factors": "--kernel",
            "workloads": "--workload",
            "perturbations": "--seeds",
            "margin": "--margin",
            "machine.kernel": "--kernel",
            "machine.memory": "--memory",
            "machine.boot": "--boot",
            "machine.quantum": "--quantum",
        },
    )
    run_and_print(study, options)


def _no_kernel(problem: str, example: str) -> BadUsage:
    return BadUsage(problem, hint=f"kernels come first, then workloads: {example}; ktrial kernel list")


@examples("ktrial try", "ktrial try fork", "ktrial try 6.1 6.12 fork")
@on_fleet
def try_(
    options: StudyRunOptions,
    arguments: Arguments = None,
    workload: str | None = Option(
        None, metavar="W1,W2…", help="Workloads; else pipe.", autocompletion=workload_names
    ),
    kernel: list[str] | None = Option(
        None,
        metavar="NAME",
        help="A kernel; twice: old, new. Else the oldest and the newest in the cache, or Debian's two.",
        autocompletion=kernel_names,
    ),
    perturbations: Perturbations = 2,
) -> None:
    """Compare two kernels in one workload, at once.

    It needs no study file. It prints each trial's number as the trial ends, then the verdict, the report and
    the next command.
    """
    from ktrial.cli.running.study import run_and_advise
    from ktrial.experiment.kernel_choice import two_kernels
    from ktrial.kernels.providers.git import pinned

    named = named_by(arguments).with_options(kernel, workload)
    if len(named.kernels) > 2:
        raise BadOption("--kernel", "ktrial try compares two; ktrial compare takes more")
    kernels = [pinned(name) for name in two_kernels(named.kernels)]
    study = study_of_options(
        {
            "question": f"How does {kernels[1]} compare with {kernels[0]}?",
            "factors": {"kernel": {"levels": kernels}},
            "workloads": workload_names_of(named.workloads or ["pipe"]),
            "perturbations": perturbations,
        },
        "try",
        {"factors": "--kernel", "workloads": "--workload", "perturbations": "--perturbations"},
    )
    run_and_advise(study, replace(options, each_trial=True))
