"""Runs a search from the command line: plan, runs, answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ktrial import machines
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import breakable, messages, output, print_json, say
from ktrial.cli.progress import StepLog, progress
from ktrial.cli.running.search_answer import end, print_plan, prospects
from ktrial.cli.studies import open_store
from ktrial.experiment import machine_lease, preflight
from ktrial.experiment.executor import ThisSystem, chosen
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources, sources_for
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.machines import CountingMachine, Machine
from ktrial.machines.errors import HostChangeForbidden
from ktrial.model.base import digest
from ktrial.model.study import Study
from ktrial.model.trial import Trial
from ktrial.model.tuning import Purpose, Tuned
from ktrial.optimize.search_space import search_of, with_space
from ktrial.optimize.session import NoisePrior, measured_noise, noise_prior
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile.errors import SearchFailed, TuningError
from ktrial.studyfile.references import resolved
from ktrial.studyfile.search import searched_knobs

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.cli.commands.tune import SearchOptions
    from ktrial.optimize.evaluation_log import Stage


HOST = "host"


@contextmanager
def on_machine(
    study: Study, store: Store, *, allow_host_changes: bool
) -> Iterator[tuple[Machine, Resources]]:
    """The machine that the study asks for, leased and checked, and where kernels and workloads come from."""
    with machine_for(study, allow_host_changes=allow_host_changes, say=say) as host:
        machine = host or machines.find(study.machine.kind)
        if isinstance(machine, CountingMachine):
            machine.count_by(study.machine.counted_by)
        resources = sources_for(machine, default_resources())
        at_once = study.search.at_once if study.search else None
        preflight.check(preflight.undertaking(resolved(study), machine, resources, at_once), say)
        places = (store, *chosen(ThisSystem).where_leased(machine, say))
        machine_lease.leased(machine, places, study.name, say)
        machine_lease.when_free(machine.check, say)
        yield machine, resources


def search(study: Study, options: "SearchOptions") -> None:
    """Make the space, print the plan, search, print the answer."""
    _check(study, options)
    with open_store(options.store) as store:
        with (
            on_machine(study, store, allow_host_changes=options.allow_host_changes) as (machine, resources),
            progress(quiet=True) as observer,
        ):
            study = with_space(study, machine, resources, observer)
            _require_leave(study, options)
            tuned = _searched(study, store, machine, resources, options)
        if tuned is not None:
            end(study, tuned, store, options)


def go_on(options: "SearchOptions") -> None:
    """Go on with the newest search that has not ended. Raises SearchFailed."""
    with open_store(options.store) as store:
        for stored in reversed(store.studies()):
            study = stored.study
            if study.search and study.search.space and _goes_on(stored, store):
                break
        else:
            raise SearchFailed(
                f"{store.name}: there is no search that was interrupted.",
                hint="start one: ktrial tune --knobs vm,sched -- ./bench.sh",
            )
        _check(study, options)
        _require_leave(study, options)
        with on_machine(study, store, allow_host_changes=options.allow_host_changes) as (machine, resources):
            tuned = _searched(study, store, machine, resources, options)
        if tuned is not None:
            end(study, tuned, store, options)


def _goes_on(stored: StoredStudy, store: Store) -> bool:
    from ktrial.optimize.session import ended

    try:
        return ended(store, stored) is None
    except TuningError:
        return False  # So it ended: no configuration kept a guard, say.


def _check(study: Study, options: "SearchOptions") -> None:
    """Raise before the first run what would only come out after the last."""
    if study.search:
        knobs = searched_knobs(study.search.knobs)
        # Of those that only belong to a subsystem the plan says why they are left out.
        names = [knob.name for knob in knobs if knob.by_itself]
        preflight.check_knobs(names, study.machine)
    if options.apply and study.machine.kind != HOST:
        problem = (
            f"trials ran on the machine {study.machine.kind}: --answer DIR writes what is to be installed"
        )
        raise BadOption("--apply", problem)


def _require_leave(study: Study, options: "SearchOptions") -> None:
    """Raise HostChangeForbidden."""
    if study.machine.kind == HOST and not options.dry_run and not options.allow_host_changes:
        raise HostChangeForbidden(machine=HOST, what="change the knobs that are searched")


def _searched(
    study: Study, store: Store, machine: Machine, resources: Resources, options: "SearchOptions"
) -> Tuned | None:
    """The answer; None after a dry run."""
    from ktrial.optimize.session import run_search

    shown = output() if options.dry_run and not options.json else messages()
    if options.dry_run and study.machine.kind != HOST:
        messages().print("a guest is booted once, to ask its kernel which knobs it has; no trial runs")
    plan = _plan(study, machine, noise_prior(study, store))
    if options.dry_run and options.json:
        print_json(plan)
    else:
        print_plan(study, plan, shown)
    for use in study.workloads:
        for warning in preflight.of_use(machine, use):
            messages().print(f"warning: {warning.text}: {warning.advice}", markup=False)
    if options.dry_run:
        return None
    noise_is_new = not plan["noise"] and plan["noise_from"] != "exact mode"
    watch = _Watch(
        study,
        messages(),
        stored=len(_stored(study, store)),
        prospects=frozenset(prospects(plan)),
        plan_again=(lambda: _plan(study, machine, measured_noise(study, _stored(study, store))))
        if noise_is_new
        else None,
    )
    return run_search(
        study, store=store, machine=machine, observer=watch, resources=resources, progress=watch.stage
    )


def _stored(study: Study, store: Store) -> tuple[Trial, ...]:
    stored = store.newest(digest=digest(study))
    return store.trials(stored.id, counted=False) if stored else ()


def _plan(study: Study, machine: Machine, prior: NoisePrior) -> dict[str, object]:
    """What is known before the first run. Raises TuningError."""
    import numpy as np

    from ktrial.model.workload import EXACT_MODES
    from ktrial.optimize.budget import outlook
    from ktrial.optimize.encoding import Encoding

    search, space = search_of(study)
    Encoding(space).draw(np.random.default_rng(0))  # a dry run, too, tells that there is nothing to try
    exact = machine.mode in EXACT_MODES
    # Runs in real time that do not differ at all were too few, or print too few digits.
    noise = 0.0 if exact else prior.noise or None
    runs = search.budget.runs
    if runs is None and prior.seconds and search.budget.seconds:
        runs = int(search.budget.seconds / prior.seconds)
    expected = None
    if runs is not None:
        # How the budget is shared does not follow from the noise: a budget that is too small is told at once.
        assumed = 0.0 if exact else noise or _SOME_NOISE
        perturbations = study.perturbations if exact else 1
        expected = outlook(space, search.goal, runs, assumed, perturbations=perturbations)
    seconds = search.budget.seconds
    if seconds is None and prior.seconds and runs is not None:
        seconds = runs * prior.seconds / search.at_once
    return {
        "study": study.name,
        "machine": study.machine.kind,
        "workload": search.goal.workload,
        "objectives": [objective.model_dump(mode="json") for objective in search.goal.objectives],
        "guards": list(map(str, search.goal.guards)),
        "space": space.model_dump(mode="json"),
        "left_out": [knob.model_dump() for knob in search.left_out],
        "runs": runs,
        "at_once": search.at_once,
        "noise": noise,
        "noise_from": "exact mode" if exact else prior.source,
        "smallest_effect": expected.smallest_effect if expected and noise is not None else None,
        "shares": vars(expected.shares) if expected else None,
        "run_seconds": prior.seconds,
        "seconds": seconds,
    }


_SECONDS_BETWEEN_LINES = 2.0
_SOME_NOISE = 0.02


@dataclass
class _Watch(Observer):
    """A line now and then, nothing while one goes on: drawing would disturb what is measured here."""

    study: Study
    console: "Console"
    stored: int = 0
    """Runs of an earlier part of this search, which are not told again."""
    prospects: frozenset[str] = frozenset()
    """What the plan told of the budget."""
    plan_again: Callable[[], dict[str, object]] | None = None
    """The plan, once the baseline's first runs have shown the noise; None: the noise was known before."""
    began: float = field(default_factory=time.monotonic)
    ran: int = 0
    written: float = 0.0
    purpose: Purpose = Purpose.CALIBRATE

    def __post_init__(self) -> None:
        self.steps = StepLog(self.console.print)

    def kernel_progress(self, name: str, step: str, size: int, total: int) -> None:
        """See Observer."""
        self.steps.step(name, step, size, total)

    def stopping(self) -> None:
        """See Observer."""
        self.console.print("stopping: what is finished is being stored")

    def stage(self, stage: "Stage") -> None:
        """What the search says of itself."""
        if stage.purpose is not Purpose.CALIBRATE and self.plan_again:
            plan_again, self.plan_again = self.plan_again, None
            for line in prospects(plan_again()):
                if line not in self.prospects:
                    self.console.print(line)
        if stage.text and stage.done >= self.stored:
            self.console.print(one_line(stage.text))
        if not stage.text and stage.done > self.stored:
            self.ran += 1
            seconds = time.monotonic()
            if stage.purpose is not self.purpose or seconds - self.written >= _SECONDS_BETWEEN_LINES:
                self.purpose, self.written = stage.purpose, seconds
                self._tell(stage)

    def _tell(self, stage: "Stage") -> None:
        seconds = (time.monotonic() - self.began) / self.ran
        left = number_format.duration(max(1, seconds * (stage.runs - stage.done)))
        run = f"run {stage.done} of at most {stage.runs}: {_DOING[stage.purpose]}"
        self.console.print(breakable(f"{run}, about {left} left"))


_DOING = {
    Purpose.CALIBRATE: "the baseline",
    Purpose.EXPLORE: "exploring",
    Purpose.CONTEND: "what promises most by all runs so far",
    Purpose.ABLATE: "taking back what does not matter",
    Purpose.CONFIRM: "confirming on fresh runs",
}
