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
    wanted = searched_knobs(search.knobs)
    kernels = next((each.values for each in wanted if each.name == KERNEL), ())
    made = _SpaceBuilder(study, _options(study, resources, observer), kernels)
    at_run_time = tuple(each for each in wanted if made.at_run_time(each))
    in_force: dict[str, str] = {}
    if at_run_time:
        beside = searched_knobs(_partners(each.name for each in at_run_time))
        here = read_knobs(study, (*at_run_time, *beside), machine, resources, observer)
        made.read(at_run_time, here)
        in_force = _in_force(here.system, _partners(dimension.name for dimension in made.dimensions))
    names = [each.name for each in wanted]
    dimensions = tuple(sorted(made.dimensions, key=lambda one: (one.cost.rank, _place(one.name, names))))
    if not dimensions:
        raise SpaceEmpty(hint=_commonest(made.left_out))
    space = Space(dimensions=dimensions, constraints=constraints_of(dimensions, in_force))
    update = {"space": space, "left_out": tuple(made.left_out)}
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

    def dimension(self, wanted: SearchedKnob) -> Dimension | str:
        """What is searched of the option, or why nothing is.

        Raises KernelError where the source does not take one of the values (OptionNotTaken).
        """
        name = f"CONFIG_{wanted.name.removeprefix(OPTION)}"
        now = self.builder.configured(self.build, self.progress).get(name, NOT_SET)
        edges = () if wanted.low is None else (str(wanted.low), str(wanted.high))
        for value in wanted.values or edges:
            if value != now:
                self._try(name, value)
        choices = tuple(dict.fromkeys((now, *wanted.values)))
        if wanted.values and choices == (now,):
            return f"it is {now} already, and no other value is given"
        return Dimension(
            name=wanted.name,
            cost=Cost.BUILD,
            range=range_of(wanted.low, wanted.high) if wanted.low is not None and wanted.high else None,
            choices=choices if wanted.values else (),
            default=now,
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
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.name)
    most = sorted(by_reason.items(), key=lambda one: -len(one[1]))[:2]
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

    def at_run_time(self, wanted: SearchedKnob) -> bool:
        """Whether the knob is to be looked for on a running system; others are dealt with here."""
        if not wanted.by_itself and (reason := why_unsafe(wanted.knob)):
            self._leave_out(wanted.name, reason)
            return False
        if not wanted.by_itself and (equipment := lacking(self.study.machine, wanted.knob)):
            self._leave_out(wanted.name, f"it cannot act: the guests have no {equipment}")
            return False
        if wanted.name.startswith(BOOT):
            self._parameter(wanted)
        elif wanted.name.startswith(OPTION):
            self._option(wanted)
        elif wanted.name == KERNEL:
            self._require_boot(wanted)
            default = self.study.machine.kernel
            self._add(wanted, Cost.KERNEL, default, tuple(dict.fromkeys((default, *wanted.values))))
        elif wanted.knob and wanted.knob.needs_reboot:
            example = f"write {BOOT}{wanted.name}"
            self._refuse(wanted, "it is a boot parameter", example)
        else:
            return True
        return False

    def read(self, wanted: Iterable[SearchedKnob], here: SearchedSystem) -> None:
        """Find the knobs on the system."""
        version = version_of(here.system.release)
        for each in wanted:
            try:
                readings = find(here.system, each.name)
            except KnobNeedsInstance as error:
                if each.by_itself:
                    raise
                self._leave_out(each.name, f"{_said(error)}: name one, {each.name}@NAME")
                continue
            except KnobError as error:
                if isinstance(error, KnobAbsent) and each.knob is None and not each.name.startswith("/"):
                    names = (knob.name for knob in catalogue.all_knobs())
                    raise UnknownKnob(knob=each.name, similar=nearest(each.name, names)) from None
                if each.by_itself:
                    raise
                self._leave_out(each.name, _said(error).removeprefix(f"knob {each.name} "))
                continue
            for one in readings:
                fixed = here.why_fixed(one.path)
                made = fixed or dimension(each, one, version)
                if isinstance(made, Dimension):
                    self.dimensions.append(made.model_copy(update={"back": _back(here.system, one)}))
                else:
                    self._leave_out(one.name, made)

    def _parameter(self, wanted: SearchedKnob) -> None:
        """A boot parameter; by default it is not given."""
        if not self._boots and not wanted.by_itself:
            self._leave_out(wanted.name, "it is chosen at boot, and the machine host does not boot")
            return
        self._require_boot(wanted)
        if wanted.low is not None and wanted.high is not None:
            problem = f"a boot parameter has values, not a range: {wanted.name}=a,b"
            self._refuse(wanted, problem, "it may also be left out: that is its default")
        choices = wanted.values or _parameter_values(wanted.knob)
        if not choices:
            self._leave_out(wanted.name, f"its values are texts: write {wanted.name}=a,b,c")
            return
        self._add(wanted, Cost.BOOT, "", ("", *choices))

    def _option(self, wanted: SearchedKnob) -> None:
        """A configuration option; by default it is as the configuration has it."""
        if others := [name for name in self.kernels if name not in self.study.builds]:
            problem = f"the kernel {others[0]} is searched too, which the study does not build"
            self._refuse(wanted, problem, "search kernels that the study builds, or options of one of them")
        if self.options is None:
            problem = "the kernel is not one that the study builds from source"
            advice = '[kernels.mine] in a study file describes one: [machine] kernel = "mine"'
            self._refuse(wanted, problem, advice)
        made = self.options.dimension(wanted)
        if isinstance(made, Dimension):
            self.dimensions.append(made)
        else:
            self._leave_out(wanted.name, made)

    def _require_boot(self, wanted: SearchedKnob) -> None:
        if not self._boots:
            problem = "it needs a boot, and this machine is this system, as it runs"
            self._refuse(wanted, problem, "take --machine exact or kvm, or a knob that is set at run time")

    def _refuse(self, wanted: SearchedKnob, problem: str, advice: str) -> NoReturn:
        raise TuningError(
            f"{wanted.name} cannot be searched on the machine {self.study.machine.kind}: {problem}.",
            hint=advice,
        )

    def _add(self, wanted: SearchedKnob, cost: Cost, default: str, choices: tuple[str, ...]) -> None:
        booted = "the kernel that is booted" if cost is Cost.KERNEL else ""
        summary = wanted.knob.summary if wanted.knob else booted
        self.dimensions.append(
            Dimension(name=wanted.name, cost=cost, choices=choices, default=default, summary=summary)
        )

    def _leave_out(self, name: str, reason: str) -> None:
        self.left_out.append(LeftOut(name=name, reason=reason))


def _back(system: System, reading: KnobInstance) -> tuple[str, str] | None:
    """Of a limit that is 0 since the same limit is set in another unit: that one, and its value."""
    other = in_another_unit(reading.knob) if reading.value == "0" else ""
    if not other:
        return None
    try:
        (partner,) = find(system, other)
    except KnobError:
        return None
    return None if partner.value == "0" else (other, partner.value)


def _parameter_values(knob: Knob | None) -> tuple[str, ...]:
    """What a boot parameter can be, beside what it is where it is not given."""
    if knob is None:
        return ()
    choices = next((one.choices for one in knob.allowed if one.choices), ())
    defaults = {one.value for one in knob.defaults if one.value}
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


def _said(error: KnobError) -> str:
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


def dimension(wanted: SearchedKnob, reading: KnobInstance, version: Version) -> Dimension | str:
    """What is searched of the knob that was found, or why nothing is.

    Raises BadKnob and BadKnobSpace, where values were given that it cannot have.
    """
    now = reading.value
    made = _given(wanted, reading, version) if _is_given(wanted) else _known(reading, version)
    if isinstance(made, str):
        return made
    if not isinstance(made, Range) and set(made) <= {now}:
        return f"it is {now} already, and no other value is known"
    knob = reading.knob
    return Dimension(
        name=reading.name,
        cost=Cost.RUN_TIME,
        range=made if isinstance(made, Range) else None,
        choices=() if isinstance(made, Range) else tuple(dict.fromkeys((now, *made))),
        default=now,
        unit=knob.unit if knob else "",
        summary=knob.summary if knob else "",
    )


def _is_given(wanted: SearchedKnob) -> bool:
    return bool(wanted.values) or wanted.low is not None


def _given(wanted: SearchedKnob, reading: KnobInstance, version: Version) -> Range | tuple[str, ...]:
    edges = (wanted.low, wanted.high)
    for value in wanted.values or (str(edge) for edge in edges):
        values.check(reading.name, reading.knob, value, version)
    if wanted.low is None or wanted.high is None:
        return wanted.values
    if _number(reading.value) is None:
        problem = f"it is {reading.value!r} now, which is no whole number: give values, NAME=a,b,c"
        raise BadKnobSpace(f"{wanted.name}={wanted.low}..{wanted.high}", problem)
    return range_of(wanted.low, wanted.high)


def range_of(low: int, high: int) -> Range:
    """Logarithmic where it is wide, and above zero."""
    return Range(low=low, high=high, log=low > 0 and high / low >= _WIDE)


def _known(reading: KnobInstance, version: Version) -> Range | tuple[str, ...] | str:
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


def _is_mode(now: str, knob: Knob, allowed: Allowed) -> bool:
    """Whether 1 stands for `on` or one of a few modes, as it does where it is no number of anything."""
    return now == "1" and allowed.maximum is None and not knob.unit


def _integers(now: str, minimum: int | None, maximum: int | None) -> Range | str:
    value = _number(now)
    if value is None or now.lower().startswith("0x"):
        return f"it is {now} now, which is no plain number: write NAME=a,b,c"
    if minimum is not None and maximum is not None:
        return range_of(minimum, maximum)
    if value <= 0:
        return f"no largest value is known, and it is {now} now: write NAME=low..high"
    low = max(1, minimum or 1, value // AROUND)
    high = value * AROUND if maximum is None else min(maximum, value * AROUND)
    # From a value above zero what matters is its factor, however near the limits are.
    return Range(low=low, high=high, log=True) if low < high else f"it can only be {now}"


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
        return tuple(self._one(number, step) for number, step in enumerate(steps))

    def _one(self, number: int, step: Step) -> StepResult:
        known = self.files.get(step.path) if isinstance(step, Read) else None
        known = known or StepResult(step=0, do=step.do, failure=_ABSENT)
        return known.model_copy(update={"step": number})


def read_knobs(
    study: Study, wanted: Sequence[SearchedKnob], machine: Machine, resources: Resources, observer: Observer
) -> SearchedSystem:
    """Read the knobs: on this system as it is, else in a guest that is booted as trials will be.

    Raises KernelError, MachineError, GuestError, WorkloadError.
    """
    if isinstance(machine, RunsAlready):
        return SearchedSystem(LocalTarget(), {})
    paths = tuple(dict.fromkeys((*_ALWAYS, *_paths(wanted))))
    return _in_a_guest(study, paths, machine, resources, observer)


def _paths(wanted: Iterable[SearchedKnob]) -> Iterable[str]:
    for each in wanted:
        _, _, instance = each.name.partition("@")
        if each.knob is None:
            yield lenient_reference(each.name).path_in()
        else:
            yield from (filled(place.path, instance) for place in each.knob.places if place.path)
            if other := in_another_unit(each.knob):
                yield lenient_reference(other).path_in()


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
        there = [path for path, result in read.items() if _is_tried(path, result)]
        writes = tuple(Write(path=path, value=_own(path, read[path])) for path in there)
        written = target.perform((*before, *writes))[len(before) :] if there else ()
    refusals = {
        path: f"the kernel does not take it: {result.failure.text}"
        for path, result in zip(there, written, strict=True)
        if result.failure
    }
    return SearchedSystem(RecordedFiles(read), refusals)


def _is_tried(path: str, result: StepResult) -> bool:
    """Whether writing back what was read tells something. Of a limit that is set in another unit it does not:
    it shows a 0, which the kernel refuses, or takes for the other's value too.
    """
    forgotten = result.content.strip() == "0" and in_another_unit(catalogue.knob_at(path))
    return not (result.failure or path in _ALWAYS or forgotten)


def _own(path: str, result: StepResult) -> str:
    return form_of(path).undoing(result.content.removesuffix("\n"), "")
