"""From what `ktrial tune` was given to a study with a search: the same as a study file makes."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrial.cli.command_line import BadOption
from ktrial.cli.installed import registry
from ktrial.cli.options.duration_size_share import duration
from ktrial.cli.options.own_command import captured, memory_for, study_table
from ktrial.cli.running.preflight import check_first
from ktrial.model.study import Study
from ktrial.model.workload import MetricRule
from ktrial.program_outputs import find
from ktrial.studyfile import StudySource, bundled_studies, load, study_from
from ktrial.studyfile.errors import NotATune
from ktrial.studyfile.search import CLOCK, guard_of, rules_of
from ktrial.workloads.capture.captured import name_of

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
    study = load(bundled_studies.file_of(Path(asked.words[0])), registry())
    if study.search is None:
        raise NotATune(study=study.name)
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
