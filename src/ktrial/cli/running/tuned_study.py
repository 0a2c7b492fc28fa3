"""From the options of `ktrial tune` to a study with a search: the same as a study file makes."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.common import duration
from ktrial.cli.options.workloads import captured, memory_for, study_table
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import registry, study_of_options, without_none
from ktrial.model.study import REAL_MACHINES, Study
from ktrial.model.workload import MetricRule
from ktrial.program_outputs import find
from ktrial.studyfile import toml_files
from ktrial.studyfile.errors import TuningError
from ktrial.studyfile.reader import load
from ktrial.studyfile.search import CLOCK, guard_of, rules_of
from ktrial.workloads.capture import name_of

if TYPE_CHECKING:
    from ktrial.cli.commands.tune import TuneOptions

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
_FOR_A_COMMAND = "it goes with a command; a workload has its own metrics"


def study_of(options: "TuneOptions", jobs: int | None) -> Study:
    """The study. Raises BadOption, TuningError, StudyError."""
    if _names_a_study(options):
        return _of_file(options, jobs)
    words = tuple(options.command or ())
    if _machine_kind(options) not in REAL_MACHINES and not options.kernel:
        raise BadOption("--kernel", f"the machine {options.machine} boots a kernel: name one")
    if words and _is_traced(options):
        kernels = [options.kernel] if options.kernel else []
        check_first(kind=options.machine or "exact", kernels=kernels, words=words, jobs=jobs)
    data = {
        "workloads": [_workload(options, words)],
        "machine": {
            "kind": _machine_kind(options),
            "kernel": options.kernel,
            "memory": memory_for(words, options.memory) if _is_traced(options) else options.memory,
            "boot": options.boot,
            "limit_seconds": duration("--limit", options.limit) if options.limit else None,
        },
        "search": _search(options, jobs),
        "margin": options.margin,
        "seed": options.seed,
        "perturbations": options.perturbations,
    }
    study = study_of_options(data, "tune", _OPTIONS)
    (use,) = study.workloads
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", use.name).strip("-.")
    question = f"Which settings serve {use.label} best?"
    return study.model_copy(update={"name": f"tune-{name}", "question": question})


def _names_a_study(options: "TuneOptions") -> bool:
    """Whether a study is named, not a command: a program that can be run is a command."""
    words = options.command or []
    if len(words) != 1 or options.knobs or options.workload:
        return False
    return words[0].endswith(".toml") or shutil.which(words[0]) is None


def _of_file(options: "TuneOptions", jobs: int | None) -> Study:
    """A file's study; options may change its budget, machine and seed."""
    if options.metrics:
        raise BadOption("--metrics", 'the study file names the format: metrics = "…" of its workload')
    (word,) = options.command or [""]
    study = load(toml_files.file_of(Path(word)), registry())
    if study.search is None:
        raise TuningError(
            f"The study {study.name} is not a search: it compares the treatments that it names.",
            hint="ktrial run runs it; ktrial tune needs --knobs, or a section [search]",
        )
    budget = study.search.budget
    if options.budget or options.time:
        seconds = duration("--time", options.time) if options.time else None
        budget = budget.model_copy(update={"runs": options.budget, "seconds": seconds})
    of_search = {"optimiser": options.optimiser, "at_once": jobs}
    search = study.search.model_copy(update={"budget": budget, **without_none(of_search)})
    of_study = {"seed": options.seed, "perturbations": options.perturbations}
    return study.model_copy(update={"search": search, **without_none(of_study)})


def _machine_kind(options: "TuneOptions") -> str:
    return options.machine or ("exact" if options.kernel else "host")


def _is_traced(options: "TuneOptions") -> bool:
    """Whether the command has to be carried into a guest, and nobody said what it needs."""
    return _machine_kind(options) != "host" and not options.carry


def _search(options: "TuneOptions", jobs: int | None) -> dict[str, Any]:
    if not options.knobs:
        problem = "which knobs? --knobs vm,sched, or NAME=low..high (ktrial knob list)"
        raise BadOption("--knobs", problem)
    return {
        "knobs": options.knobs,
        "maximise": options.maximise or [],
        "minimise": options.minimise or [],
        "subject_to": options.subject_to or [],
        "budget": options.budget,
        "time": options.time,
        "optimiser": options.optimiser,
        "at_once": jobs,
    }


def _workload(options: "TuneOptions", words: tuple[str, ...]) -> Any:
    if options.workload and words:
        raise BadOption("--workload", "give a workload or a command, not both")
    if options.workload:
        if options.metric:
            raise BadOption("--metric", _FOR_A_COMMAND)
        if options.metrics:
            raise BadOption("--metrics", _FOR_A_COMMAND)
        return options.workload
    if not words:
        problem = "name what to measure: ktrial tune --knobs vm -- ./bench.sh, or --workload W"
        raise BadOption("COMMAND", problem)
    repeats = {"repeats": options.repeats or 1, "discarded": options.discard or 0}
    if _is_traced(options):
        # With what it needs, found by running it once here.
        return {**study_table(captured(words)), "metrics": _metrics(options), **repeats}
    program, *arguments = words
    # A command runs in /tmp: what is named from here is found from there.
    program = str(Path(program).absolute()) if "/" in program else program
    return {
        "name": name_of(program, frozenset(registry().workloads)),
        "command": [program, *arguments],
        "files": [str(Path(file).absolute()) for file in options.carry or ()],
        "metrics": _metrics(options),
        **repeats,
    }


def _metrics(options: "TuneOptions") -> list[dict[str, Any]]:
    """How each is found: by the format where there is one, else by its name; `--metric` says otherwise."""
    texts = tuple(options.metric or ())
    maximise, minimise = tuple(options.maximise or ()), tuple(options.minimise or ())
    subject_to = tuple(options.subject_to or ())
    if not options.metrics:
        return [_rule(rule) for rule in rules_of(texts, maximise, minimise, subject_to)]
    format = find(options.metrics)
    if not (maximise or minimise):
        names = ", ".join(column.metric for column in format.columns)
        raise BadOption("--metrics", f"choose a metric: --maximise or --minimise one of {names}")
    beside = {CLOCK, *(rule.name for rule in rules_of(texts, (), (), ()))}
    """Metrics that the format does not have."""
    rules_for = (
        texts,
        [name for name in maximise if name in beside],
        [name for name in minimise if name in beside],
        [text for text in subject_to if guard_of(text).metric in beside],
    )
    rules = rules_of(*rules_for) if any(rules_for) else ()
    return [{"format": format.name}, *map(_rule, rules)]


def _rule(rule: MetricRule) -> dict[str, Any]:
    fields = {"name": rule.name, "unit": rule.unit, "direction": rule.direction.value}
    return without_none(fields | {"regex": rule.regex or None, "json": rule.json_path or None})
