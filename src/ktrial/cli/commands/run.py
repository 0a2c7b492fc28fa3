"""`ktrial run`: run a study's trials, and print the verdicts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption, examples, words_again
from ktrial.cli.options.common import Count, Html, Jobs, Json, NoHtml, Perturbations, StoreOption
from ktrial.cli.options.completion import study_files
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.hosts import Hosts, on_hosts
from ktrial.cli.options.machine_wait import waits_for_machine
from ktrial.cli.options.user import User, with_user
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.study import Study


class NothingToCount(KtrialError):
    """--count {count}: the machine {machine} measures time, and counts no instructions."""

    exit_code = 2


class ModelledByThePlugin(KtrialError):
    """--count {count}: the study models cycles on {model}, and only the plugin does that."""

    hint = 'leave the option out, or take the line model = "{model}" out of its [machine]'
    exit_code = 2


class NoSchedules(KtrialError):
    """--seeds {seeds}: on the machine {machine} no order of CPUs follows from a seed."""

    hint = 'kind = "exact-parallel" in [machine], and cpus = 2 or more; --perturbations N on other machines'
    exit_code = 2


class SeedsTwice(KtrialError):
    """--seeds {seeds} and --perturbations {perturbations}: seeds are those of the perturbations."""

    hint = "give one of the two"
    exit_code = 2


class StudyMissing(KtrialError):
    """Missing argument 'STUDY'."""

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
    from ktrial.cli.running.on_hosts import run_on_each
    from ktrial.experiment.executor import ThisSystem, chosen

    if html:
        raise BadOption(option="--html", problem="each of several machines has a report of its own")
    for study in studies.values():  # a fleet that has no part in them is told once
        chosen(ThisSystem).where_leased(machines.find(study.machine.kind), say)
    run_on_each(studies, words_again(context, without={"host"}), json=json, store=store)


def _loaded(given: Path, patches: Sequence[str], store: str | None) -> "Study":
    """The study of the file, the one that comes with ktrial, or the newest stored one of this name."""
    from ktrial.cli.installed import registry
    from ktrial.studyfile import bundled_studies, load
    from ktrial.studyfile.errors import SearchNotRun

    file = bundled_studies.file_of(given)
    stored = None if file.exists() or patches else _stored(str(given), store)
    loaded = stored or load(file, registry(), patches)
    if loaded.search:
        raise SearchNotRun(study=given)
    return loaded


def _stored(name: str, store: str | None) -> "Study | None":
    """What `compare`, `revalidate` and the like made has no file, and is run again by its name."""
    from ktrial.store import default_location, open_store

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
    from ktrial.studyfile import bundled_studies

    if json:
        print_json(bundled_studies.names())
        return
    fields: tuple[Field[tuple[str, str]], ...] = (
        text_field("study", lambda one: one[0]),
        text_field("question", lambda one: one[1]),
    )
    output().print(rendered(table(fields, bundled_studies.names().items())))


def _counted_by(study: "Study", count: str) -> "Study":
    from ktrial.model.workload import CountedBy

    if study.machine.kind != "exact":
        raise NothingToCount(count=count, machine=study.machine.kind)
    if study.machine.model and count == CountedBy.CLOCK.value:
        raise ModelledByThePlugin(count=count, model=study.machine.model.reference)
    machine = study.machine.model_copy(update={"count": CountedBy(count)})
    return study.model_copy(update={"machine": machine})
