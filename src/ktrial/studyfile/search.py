"""Checks what a study searches and for which objectives, and makes a Search of it.

Objectives are written as in `--maximise rps` and `--subject-to 'p99<=20ms'`.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import cast

from ktrial import program_outputs, workloads
from ktrial.knobs import catalogue
from ktrial.knobs.catalogue import reference
from ktrial.knobs.errors import UnknownKnob
from ktrial.model.knob import Knob
from ktrial.model.notation import nearest
from ktrial.model.references import ALL
from ktrial.model.study import EXACT_MACHINES, MachineSettings, Search
from ktrial.model.tuning import Budget, Goal, Guard, Objective, Relation
from ktrial.model.workload import Direction, Metric, MetricRule, WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes
from ktrial.studyfile.errors import BadGoal, BadKnobSpace, TuningError
from ktrial.studyfile.references import KernelReader
from ktrial.studyfile.tables import SearchTable, StudyTable
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import WorkloadError

DEFAULT_RUNS = 65


def search_of(
    tables: StudyTable,
    machine: MachineSettings,
    uses: Sequence[WorkloadUse],
    kernels: KernelReader,
    mistakes: Mistakes,
) -> Search | None:
    """The search; its space is made later, on the system. None where there is a mistake."""
    table = tables.search
    if table is None:
        return None
    if tables.timed:
        mistakes.add(("timed",), "a search has a budget of its own: [search] budget, time")
    if len(uses) != 1:
        mistakes.add(("workloads",), f"a search has one workload, and there are {len(uses)}")
        return None
    if not table.knobs:
        mistakes.add(("search", "knobs"), "there is no knob: name a subsystem, or knobs (ktrial knob list)")
    _check_kernels(table, kernels, mistakes)
    try:
        goal = goal_of(
            table.maximise,
            table.minimise,
            table.subject_to,
            _metrics(uses[0], machine),
            margin=tables.margin,
            workload=uses[0].label,
        )
    except TuningError as error:
        mistakes.add(("search",), f"{error.message} {error.advice}".strip())
        return None
    runs = table.budget or (None if table.time else DEFAULT_RUNS)
    return Search(
        knobs=tuple(table.knobs),
        goal=goal,
        budget=Budget(runs=runs, seconds=table.time),
        optimiser=table.optimiser,
        at_once=table.at_once or len(os.sched_getaffinity(0)) if machine.kind in EXACT_MACHINES else 1,
    )


def _metrics(use: WorkloadUse, machine: MachineSettings) -> tuple[Metric, ...]:
    """What the workload promises; none where it cannot say."""
    if use.command is None:
        try:
            return workloads.find(use).description.metrics
        except (WorkloadError, GuestProgramsMissing):
            return ()
    clock = "instructions" if machine.kind == "exact" else "ns"
    rules = use.command.metrics
    if not rules:
        return workloads.find(use).description.metrics
    return tuple(metric for rule in rules for metric in _of_rule(rule, clock))


def _of_rule(rule: MetricRule, clock: str) -> tuple[Metric, ...]:
    """A format's metrics as it promises them; an output may have more, or not all."""
    if rule.format:
        columns = program_outputs.find(rule.format).columns
        return tuple(
            Metric(name=rule.name or column.metric, unit=column.unit, direction=column.direction)
            for column in columns
            if rule.metric in ("", column.metric)
        )
    unit = rule.unit or ("" if rule.regex or rule.json_path else clock)
    return (Metric(name=rule.name, unit=unit, direction=rule.direction),)


def _check_kernels(table: SearchTable, kernels: KernelReader, mistakes: Mistakes) -> None:
    """Kernels that are searched have names that can be meant."""
    for place, text in enumerate(table.knobs):
        name, _, values = text.partition("=")
        if name.strip() != KERNEL:
            continue
        for value in values.split(","):
            if problem := kernels.problem(value.strip()):
                mistakes.add(("search", "knobs", place), problem)


CLOCK = "elapsed"
"""The metric of a command that nothing else is asked of: the time that it takes."""


_GUARD = re.compile(
    r"(?P<metric>[^\s<>=](?:[^<>=]*[^\s<>=])?)\s*(?P<relation><=|>=|==|<|>)\s*(?P<bound>[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)"
    r"\s*(?P<unit>[^\s0-9]\S*)?"
)


_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


_JSON = "json:"


_NUMBER = r"([-+]?(?:(?:[0-9]*\.)?[0-9]+(?:[eE][-+]?[0-9]+)?|(?i:nan|inf(?:inity)?)\b))"


def guard_of(text: str) -> Guard:
    """`p99<=20ms`, `errors==0`. Raises BadGoal."""
    match = _GUARD.fullmatch(text.strip())
    if match is None:
        problem = "write a metric, one of <= >= == < > and a number: 'p99<=20ms'"
        raise BadGoal("--subject-to", text, problem)
    return Guard(
        metric=match["metric"],
        relation=cast(Relation, match["relation"]),
        bound=float(match["bound"]),
        unit=match["unit"] or "",
    )


def goal_of(
    maximise: Sequence[str],
    minimise: Sequence[str],
    subject_to: Sequence[str],
    metrics: Sequence[Metric],
    *,
    margin: float,
    workload: str,
) -> Goal:
    """The goal. `metrics`: those that the workload promises; without an objective its first is one.

    Raises BadGoal, TuningError.
    """
    objectives_by_option = [(name, Direction.HIGHER, "--maximise") for name in maximise]
    objectives_by_option += [(name, Direction.LOWER, "--minimise") for name in minimise]
    metrics_by_name = {metric.name: metric for metric in metrics}
    if not objectives_by_option and metrics:
        objectives_by_option = [(metrics[0].name, metrics[0].direction, "")]
    _check(objectives_by_option)
    objectives = tuple(
        Objective(
            metric=name,
            direction=direction,
            unit=metrics_by_name[name].unit if name in metrics_by_name else "",
        )
        for name, direction, _ in objectives_by_option
    )
    guards = tuple(_in_unit(guard_of(text), metrics_by_name) for text in subject_to)
    _check_guards(guards)
    return Goal(objectives=objectives, guards=guards, margin=margin, workload=workload)


def _check(objectives: Sequence[tuple[str, Direction, str]]) -> None:
    for place, (name, _, option) in enumerate(objectives):
        if any(name == earlier for earlier, _, _ in objectives[:place]):
            raise BadGoal(option, name, "it is an objective already")
    if len(objectives) > 2:
        name, _, option = objectives[2]
        problem = "two objectives are weighed against each other at most; make the others guards"
        raise BadGoal(option, name, problem)


def _in_unit(guard: Guard, metrics: dict[str, Metric]) -> Guard:
    """The guard in the metric's own unit, where both are times."""
    unit = metrics[guard.metric].unit if guard.metric in metrics else ""
    if guard.unit == unit or not unit or not guard.unit:
        return guard.model_copy(update={"unit": guard.unit or unit})
    if guard.unit not in _TIMES or unit not in _TIMES:
        problem = f"the metric {guard.metric} is in {unit}"
        raise BadGoal("--subject-to", str(guard), problem)
    bound = guard.bound * _TIMES[guard.unit] / _TIMES[unit]
    return guard.model_copy(update={"bound": bound, "unit": unit})


def _check_guards(guards: Sequence[Guard]) -> None:
    """Whether one number can meet all guards of its metric: their bounds, and what lies around them, tell."""
    for metric in dict.fromkeys(guard.metric for guard in guards):
        same = [guard for guard in guards if guard.metric == metric]
        bounds = sorted({guard.bound for guard in same})
        between = [(lower + upper) / 2 for lower, upper in pairwise(bounds)]
        tried = (*bounds, *between, bounds[0] - 1, bounds[-1] + 1)
        if not any(all(guard.keeps(value) for guard in same) for value in tried):
            first, second = _contradicting(same, tried)
            raise TuningError(
                f"No value of {metric} meets both {first} and {second}.", hint="leave one of them out"
            )


def _contradicting(guards: Sequence[Guard], tried: Sequence[float]) -> tuple[Guard, Guard]:
    pairs = ((first, second) for place, first in enumerate(guards) for second in guards[place + 1 :])
    return next(
        pair for pair in pairs if not any(pair[0].keeps(value) and pair[1].keeps(value) for value in tried)
    )


def rules_of(
    texts: Iterable[str], maximise: Sequence[str], minimise: Sequence[str], subject_to: Sequence[str]
) -> tuple[MetricRule, ...]:
    """How each metric of a command is found: as was said, `rps=REGEX` or `rps=json:PATH`; else by its name.

    A metric `elapsed` that nobody says more about is the clock's. Raises BadGoal.
    """
    rules = {rule.name: rule for rule in map(_rule, texts)}
    guards = [guard_of(text) for text in subject_to]
    units = {guard.metric: guard.unit for guard in guards if guard.metric != CLOCK}
    names = (*maximise, *minimise, *(guard.metric for guard in guards))
    for name in dict.fromkeys(names or (CLOCK,)):
        if name not in rules:
            regex = "" if name == CLOCK else by_name(name)
            rules[name] = MetricRule(name=name, unit=units.get(name, ""), regex=regex)
    # A metric that must stay above something is better when it is higher.
    above = [guard.metric for guard in guards if guard.relation in {">", ">="}]
    ways = dict.fromkeys(above, Direction.HIGHER)
    ways |= dict.fromkeys(maximise, Direction.HIGHER) | dict.fromkeys(minimise, Direction.LOWER)
    return tuple(
        rule.model_copy(
            update={
                "direction": ways.get(name, rule.direction),
                "unit": rule.unit or units.get(name, ""),
            }
        )
        for name, rule in rules.items()
    )


def by_name(name: str) -> str:
    """Finds `rps: 1200`, `rps = 1200` and `"rps": 1200` in what a command prints; `rps: nan` as well, so that
    it is told."""
    return rf"(?<![\w.-]){re.escape(name)}[\"']?\s*[:=]?\s*{_NUMBER}"


def _rule(text: str) -> MetricRule:
    match = re.fullmatch(r"(?P<name>[^\s=\[\]]+)(?:\[(?P<unit>[^\]]*)\])?=(?P<how>.+)", text.strip())
    if match is None:
        problem = "write NAME=REGEX with one group around the number, or NAME=json:PATH"
        raise BadGoal("--metric", text, problem)
    name, unit, way = match["name"], match["unit"] or "", match["how"]
    if way.startswith(_JSON):
        return MetricRule(name=name, unit=unit, json_path=way.removeprefix(_JSON))
    try:
        groups = re.compile(way).groups
    except re.error as error:
        problem = f"it is not a regular expression: {error}"
        raise BadGoal("--metric", text, problem) from None
    if groups != 1:
        raise BadGoal("--metric", text, f"it has {groups} groups, and needs one")
    return MetricRule(name=name, unit=unit, regex=way)


# What `--knobs` and a study's `knobs` say: subsystems, patterns, names, ranges and lists of values.

BOOT, OPTION, KERNEL = "boot:", "kconfig:", "kernel"
"""How names of boot parameters and configuration options begin; the name of the kernel itself."""


_UNITS_OF_ONE = ("_ratio", "_kbytes", "_bytes")
"""Endings of knobs that say the same in two ways: writing one makes the kernel forget the other."""


_RANGE = re.compile(r"(?P<low>-?[0-9]+)\.\.(?P<high>-?[0-9]+)")


_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class SearchedKnob:
    """One thing to search."""

    name: str
    """`vm.swappiness`, `queue/nr_requests@vda`, a path, `boot:nohz`, `kconfig:HZ`, `kernel`."""
    knob: Knob | None = None
    """As the catalogue has it; None where it does not."""
    values: tuple[str, ...] = ()
    """The choices that were given."""
    low: int | None = None
    high: int | None = None
    """The range that was given."""
    by_itself: bool = True
    """It was named, not only its subsystem or a pattern."""


def searched_knobs(texts: Iterable[str]) -> tuple[SearchedKnob, ...]:
    """What the texts name, each thing once: what is named by itself goes before its subsystem.

    Commas separate names; after `NAME=` they separate values. Raises BadKnobSpace, UnknownKnob, BadKnobName.
    """
    named = [knob for text in texts for item in _items(text) for knob in _knobs_of(item)]
    single = {knob.name: knob for knob in named if knob.by_itself}
    if twice := next((knob for knob in named if knob.by_itself and single[knob.name] != knob), None):
        raise BadKnobSpace(twice.name, "it is here twice, with different values")
    return tuple({knob.name: single.get(knob.name, knob) for knob in named}.values())


def stem(name: str) -> str:
    """`vm.dirty` of `vm.dirty_ratio` and `vm.dirty_bytes`, which say the same; empty for others."""
    ending = next((unit for unit in _UNITS_OF_ONE if name.endswith(unit)), "")
    return name.removesuffix(ending) if ending else ""


def in_another_unit(knob: Knob | None) -> str:
    """The knob that says the same as this one, and is forgotten with it: `vm.dirty_ratio` of
    `vm.dirty_bytes`; empty where there is none.
    """
    names = knob.coupled if knob and stem(knob.name) else ()
    return next((name for name in names if knob and stem(name) == stem(knob.name)), "")


def _items(text: str) -> list[str]:
    """`vm,vm.swappiness=10,60` → `vm`, `vm.swappiness=10,60`."""
    items: list[str] = []
    for part in text.split(","):
        last = items[-1] if items else ""
        is_value = "=" not in part and "=" in last and not _RANGE.search(last)
        if is_value:
            items[-1] = f"{last},{part}"
        else:
            items.append(part.strip())
    return [item for item in items if item]


def _knobs_of(item: str) -> list[SearchedKnob]:
    name, equals, values = (part.strip() for part in item.partition("="))
    if equals and not values:
        raise BadKnobSpace(item, "there are no values behind the =")
    # Without values, `kernel` is the subsystem of that name.
    if (name == KERNEL and equals) or name.startswith((BOOT, OPTION)):
        return [_elsewhere(item, name, values)]
    if not equals and (group := _several(name)):
        return group
    if _PATTERN.search(name) and not name.endswith(f"@{ALL}"):
        raise BadKnobSpace(item, "ktrial knows no knob of that name")
    knob = _known(name)
    searched = SearchedKnob(knob.name + name[len(name.partition("@")[0]) :] if knob else name, knob)
    return [_with_values(item, searched, values) if values else searched]


def _several(name: str) -> list[SearchedKnob]:
    """All knobs of a subsystem, or all whose names match."""
    if name in catalogue.subsystems():
        knobs = [knob for knob in catalogue.all_knobs() if knob.subsystem == name]
    elif _PATTERN.search(name) and not name.endswith(f"@{ALL}"):
        knobs = [knob for knob in catalogue.all_knobs() if fnmatchcase(knob.name, name)]
    else:
        return []
    return [
        SearchedKnob(f"{BOOT}{knob.name}" if knob.needs_reboot else knob.name, knob, by_itself=False)
        for knob in knobs
    ]


def _known(name: str) -> Knob | None:
    """The catalogue's; None for a path or a sysctl that it does not have. Raises UnknownKnob, BadKnobName."""
    try:
        named = reference(name)
        return None if name.startswith("/") else named.knob
    except UnknownKnob:
        names = (*(knob.name for knob in catalogue.all_knobs()), *catalogue.subsystems())
        raise UnknownKnob(knob=name, similar=nearest(name, names)) from None


def _elsewhere(item: str, name: str, values: str) -> SearchedKnob:
    """A boot parameter, an option, the kernel: what is chosen before the kernel runs."""
    bare = name.removeprefix(BOOT).removeprefix(OPTION)
    if not bare:
        raise BadKnobSpace(item, "a name is missing behind the colon")
    knob = catalogue.get(bare) if name.startswith(BOOT) else None
    if name.startswith(OPTION):
        name = f"{OPTION}{bare.removeprefix('CONFIG_')}"
    searched = SearchedKnob(name, knob)
    if values:
        return _with_values(item, searched, values)
    if knob is None:
        raise BadKnobSpace(item, f"ktrial knows no values of it: write {name}=VALUE,VALUE")
    return searched


def _with_values(item: str, searched: SearchedKnob, values: str) -> SearchedKnob:
    if match := _RANGE.fullmatch(values):
        low, high = int(match["low"]), int(match["high"])
        if low >= high:
            raise BadKnobSpace(item, "a range runs from a lower to a higher number")
        return SearchedKnob(searched.name, searched.knob, low=low, high=high)
    if ".." in values:
        raise BadKnobSpace(item, "a range is two whole numbers with .. between them")
    chosen = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
    if not all(chosen) and not searched.name.startswith(BOOT):
        raise BadKnobSpace(item, "one of its values is empty")
    return SearchedKnob(searched.name, searched.knob, values=chosen)
