"""Runs a search from the command line: plan, runs, answer."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial import machines
from ktrial.analysis.data_quality import lacking
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import messages, output, print_json, say
from ktrial.cli.options.common import duration
from ktrial.cli.options.own_command import captured, memory_for, study_table
from ktrial.cli.progress import StepLog, progress
from ktrial.cli.running.preflight import check_first
from ktrial.cli.running.search_answer import end, print_plan, prospects
from ktrial.cli.studies import registry
from ktrial.experiment import machine_lease, preflight
from ktrial.experiment.executor import ThisSystem, chosen
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources, sources_for
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.machines import CountingMachine, Machine
from ktrial.machines.errors import HostChangeForbidden
from ktrial.model.study import Study
from ktrial.model.trial import Trial
from ktrial.model.tuning import Purpose, Tuned
from ktrial.model.workload import MetricRule
from ktrial.optimize.search_space import search_of, with_space
from ktrial.optimize.session import NoisePrior, measured_noise, noise_prior
from ktrial.program_outputs import find
from ktrial.store.location import default_location
from ktrial.store.store import Store, open_store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile import toml_files
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.errors import NothingToResume, TuningError
from ktrial.studyfile.reader import load, study_from
from ktrial.studyfile.references import resolved
from ktrial.studyfile.search import CLOCK, guard_of, rules_of, searched_knobs
from ktrial.workloads.capture import name_of

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.optimize.evaluation_log import Stage


HOST = "host"


@dataclass(frozen=True)
class SearchOptions:
    """How a search is run and shown."""

    json: bool = False
    store: str | None = None
    html: Path | None = None
    no_html: bool = False
    dry_run: bool = False
    allow_host_changes: bool = False
    answer: Path | None = None
    apply: bool = False


@contextmanager
def on_machine(
    study: Study, store: Store, *, allow_host_changes: bool
) -> Iterator[tuple[Machine, Resources]]:
    """The machine that the study asks for, leased and checked, and where kernels and workloads come from."""
    with machine_for(study, allow_host_changes=allow_host_changes, say=say) as host:
        machine = host or machines.find(study.machine.kind)
        if isinstance(machine, CountingMachine):
            machine.count_by(study.machine.counted_by)
        sources = sources_for(machine, default_resources())
        at_once = study.search.at_once if study.search else None
        preflight.check(preflight.undertaking(resolved(study), machine, sources, at_once), say)
        places = (store, *chosen(ThisSystem).where_leased(machine, say))
        machine_lease.leased(machine, places, study.name, say)
        machine_lease.when_free(machine.check, say)
        yield machine, sources


def search(study: Study, options: SearchOptions) -> None:
    """Make the space, print the plan, search, print the answer."""
    _check(study, options)
    with open_store(options.store or default_location()) as store:
        with (
            on_machine(study, store, allow_host_changes=options.allow_host_changes) as (machine, sources),
            progress(quiet=True) as observer,
        ):
            known = with_space(study, machine, sources, observer)
            _require_leave(study, options)
            tuned = _searched(known, store, machine, sources, options)
        if tuned is not None:
            _end(known, tuned, store, options)


def go_on(options: SearchOptions) -> None:
    """Go on with the newest search that has not ended. Raises NothingToResume."""
    with open_store(options.store or default_location()) as store:
        for stored in reversed(store.studies()):
            study = stored.study
            if study.search and study.search.space and _goes_on(stored, store):
                break
        else:
            raise NothingToResume(store=store.name)
        _check(study, options)
        _require_leave(study, options)
        with on_machine(study, store, allow_host_changes=options.allow_host_changes) as (machine, sources):
            tuned = _searched(study, store, machine, sources, options)
        if tuned is not None:
            _end(study, tuned, store, options)


def _goes_on(stored: StoredStudy, store: Store) -> bool:
    from ktrial.optimize.session import ended

    try:
        return ended(store, stored) is None
    except TuningError:
        return False  # So it ended: no configuration kept a guard, say.


def _check(study: Study, options: SearchOptions) -> None:
    """What would only come out after the last run is said before the first."""
    if study.search:
        searched_knobs(study.search.knobs)
    if options.apply and study.machine.kind != HOST:
        problem = (
            f"trials ran on the machine {study.machine.kind}: --answer DIR writes what is to be installed"
        )
        raise BadOption(option="--apply", problem=problem)


def _require_leave(study: Study, options: SearchOptions) -> None:
    """Raise HostChangeForbidden."""
    if study.machine.kind == HOST and not options.dry_run and not options.allow_host_changes:
        raise HostChangeForbidden(machine=HOST, what="change the knobs that are searched")


def _searched(
    study: Study, store: Store, machine: Machine, sources: Resources, options: SearchOptions
) -> Tuned | None:
    """The answer; None after a dry run."""
    from ktrial.optimize.session import run_search

    known = noise_prior(study, store)
    shown = output() if options.dry_run and not options.json else messages()
    plan = _plan(study, machine, known)
    if options.dry_run and options.json:
        print_json(plan)
    else:
        print_plan(study, plan, shown)
    for each in searched_knobs(study.search.knobs) if study.search else ():
        if each.by_itself and (equipment := lacking(study.machine, each.knob)):
            messages().print(f"warning: {each.name} cannot act: the guests have no {equipment}", markup=False)
    for use in study.workloads:
        for warning in preflight.of_use(machine, use):
            messages().print(f"warning: {warning.text}: {warning.advice}", markup=False)
    if options.dry_run:
        return None
    noise_is_new = not plan["noise"] and plan["noise_from"] != "exact mode"
    watch = _Watch(
        study,
        messages(),
        done=len(_stored(study, store)),
        told_before=frozenset(prospects(plan)),
        look=(lambda: _plan(study, machine, measured_noise(study, _stored(study, store))))
        if noise_is_new
        else None,
    )
    return run_search(
        study, store=store, machine=machine, observer=watch, sources=sources, progress=watch.stage
    )


def _stored(study: Study, store: Store) -> tuple[Trial, ...]:
    return store.trials(store.study(study), counted=False)


def _plan(study: Study, machine: Machine, known: NoisePrior) -> dict[str, object]:
    """What is known before the first run. Raises NoValidConfiguration, BudgetTooSmall."""
    import numpy as np

    from ktrial.model.workload import EXACT_MODES
    from ktrial.optimize.budget import outlook
    from ktrial.optimize.encoding import Encoding

    search, space = search_of(study)
    Encoding(space).draw(np.random.default_rng(0))  # a dry run, too, tells that there is nothing to try
    exact = machine.mode in EXACT_MODES
    # Runs in real time that do not differ at all were too few, or print too few digits.
    noise = 0.0 if exact else known.noise or None
    runs = search.budget.runs
    if runs is None and known.seconds and search.budget.seconds:
        runs = int(search.budget.seconds / known.seconds)
    expected = None
    if runs is not None:
        # How the budget is shared does not follow from the noise: a budget that is too small is told at once.
        assumed = 0.0 if exact else noise or _SOME_NOISE
        perturbations = study.perturbations if exact else 1
        expected = outlook(space, search.goal, runs, assumed, perturbations=perturbations)
    seconds = search.budget.seconds
    if seconds is None and known.seconds and runs is not None:
        seconds = runs * known.seconds / search.at_once
    return {
        "study": study.name,
        "machine": study.machine.kind,
        "workload": search.goal.workload,
        "objectives": [one.model_dump(mode="json") for one in search.goal.objectives],
        "guards": [str(one) for one in search.goal.guards],
        "space": space.model_dump(mode="json"),
        "left_out": [one.model_dump() for one in search.left_out],
        "runs": runs,
        "at_once": search.at_once,
        "noise": noise,
        "noise_from": "exact mode" if exact else known.source,
        "smallest_effect": expected.smallest_effect if expected and noise is not None else None,
        "shares": vars(expected.shares) if expected else None,
        "run_seconds": known.seconds,
        "seconds": seconds,
    }


_SECONDS_BETWEEN_LINES = 2.0


_SOME_NOISE = 0.02


@dataclass
class _Watch(Observer):
    """A line now and then, nothing while one goes on: drawing would disturb what is measured here."""

    study: Study
    console: "Console"
    done: int = 0
    """Runs of an earlier part of this search, which are not told again."""
    told_before: frozenset[str] = frozenset()
    """What was said of the budget."""
    look: Callable[[], dict[str, object]] | None = None
    """The plan anew, once the baseline's first runs have shown the noise; None: it was known before."""
    began: float = field(default_factory=time.monotonic)
    ran: int = 0
    told: float = 0.0
    purpose: Purpose = Purpose.CALIBRATE

    def __post_init__(self) -> None:
        self.steps = StepLog(self.console.print)

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """See Observer."""
        self.steps.step(name, what, done, total)

    def stopping(self) -> None:
        """See Observer."""
        self.console.print("stopping: what is finished is being stored")

    def stage(self, stage: "Stage") -> None:
        """What the search says of itself."""
        if stage.purpose is not Purpose.CALIBRATE and self.look:
            look, self.look = self.look, None
            for line in prospects(look()):
                if line not in self.told_before:
                    self.console.print(line)
        if stage.text and stage.done >= self.done:
            self.console.print(one_line(stage.text))
        if not stage.text and stage.done > self.done:
            self.ran += 1
            now = time.monotonic()
            if stage.purpose is not self.purpose or now - self.told >= _SECONDS_BETWEEN_LINES:
                self.purpose, self.told = stage.purpose, now
                self._tell(stage)

    def _tell(self, stage: "Stage") -> None:
        seconds = (time.monotonic() - self.began) / self.ran
        left = number_format.duration(max(1, seconds * (stage.runs - stage.done)))
        what = f"run {stage.done} of at most {stage.runs}: {_DOING[stage.purpose]}"
        self.console.print(f"{what}, about {left} left".replace("\u00a0", " "))


_DOING = {
    Purpose.CALIBRATE: "the baseline",
    Purpose.EXPLORE: "exploring",
    Purpose.CONTEND: "what promises most by all runs so far",
    Purpose.ABLATE: "taking back what does not matter",
    Purpose.CONFIRM: "confirming on fresh runs",
}


def _end(study: Study, tuned: Tuned, store: Store, options: SearchOptions) -> None:
    end(
        study,
        tuned,
        store,
        json=options.json,
        html=options.html,
        no_html=options.no_html,
        directory=options.answer,
        apply=options.apply,
    )


# From what `ktrial tune` was given to a study with a search: the same as a study file makes.

_OPTIONS = {
    "search.knobs": "--knobs",
    "search.budget": "--budget",
    "search.time": "--time",
    "search.optimiser": "--optimiser",
    "search": "--maximise, --minimise, --subject-to",
    "workloads": "--workload, or the command behind --",
    "machine.kernel": "--kernel",
    "machine.memory": "--memory",
    "machine.boot": "--boot",
    "machine": "--machine",
    "margin": "--margin",
}
"""Key of a study file → the option that stands for it, for messages."""


_PREFIX = "tune-"


_FOR_A_COMMAND = "it is for a command; a workload has its own metrics"


@dataclass(frozen=True)
class TuneOptions:
    """The options, as they were given."""

    words: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()
    workload: str | None = None
    maximise: tuple[str, ...] = ()
    minimise: tuple[str, ...] = ()
    subject_to: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    format: str | None = None
    """What the command prints: `wrk`."""
    machine: str | None = None
    kernel: str | None = None
    budget: int | None = None
    time: str | None = None
    margin: str | None = None
    optimiser: str | None = None
    seed: int | None = None
    repeats: int | None = None
    discarded: int | None = None
    carry: tuple[str, ...] = ()
    limit: str | None = None
    memory: str | None = None
    boot: tuple[str, ...] = ()
    perturbations: int | None = None
    jobs: int | None = None

    @property
    def of_file(self) -> bool:
        """Whether a study is named, not a command: a program that can be run is a command."""
        if len(self.words) != 1 or self.knobs or self.workload:
            return False
        (word,) = self.words
        return word.endswith(".toml") or shutil.which(word) is None


def study_of(asked: TuneOptions) -> Study:
    """The study. Raises BadOption, TuningError, StudyError."""
    if asked.of_file:
        return _of_file(asked)
    if asked.words and _in_a_guest(asked):
        kernels = [asked.kernel] if asked.kernel else []
        check_first(kind=asked.machine or "exact", kernels=kernels, words=asked.words, jobs=asked.jobs)
    data: dict[str, Any] = {
        "workloads": [_workload(asked)],
        "machine": _machine(asked),
        "search": _search(asked),
        **_given({"margin": asked.margin, "seed": asked.seed, "perturbations": asked.perturbations}),
    }
    source = StudySource("command line", options=_OPTIONS)
    study = study_from(data, source, "tune", Path.cwd(), registry())
    (use,) = study.workloads
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", use.name).strip("-.")
    question = f"Which settings serve {use.label} best?"
    return study.model_copy(update={"name": f"{_PREFIX}{name}", "question": question})


def _of_file(asked: TuneOptions) -> Study:
    """A file's study; its budget, machine and seed may be given anew."""
    if asked.format:
        raise BadOption(option="--metrics", problem='a study file says it: metrics = "…" of its workload')
    study = load(toml_files.file_of(Path(asked.words[0])), registry())
    if study.search is None:
        raise TuningError(
            f"The study {study.name} is no search: it compares the treatments that it names.",
            hint="ktrial run runs it; ktrial tune needs --knobs, or a section [search]",
        )
    changed: dict[str, Any] = {}
    budget = study.search.budget
    if asked.budget or asked.time:
        seconds = duration("--time", asked.time) if asked.time else None
        budget = budget.model_copy(update={"runs": asked.budget, "seconds": seconds})
    search = study.search.model_copy(
        update={"budget": budget, **_given({"optimiser": asked.optimiser, "at_once": asked.jobs})}
    )
    changed |= {"search": search, **_given({"seed": asked.seed, "perturbations": asked.perturbations})}
    return study.model_copy(update=changed)


def _search(asked: TuneOptions) -> dict[str, Any]:
    if not asked.knobs:
        problem = "which knobs? --knobs vm,sched, or NAME=low..high (ktrial knob list)"
        raise BadOption(option="--knobs", problem=problem)
    given = {"budget": asked.budget, "time": asked.time, "optimiser": asked.optimiser, "at_once": asked.jobs}
    return {
        "knobs": list(asked.knobs),
        "maximise": list(asked.maximise),
        "minimise": list(asked.minimise),
        "subject_to": list(asked.subject_to),
        **_given(given),
    }


def _machine(asked: TuneOptions) -> dict[str, Any]:
    kind = asked.machine or ("exact" if asked.kernel else "host")
    limit = duration("--limit", asked.limit) if asked.limit else None
    boot = list(asked.boot) or None
    memory = memory_for(asked.words, asked.memory) if _in_a_guest(asked) else asked.memory
    return {
        "kind": kind,
        **_given({"kernel": asked.kernel, "memory": memory, "boot": boot, "limit_seconds": limit}),
    }


def _workload(asked: TuneOptions) -> Any:
    if asked.workload and asked.words:
        raise BadOption(option="--workload", problem="there is a command too: give one of the two")
    if asked.workload:
        if asked.metrics:
            raise BadOption(option="--metric", problem=_FOR_A_COMMAND)
        if asked.format:
            raise BadOption(option="--metrics", problem=_FOR_A_COMMAND)
        return asked.workload
    if not asked.words:
        problem = "what is to be measured? ktrial tune --knobs vm -- ./bench.sh, or --workload W"
        raise BadOption(option="COMMAND", problem=problem)
    if _in_a_guest(asked):
        return _captured(asked)
    program, *arguments = asked.words
    # A command runs in /tmp: what is named from here is found from there.
    program = str(Path(program).absolute()) if "/" in program else program
    return {
        "name": name_of(program, frozenset(registry().workloads)),
        "command": [program, *arguments],
        "files": [str(Path(file).absolute()) for file in asked.carry],
        "metrics": _metrics(asked),
        "repeats": asked.repeats or 1,
        "discarded": asked.discarded or 0,
    }


def _in_a_guest(asked: TuneOptions) -> bool:
    """Whether the command has to be carried, and nobody said what it needs."""
    return (asked.machine or ("exact" if asked.kernel else "host")) != "host" and not asked.carry


def _captured(asked: TuneOptions) -> dict[str, Any]:
    """The command with what it needs, found by running it once here."""
    runs = {"repeats": asked.repeats or 1, "discarded": asked.discarded or 0}
    return {**study_table(captured(asked.words)), "metrics": _metrics(asked), **runs}


def _metrics(asked: TuneOptions) -> list[dict[str, Any]]:
    """How each is found: by the format where there is one, else by its name; `--metric` says otherwise."""
    if not asked.format:
        rules = rules_of(asked.metrics, asked.maximise, asked.minimise, asked.subject_to)
        return [_rule(rule) for rule in rules]
    format = find(asked.format)
    own = {CLOCK, *(rule.name for rule in rules_of(asked.metrics, (), (), ()))}
    mine = ([name for name in names if name in own] for names in (asked.maximise, asked.minimise))
    guards = [text for text in asked.subject_to if guard_of(text).metric in own]
    wanted = (asked.metrics, *mine, guards)
    if not (asked.maximise or asked.minimise):
        known = ", ".join(column.metric for column in format.columns)
        raise BadOption(
            option="--metrics", problem=f"which of them? --maximise or --minimise one of: {known}"
        )
    rules = rules_of(*wanted) if any(wanted) else ()
    return [{"format": format.name}, *map(_rule, rules)]


def _rule(rule: MetricRule) -> dict[str, Any]:
    fields = {"name": rule.name, "unit": rule.unit, "direction": rule.direction.value}
    return (
        fields
        | ({"regex": rule.regex} if rule.regex else {})
        | ({"json": rule.json_path} if rule.json_path else {})
    )


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
