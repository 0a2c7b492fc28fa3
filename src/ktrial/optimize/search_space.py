"""From the knobs that were asked for to the space that is searched, and what is left out of it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from ktrial.analysis.reach import lacking
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder, Resources, RunsAlready
from ktrial.kernels import Progress
from ktrial.knobs import catalogue, values
from ktrial.knobs.catalogue import lenient_reference
from ktrial.knobs.errors import KnobAbsent, KnobError, KnobNeedsInstance, UnknownKnob
from ktrial.knobs.lookup import KnobInstance, System, find
from ktrial.knobs.values import form_of
from ktrial.machines import Machine
from ktrial.model.design import Treatment
from ktrial.model.kernel import Build, BuildChange
from ktrial.model.knob import Allowed, Knob, KnobKind, Safety, Version, version_of
from ktrial.model.notation import nearest
from ktrial.model.references import filled
from ktrial.model.study import LeftOut, Search, Study, kernel_of
from ktrial.model.tuning import Constraint, Cost, Dimension, OnlyOneOf, Order, Range, Relation, Space
from ktrial.studyfile.errors import BadKnobSpace, SpaceEmpty, TuningError
from ktrial.studyfile.references import resolved
from ktrial.studyfile.search import BOOT, KERNEL, OPTION, SearchedKnob, in_another_unit, searched_knobs, stem
from ktrial.target import Failure, Read, Step, StepResult, Target, Write
from ktrial.target.local import LocalTarget

_ORDERS: tuple[tuple[str, Relation, str], ...] = (
    ("vm.dirty_background_ratio", "<", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "<", "vm.dirty_bytes"),
    ("kernel.sched_rt_runtime_us", "<=", "kernel.sched_rt_period_us"),
    ("kernel.sched_util_clamp_min", "<=", "kernel.sched_util_clamp_max"),
    ("sched_min_granularity_ns", "<=", "sched_latency_ns"),
    ("numa_balancing_scan_period_min_ms", "<=", "numa_balancing_scan_period_max_ms"),
)
"""What kernels demand, or silently put right (mm/page-writeback.c halves a background limit that is not
below the other; kernel/sched/rt.c refuses)."""


def with_space(study: Study, machine: Machine, resources: Resources, observer: Observer) -> Study:
    """The study, its search with the space as the system is now.

    Raises SpaceEmpty, KnobError where a knob that was named by itself is not there, TuningError,
    BadKnobSpace, KernelError where an option does not take a value, and what reading a guest raises.
    """
    search = study.search
    if search is None:
        raise AssertionError("a study without a search has no space")
    searched = searched_knobs(search.knobs)
    kernels = next((knob.values for knob in searched if knob.name == KERNEL), ())
    builder = _SpaceBuilder(study, _options(study, resources, observer), kernels)
    at_run_time = tuple(knob for knob in searched if builder.at_run_time(knob))
    in_force: dict[str, str] = {}
    if at_run_time:
        beside = searched_knobs(_partners(knob.name for knob in at_run_time))
        running = read_knobs(study, (*at_run_time, *beside), machine, resources, observer)
        builder.read(at_run_time, running)
        in_force = _in_force(running.system, _partners(dimension.name for dimension in builder.dimensions))
    names = [knob.name for knob in searched]
    dimensions = tuple(
        sorted(builder.dimensions, key=lambda dimension: (dimension.cost.rank, _place(dimension.name, names)))
    )
    if not dimensions:
        raise SpaceEmpty(hint=_commonest(builder.left_out))
    space = Space(dimensions=dimensions, constraints=constraints_of(dimensions, in_force))
    update = {"space": space, "left_out": tuple(builder.left_out)}
    return study.model_copy(update={"search": search.model_copy(update=update)})


def search_of(study: Study) -> tuple[Search, Space]:
    """The study's search, and its space, which has to be known."""
    if study.search is None or study.search.space is None:
        raise AssertionError("the space was not made yet")
    return study.search, study.search.space


@dataclass(frozen=True)
class Options:
    """The options of the kernel that a study builds. Configuring takes seconds; nothing is compiled."""

    build: Build
    builder: Builder
    progress: Progress

    def dimension(self, searched: SearchedKnob) -> Dimension | str:
        """What is searched of the option, or why nothing is.

        Raises KernelError where the source does not take one of the values (OptionNotTaken).
        """
        name = f"CONFIG_{searched.name.removeprefix(OPTION)}"
        default = self.builder.configured(self.build, self.progress).get(name, NOT_SET)
        edges = () if searched.low is None else (str(searched.low), str(searched.high))
        for value in searched.values or edges:
            if value != default:
                self._try(name, value)
        choices = tuple(dict.fromkeys((default, *searched.values)))
        if searched.values and choices == (default,):
            return f"it is {default} already, and no other value is given"
        return Dimension(
            name=searched.name,
            cost=Cost.BUILD,
            range=range_of(searched.low, searched.high)
            if searched.low is not None and searched.high
            else None,
            choices=choices if searched.values else (),
            default=default,
            summary="an option of the kernel's build",
        )

    def _try(self, name: str, value: str) -> None:
        changed = self.build.changed(BuildChange(options={name: value}))
        if self.builder.cached(changed) is None:
            self.builder.configured(changed, self.progress)


def _options(study: Study, resources: Resources, observer: Observer) -> Options | None:
    name = study.machine.kernel

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    build = study.builds.get(name)
    return Options(build, resources.builder, progress) if build else None


def _commonest(left_out: Sequence[LeftOut]) -> str:
    """The reasons for which most was left out: `vm.swappiness and 22 more: only root may write its file`."""
    by_reason: dict[str, list[str]] = {}
    for omission in left_out:
        by_reason.setdefault(omission.reason, []).append(omission.name)
    most = sorted(by_reason.items(), key=lambda reason_and_names: -len(reason_and_names[1]))[:2]
    return "; ".join(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}"
        for reason, names in most
    )


def _place(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


@dataclass(frozen=True)
class SearchedSystem:
    """The system that is searched."""

    target: Target
    refusals: Mapping[str, str]
    """Path → why its own value cannot be written back there."""

    @property
    def system(self) -> System:
        """To find knobs on."""
        return System(self.target)

    def why_fixed(self, path: str) -> str:
        """Why the file cannot be changed; empty where it can."""
        if isinstance(self.target, LocalTarget):
            # Root may open what the kernel gives nobody the right to write, and is refused then.
            if not Path(path).stat().st_mode & _WRITABLE:
                return "nobody may write its file"
            return "" if os.access(path, os.W_OK) else "you may not write its file (sudo ktrial tune)"
        return self.refusals.get(path, "")


@dataclass
class _SpaceBuilder:
    """Dimensions and what is left out, as far as is known."""

    study: Study
    options: Options | None
    """Where the study builds its kernel."""
    kernels: tuple[str, ...] = ()
    """Those that are searched beside the study's own."""
    dimensions: list[Dimension] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def _boots(self) -> bool:
        return self.study.machine.kind != "host"

    def at_run_time(self, searched: SearchedKnob) -> bool:
        """Whether the knob is to be looked for on a running system; others are dealt with here."""
        if not searched.by_itself and (reason := why_unsafe(searched.knob)):
            self._leave_out(searched.name, reason)
            return False
        if not searched.by_itself and (equipment := lacking(self.study.machine, searched.knob)):
            self._leave_out(searched.name, f"it cannot act: the guests have no {equipment}")
            return False
        if searched.name.startswith(BOOT):
            self._parameter(searched)
        elif searched.name.startswith(OPTION):
            self._option(searched)
        elif searched.name == KERNEL:
            self._require_boot(searched)
            default = self.study.machine.kernel
            self._add(searched, Cost.KERNEL, default, tuple(dict.fromkeys((default, *searched.values))))
        elif searched.knob and searched.knob.needs_reboot:
            example = f"write {BOOT}{searched.name}"
            self._refuse(searched, "it is a boot parameter", example)
        else:
            return True
        return False

    def read(self, knobs: Iterable[SearchedKnob], running: SearchedSystem) -> None:
        """Find the knobs on the system."""
        version = version_of(running.system.release)
        for searched in knobs:
            try:
                readings = find(running.system, searched.name)
            except KnobNeedsInstance as error:
                if searched.by_itself:
                    raise
                self._leave_out(searched.name, f"{_message(error)}: name one, {searched.name}@NAME")
                continue
            except KnobError as error:
                if (
                    isinstance(error, KnobAbsent)
                    and searched.knob is None
                    and not searched.name.startswith("/")
                ):
                    names = (knob.name for knob in catalogue.all_knobs())
                    raise UnknownKnob(knob=searched.name, similar=nearest(searched.name, names)) from None
                if searched.by_itself:
                    raise
                self._leave_out(searched.name, _message(error).removeprefix(f"knob {searched.name} "))
                continue
            for reading in readings:
                fixed = running.why_fixed(reading.path)
                dimension_or_reason = fixed or dimension(searched, reading, version)
                if isinstance(dimension_or_reason, Dimension):
                    self.dimensions.append(
                        dimension_or_reason.model_copy(update={"back": _back(running.system, reading)})
                    )
                else:
                    self._leave_out(reading.name, dimension_or_reason)

    def _parameter(self, searched: SearchedKnob) -> None:
        """A boot parameter; by default it is not given."""
        if not self._boots and not searched.by_itself:
            self._leave_out(searched.name, "it is chosen at boot, and the machine host does not boot")
            return
        self._require_boot(searched)
        if searched.low is not None and searched.high is not None:
            problem = f"a boot parameter has values, not a range: {searched.name}=a,b"
            self._refuse(searched, problem, "it may also be left out: that is its default")
        choices = searched.values or _parameter_values(searched.knob)
        if not choices:
            self._leave_out(searched.name, f"its values are texts: write {searched.name}=a,b,c")
            return
        self._add(searched, Cost.BOOT, "", ("", *choices))

    def _option(self, searched: SearchedKnob) -> None:
        """A configuration option; by default it is as the configuration has it."""
        if not_built := [name for name in self.kernels if name not in self.study.builds]:
            problem = f"the kernel {not_built[0]} is searched too, which the study does not build"
            self._refuse(searched, problem, "search kernels that the study builds, or options of one of them")
        if self.options is None:
            problem = "the kernel is not one that the study builds from source"
            advice = '[kernels.mine] in a study file describes one: [machine] kernel = "mine"'
            self._refuse(searched, problem, advice)
        dimension_or_reason = self.options.dimension(searched)
        if isinstance(dimension_or_reason, Dimension):
            self.dimensions.append(dimension_or_reason)
        else:
            self._leave_out(searched.name, dimension_or_reason)

    def _require_boot(self, searched: SearchedKnob) -> None:
        if not self._boots:
            problem = "it needs a boot, and this machine is this system, as it runs"
            self._refuse(searched, problem, "take --machine exact or kvm, or a knob that is set at run time")

    def _refuse(self, searched: SearchedKnob, problem: str, advice: str) -> NoReturn:
        raise TuningError(
            f"{searched.name} cannot be searched on the machine {self.study.machine.kind}: {problem}.",
            hint=advice,
        )

    def _add(self, searched: SearchedKnob, cost: Cost, default: str, choices: tuple[str, ...]) -> None:
        booted = "the kernel that is booted" if cost is Cost.KERNEL else ""
        summary = searched.knob.summary if searched.knob else booted
        self.dimensions.append(
            Dimension(name=searched.name, cost=cost, choices=choices, default=default, summary=summary)
        )

    def _leave_out(self, name: str, reason: str) -> None:
        self.left_out.append(LeftOut(name=name, reason=reason))


def _back(system: System, reading: KnobInstance) -> tuple[str, str] | None:
    """Of a limit that is 0 since the same limit is set in another unit: that one, and its value."""
    same_limit = in_another_unit(reading.knob) if reading.value == "0" else ""
    if not same_limit:
        return None
    try:
        (partner,) = find(system, same_limit)
    except KnobError:
        return None
    return None if partner.value == "0" else (same_limit, partner.value)


def _parameter_values(knob: Knob | None) -> tuple[str, ...]:
    """What a boot parameter can be, beside what it is where it is not given."""
    if knob is None:
        return ()
    choices = next((allowed.choices for allowed in knob.allowed if allowed.choices), ())
    defaults = {default.value for default in knob.defaults if default.value}
    if choices:
        return tuple(choice for choice in choices if choice not in defaults)
    if knob.kind is not KnobKind.SWITCH:
        return ()
    return tuple(value for value in ("0", "1") if value not in defaults) if defaults else (knob.name,)


def _partners(names: Iterable[str]) -> tuple[str, ...]:
    """What the kernel compares these knobs with, as far as it is not among them."""
    there = frozenset(names)
    pairs = ((left, right) for left, _, right in _ORDERS if (left in there) is not (right in there))
    return tuple(dict.fromkeys(name for pair in pairs for name in pair if name not in there))


def _in_force(system: System, names: Iterable[str]) -> dict[str, str]:
    """Name → value of those that are there: what is not has no order."""
    values = {}
    for name in names:
        with suppress(KnobError):
            values[name] = find(system, name)[0].value
    return values


def constraints_of(
    dimensions: Iterable[Dimension], in_force: Mapping[str, str] | None = None
) -> tuple[Constraint, ...]:
    """What holds between the knobs: relations that the kernel demands, and two names of one thing.

    `in_force`: name → value of knobs that are not searched, and that searched ones are compared with.
    """
    names = [dimension.name for dimension in dimensions]
    fixed = {name: value for name, value in (in_force or {}).items() if name not in names}
    by_stem: dict[str, list[str]] = {}
    for name in names:
        if common := stem(name):
            by_stem.setdefault(common, []).append(name)
    coupled = [OnlyOneOf(names=tuple(same)) for same in by_stem.values() if len(same) > 1]
    orders = [
        Order(left=left, relation=relation, right=right, in_force=_of(fixed, left, right))
        for left, relation, right in _ORDERS
        if (left in names or right in names) and {left, right} <= {*names, *fixed}
    ]
    return (*coupled, *orders)


def _of(values: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: values[name] for name in names if name in values}


def _message(error: KnobError) -> str:
    text = error.message.rstrip(".")
    return text[:1].lower() + text[1:]


# Which values of a knob are searched: from the catalogue, from its file, and from the value in force.

AROUND = 16
"""Where no largest value is known: from a sixteenth of the value in force to sixteen times as much."""
_WIDE = 100
"""From here on the factor between two values matters, not their difference."""
_MODES = ("1", "0", "2")
"""Of a knob that is 1, whose largest value is not known: 0 is off."""
_SWITCHES = (("0", "1"), ("N", "Y"), ("n", "y"), ("false", "true"), ("off", "on"))
_WHY_UNSAFE = {
    Safety.SECURITY: "some of its values open the system to attacks",
    Safety.DURABILITY: "some of its values lose data or the system when power, memory or a task fails",
}


def why_unsafe(knob: Knob | None) -> str:
    """Why the knob is not searched unless it is named by itself; empty where it is safe."""
    reason = _WHY_UNSAFE.get(knob.safety, "") if knob else ""
    return f"{reason}: name it by itself to search it" if reason else ""


def dimension(searched: SearchedKnob, reading: KnobInstance, version: Version) -> Dimension | str:
    """What is searched of the knob that was found, or why nothing is.

    Raises BadKnob and BadKnobSpace, where values were given that it cannot have.
    """
    default = reading.value
    allowed = (
        _values_of_study(searched, reading, version)
        if _is_given(searched)
        else _values_of_kernel(reading, version)
    )
    if isinstance(allowed, str):
        return allowed
    if not isinstance(allowed, Range) and set(allowed) <= {default}:
        return f"it is {default} already, and no other value is known"
    knob = reading.knob
    return Dimension(
        name=reading.name,
        cost=Cost.RUN_TIME,
        range=allowed if isinstance(allowed, Range) else None,
        choices=() if isinstance(allowed, Range) else tuple(dict.fromkeys((default, *allowed))),
        default=default,
        unit=knob.unit if knob else "",
        summary=knob.summary if knob else "",
    )


def _is_given(searched: SearchedKnob) -> bool:
    return bool(searched.values) or searched.low is not None


def _values_of_study(
    searched: SearchedKnob, reading: KnobInstance, version: Version
) -> Range | tuple[str, ...]:
    edges = (searched.low, searched.high)
    for value in searched.values or (str(edge) for edge in edges):
        values.check(reading.name, reading.knob, value, version)
    if searched.low is None or searched.high is None:
        return searched.values
    if _number(reading.value) is None:
        problem = f"it is {reading.value!r} now, which is no whole number: give values, NAME=a,b,c"
        raise BadKnobSpace(f"{searched.name}={searched.low}..{searched.high}", problem)
    return range_of(searched.low, searched.high)


def range_of(low: int, high: int) -> Range:
    """Logarithmic where it is wide, and above zero."""
    return Range(low=low, high=high, log=low > 0 and high / low >= _WIDE)


def _values_of_kernel(reading: KnobInstance, version: Version) -> Range | tuple[str, ...] | str:
    """The values that are known without being told, or why there are none."""
    knob = reading.knob
    if knob is None:
        return "ktrial does not know its values: write NAME=low..high or NAME=a,b,c"
    allowed = knob.allowed_in(version)
    match knob.kind:
        case KnobKind.SWITCH:
            return next((pair for pair in _SWITCHES if reading.value in pair), ("0", "1"))
        case KnobKind.CHOICE:
            shown = tuple(word.strip("[]()") for word in reading.text.split())
            several = len(shown) > 1
            return allowed.choices or (shown if several else "its values are not known: write NAME=a,b,c")
        case KnobKind.INTEGER if allowed.choices:
            return allowed.choices
        case KnobKind.INTEGER:
            if _is_mode(reading.value, knob, allowed):
                return tuple(value for value in _MODES if int(value) >= (allowed.minimum or 0))
            return _integers(reading.value, allowed.minimum, allowed.maximum)
        case _:
            return f"its values are {_WORDS[knob.kind]}: write NAME=a,b,c"


_WORDS = {KnobKind.INTEGERS: "lists of numbers", KnobKind.MASK: "masks", KnobKind.TEXT: "texts"}


def _is_mode(value: str, knob: Knob, allowed: Allowed) -> bool:
    """Whether 1 stands for `on` or one of a few modes, as it does where it is no number of anything."""
    return value == "1" and allowed.maximum is None and not knob.unit


def _integers(text: str, minimum: int | None, maximum: int | None) -> Range | str:
    value = _number(text)
    if value is None or text.lower().startswith("0x"):
        return f"it is {text} now, which is no plain number: write NAME=a,b,c"
    if minimum is not None and maximum is not None:
        return range_of(minimum, maximum)
    if value <= 0:
        return f"no largest value is known, and it is {text} now: write NAME=low..high"
    low = max(1, minimum or 1, value // AROUND)
    high = value * AROUND if maximum is None else min(maximum, value * AROUND)
    # From a value above zero what matters is its factor, however near the limits are.
    return Range(low=low, high=high, log=True) if low < high else f"it can only be {text}"


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


NOT_SET = "n"
"""What `# CONFIG_X is not set` stands for."""


# What a search's knobs are on the system that it runs on: this one, or a guest of the study's.

_ALWAYS = ("/proc/sys/kernel/osrelease", "/proc/mounts")
"""What has to be known to say why something is not there."""
_ABSENT = Failure(errno=2, name="ENOENT", text="No such file or directory")
_WRITABLE = 0o222
AS_IT_IS = Treatment(levels={})
"""The treatment that changes nothing."""


@dataclass(frozen=True)
class RecordedFiles:
    """Answers from files that were read before."""

    files: Mapping[str, StepResult]

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Each file as it was read; one that was not is absent."""
        return tuple(self._result(number, step) for number, step in enumerate(steps))

    def _result(self, number: int, step: Step) -> StepResult:
        result = self.files.get(step.path) if isinstance(step, Read) else None
        result = result or StepResult(step=0, do=step.do, failure=_ABSENT)
        return result.model_copy(update={"step": number})


def read_knobs(
    study: Study, knobs: Sequence[SearchedKnob], machine: Machine, resources: Resources, observer: Observer
) -> SearchedSystem:
    """Read the knobs: on this system as it is, else in a guest that is booted as trials will be.

    Raises KernelError, MachineError, GuestError, WorkloadError.
    """
    if isinstance(machine, RunsAlready):
        return SearchedSystem(LocalTarget(), {})
    paths = tuple(dict.fromkeys((*_ALWAYS, *_paths(knobs))))
    return _in_a_guest(study, paths, machine, resources, observer)


def _paths(knobs: Iterable[SearchedKnob]) -> Iterable[str]:
    for searched in knobs:
        _, _, instance = searched.name.partition("@")
        if searched.knob is None:
            yield lenient_reference(searched.name).path_in()
        else:
            yield from (filled(place.path, instance) for place in searched.knob.places if place.path)
            if same_limit := in_another_unit(searched.knob):
                yield lenient_reference(same_limit).path_in()


def _in_a_guest(
    study: Study, paths: Sequence[str], machine: Machine, resources: Resources, observer: Observer
) -> SearchedSystem:
    """Read, and write back what was read: nobody minds in a guest, and a kernel says what it refuses."""
    study = resolved(study)
    name = kernel_of(study, AS_IT_IS).label

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    job, *_ = jobs_of(study, AS_IT_IS, obtained(study, AS_IT_IS, resources, progress), resources)
    before = (*job.before, *job.preparation)
    machine.prepare(job.boot, lambda what: observer.preparing(job.boot, what))
    observer.prepared(job.boot)
    with machine.start(job.boot) as target:
        results = target.perform((*before, *(Read(path=path) for path in paths)))
        read = dict(zip(paths, results[len(before) :], strict=True))
        readable = [path for path, result in read.items() if _is_tried(path, result)]
        writes = tuple(Write(path=path, value=_same_value(path, read[path])) for path in readable)
        written = target.perform((*before, *writes))[len(before) :] if readable else ()
    refusals = {
        path: f"the kernel does not take it: {result.failure.text}"
        for path, result in zip(readable, written, strict=True)
        if result.failure
    }
    return SearchedSystem(RecordedFiles(read), refusals)


def _is_tried(path: str, result: StepResult) -> bool:
    """Whether writing back what was read tells something. Of a limit that is set in another unit it does not:
    it shows a 0, which the kernel refuses, or takes for the other's value too.
    """
    forgotten = result.content.strip() == "0" and in_another_unit(catalogue.knob_at(path))
    return not (result.failure or path in _ALWAYS or forgotten)


def _same_value(path: str, result: StepResult) -> str:
    return form_of(path).undoing(result.content.removesuffix("\n"), "")
