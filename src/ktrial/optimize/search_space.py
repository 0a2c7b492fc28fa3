"""From the knobs that were asked for to the space that is searched, and what is left out of it."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from ktrial.analysis.data_quality import lacking
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.knobs import catalogue
from ktrial.knobs.errors import KnobAbsent, KnobError, KnobNeedsInstance, UnknownKnob
from ktrial.knobs.lookup import KnobInstance, System, find
from ktrial.machines import Machine
from ktrial.model.knob import Knob, KnobKind, version_of
from ktrial.model.notation import nearest
from ktrial.model.study import LeftOut, Search, Study
from ktrial.model.tuning import Constraint, Cost, Dimension, OnlyOneOf, Order, Relation, Space
from ktrial.optimize.candidate_values import Options, dimension, why_unsafe
from ktrial.optimize.knob_discovery import SearchedSystem, read_knobs
from ktrial.studyfile.errors import KnobNotOnMachine, SpaceEmpty
from ktrial.studyfile.search import (
    BOOT,
    KERNEL,
    OPTION,
    SearchedKnob,
    in_another_unit,
    searched_knobs,
    stem,
)

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


def with_space(study: Study, machine: Machine, sources: Resources, observer: Observer) -> Study:
    """The study, its search with the space as the system is now.

    Raises SpaceEmpty, KnobError where a knob that was named by itself is not there, KnobNotOnMachine,
    BadKnobSpace, KernelError where an option does not take a value, and what reading a guest raises.
    """
    search = study.search
    if search is None:
        raise AssertionError("a study without a search has no space")
    wanted = searched_knobs(search.knobs)
    kernels = next((each.values for each in wanted if each.name == KERNEL), ())
    made = _SpaceBuilder(study, _options(study, sources, observer), kernels)
    at_run_time = tuple(each for each in wanted if made.at_run_time(each))
    in_force: dict[str, str] = {}
    if at_run_time:
        beside = searched_knobs(_partners(each.name for each in at_run_time))
        here = read_knobs(study, (*at_run_time, *beside), machine, sources, observer)
        made.read(at_run_time, here)
        in_force = _in_force(here.system, _partners(each.name for each in made.dimensions))
    names = [each.name for each in wanted]
    dimensions = tuple(sorted(made.dimensions, key=lambda one: (one.cost.rank, _place(one.name, names))))
    if not dimensions:
        reasons = _commonest(made.left_out)
        raise SpaceEmpty(**({"hint": reasons} if reasons else {}))
    space = Space(dimensions=dimensions, constraints=constraints_of(dimensions, in_force))
    update = {"space": space, "left_out": tuple(made.left_out)}
    return study.model_copy(update={"search": search.model_copy(update=update)})


def search_of(study: Study) -> tuple[Search, Space]:
    """The study's search, and its space, which has to be known."""
    if study.search is None or study.search.space is None:
        raise AssertionError("the space was not made yet")
    return study.search, study.search.space


def _options(study: Study, sources: Resources, observer: Observer) -> Options | None:
    name = study.machine.kernel

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    build = study.builds.get(name)
    return Options(build, sources.builder, progress) if build else None


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
        facts = {"machine": self.study.machine.kind, "problem": problem, "advice": advice}
        raise KnobNotOnMachine(knob=wanted.name, **facts)

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
    names = [each.name for each in dimensions]
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
