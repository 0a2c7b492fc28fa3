"""Which of what differs between two treatments is the cause: what can be taken back alone, the likeliest
first, and what trials with one thing taken back say.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ktrial.analysis.attribution.conditions_diff import ALL_CODE, heavy_subsystems, setting_owner
from ktrial.analysis.errors import NotCounted
from ktrial.knobs.values import chosen
from ktrial.model.attribution import (
    Attribution,
    Candidate,
    CauseKind,
    Differences,
    OptionDifference,
    ProofSide,
    Status,
    Tried,
    Untried,
    ValueDifference,
)
from ktrial.model.design import BUILD_KINDS, FactorKind, Treatment
from ktrial.model.study import Study, StudyRecord, build_of
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import STRING_BYTES, Mode, Sample


class Counts:
    """A study's trials of one workload, as numbers by treatment and perturbation."""

    def __init__(self, record: StudyRecord, workload: str) -> None:
        self._study, self._workload = record.study.name, workload
        self._trials: dict[str, dict[int, Trial]] = {}
        for trial in record.trials:
            mine = self._trials.setdefault(trial.planned.treatment.key, {})
            mine[trial.planned.perturbation.number] = trial

    def trials(self, treatment: Treatment) -> list[Trial]:
        """Those of the treatment, in the order of perturbations."""
        return [trial for _, trial in sorted(self._trials.get(treatment.key, {}).items())]

    def problem(self, treatment: Treatment) -> Trial | None:
        """The first trial that did not complete."""
        trials = self.trials(treatment)
        lost = (trial for trial in trials if trial.outcome_of(self._workload) is not Outcome.COMPLETED)
        return next(lost, None)

    def values(self, treatment: Treatment) -> tuple[float, ...]:
        """Instructions per operation under each perturbation. Raises NotCounted."""
        trials = self.trials(treatment)
        if lost := self.problem(treatment):
            problem = f": a trial of it ended as {lost.outcome.value}: {lost.reason}"
            raise self._not_counted(treatment, problem)
        if not trials:
            raise self._not_counted(treatment, "")
        samples = [self.sample(trial) for trial in trials]
        # Means, as only they add up.
        return tuple(sample.value if sample.mean is None else sample.mean for sample in samples)

    def sample(self, trial: Trial) -> Sample:
        """The workload's count of instructions. Raises NotCounted."""
        for sample in trial.samples:
            is_count = sample.mode is Mode.EXACT_PLUGIN and sample.unit.startswith("instructions")
            if sample.workload == self._workload and is_count and sample.metric != STRING_BYTES.name:
                return sample
        problem = ": it has no metric that is a count of instructions"
        raise self._not_counted(trial.planned.treatment, problem)

    def _not_counted(self, treatment: Treatment, problem: str) -> NotCounted:
        return NotCounted(
            study=self._study, treatment=treatment.label, workload=self._workload, problem=problem
        )


def tested(
    candidate: Candidate,
    side: ProofSide,
    counts: Counts,
    treatment: Treatment,
    ends: Mapping[ProofSide, Sequence[float]],
    control: Sequence[float],
) -> Tried:
    """What came of one candidate on one side.

    `ends`: what the two treatments have as they are, under each perturbation. `control`: the effect of a
    write, or of a boot parameter, that changes nothing.
    """
    if lost := counts.problem(treatment):
        refused = lost.outcome is Outcome.REFUSED
        reason = lost.reason if refused else f"{lost.outcome.value}: {lost.reason}"
        status = Status.REFUSED if refused else Status.FAILED
        return Tried(candidate=candidate, side=side, status=status, reason=reason)
    effects = effect_of(side, counts.values(treatment), ends)
    status, reason = _judged(effects, control, candidate)
    return Tried(candidate=candidate, side=side, status=status, effects=effects, reason=reason)


def effect_of(
    side: ProofSide, values: Sequence[float], ends: Mapping[ProofSide, Sequence[float]]
) -> tuple[float, ...]:
    """The part of the difference that is gone: in the second when taken back there, in the first likewise."""
    sign = 1 if side is ProofSide.TO else -1
    return tuple(sign * (end - value) for end, value in zip(ends[side], values, strict=True))


def _judged(effects: Sequence[float], control: Sequence[float], candidate: Candidate) -> tuple[Status, str]:
    if not any(effects) or tuple(effects) == tuple(control):
        return (
            Status.NOTHING,
            "not one instruction more or less: nothing that the workload uses depends on it",
        )
    if not (all(effect > 0 for effect in effects) or all(effect < 0 for effect in effects)):
        return Status.UNCERTAIN, "it does not go in one direction under all perturbations"
    if min(map(abs, effects)) <= max(map(abs, control), default=0.0):
        return Status.UNCERTAIN, f"a {candidate.kind.value} that changes nothing moves the count as far"
    return Status.MEASURED, ""


def helpful(results: Iterable[Tried], difference: float) -> tuple[Tried, ...]:
    """Those that have a part of the difference, not of its opposite."""
    return tuple(
        result for result in results if result.status is Status.MEASURED and result.effect * difference > 0
    )


# What differs between two treatments and can be taken back alone: the candidates, the likeliest first.

FEATURES = ("/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features")
"""Where kernels have the scheduler's features: the second before Linux 5.13."""
_PREEMPTION = "/sys/kernel/debug/sched/preempt"
_SCHEDULER = "scheduler"
_DISKS = "/sys/block/"
_SYSCTL = "/proc/sys/"
_OFF = "NO_"
_PARAMETER = re.compile(r"/sys/module/(\w+)/parameters/(\w+)")


@dataclass(frozen=True)
class Candidates:
    """What can be tried, and what differs and cannot."""

    ranked: tuple[Candidate, ...]
    left_out: tuple[Untried, ...]


def candidates(
    study: Study,
    before: Treatment,
    after: Treatment,
    why: Attribution,
    modules: Sequence[Collection[str]] = ((), ()),
) -> Candidates:
    """Everything that differs, may matter to the functions at hand, and has a value to be taken back to.

    A setting may matter where its subsystem makes 1 % of the differences or more, or where it is not known;
    so may an option. `modules`: names of the modules of the two kernels that are not loaded.
    """
    heavy = heavy_subsystems(why.explanation)
    search = _Search(study, before, after, why.differences, heavy, modules)
    # Of candidates that are found in several ways the first counts.
    by_target: dict[tuple[CauseKind, str, str], Candidate] = {}
    for candidate in search.all():
        by_target.setdefault((candidate.kind, candidate.target, candidate.name), candidate)

    def rank(candidate: Candidate) -> tuple[bool, int, int, str]:
        # What is cheap first; then what belongs to heavy subsystems.
        dear = candidate.kind not in {CauseKind.LEVEL, CauseKind.FEATURE, CauseKind.SETTING}
        place = heavy.index(candidate.subsystem) if candidate.subsystem in heavy else len(heavy)
        return (dear, place, _KINDS.index(candidate.kind), candidate.name)

    return Candidates(tuple(sorted(by_target.values(), key=rank)), tuple(search.left_out))


def picked(
    offered: Sequence[Candidate], names: Sequence[str]
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Those that the user names (`HRTICK`, `vm.*`), and the names that none has."""
    patterns = [name.casefold() for name in names]

    def fits(candidate: Candidate, pattern: str) -> bool:
        return any(fnmatchcase(text.casefold(), pattern) for text in (candidate.name, candidate.target))

    named = [candidate for candidate in offered if any(fits(candidate, pattern) for pattern in patterns)]
    unknown = [
        name
        for name, pattern in zip(names, patterns, strict=True)
        if not any(fits(candidate, pattern) for candidate in offered)
    ]
    return tuple(named), tuple(unknown)


_KINDS = (
    CauseKind.LEVEL,
    CauseKind.FEATURE,
    CauseKind.SETTING,
    CauseKind.BOOT,
    CauseKind.MODULE,
    CauseKind.OPTION,
)
"""By what they cost: a setting is written into a system that is booted already, an option is a build."""


class _Search:
    def __init__(
        self,
        study: Study,
        before: Treatment,
        after: Treatment,
        differences: Differences,
        heavy: Sequence[str],
        modules: Sequence[Collection[str]],
    ) -> None:
        self._study, self._before, self._after = study, before, after
        self._differences, self._heavy, self._modules = differences, heavy, modules
        self.left_out: list[Untried] = []

    def all(self) -> Iterator[Candidate]:
        """Every kind's candidates."""
        yield from self._levels()
        yield from self._features()
        yield from self._settings()
        yield from self._mitigations()
        yield from self._options_at_boot()
        yield from self._options_as_modules()
        yield from self._options_to_build()

    def _levels(self) -> Iterator[Candidate]:
        """Only where several differ: one alone is the whole difference."""
        differing = [
            factor
            for factor in self._study.factors
            if self._before.levels[factor.name] != self._after.levels[factor.name]
        ]
        for factor in differing if len(differing) > 1 else ():
            old, new = (str(treatment.levels[factor.name]) for treatment in (self._before, self._after))
            yield Candidate(
                name=factor.name,
                kind=CauseKind.LEVEL,
                target=factor.name,
                before=old or "(not given)",
                after=new or "(not given)",
                on_to=old,
                on_from=new,
            )

    def _features(self) -> Iterator[Candidate]:
        values = {
            difference.path: difference
            for difference in self._differences.values
            if difference.path in FEATURES
        }
        if not values or _SCHEDULER not in self._heavy:
            return
        old, new = (
            _features(
                next((text for difference in values.values() if (text := getattr(difference, side))), "")
            )
            for side in ("before", "after")
        )
        if not old or not new:
            self.left_out.append(Untried(name="scheduler features", reason="one of the kernels shows none"))
            return
        path = FEATURES[0] if FEATURES[0] in values else FEATURES[1]
        for name in sorted(old.keys() | new.keys()):
            yield from _feature(name, path, old.get(name), new.get(name))

    def _settings(self) -> Iterator[Candidate]:
        for difference in self._differences.values:
            if difference.path in FEATURES or difference.path.startswith(VULNERABILITIES):
                continue
            if not self._may_matter(difference):
                continue
            candidate = (
                _two_sided(difference)
                if None not in (difference.before, difference.after)
                else _one_sided(difference)
            )
            if candidate:
                yield candidate

    def _may_matter(self, difference: ValueDifference) -> bool:
        if difference.path.startswith(_DISKS) and not self._study.machine.disk:
            return False  # the guests have no disk; that of the settings is made for reading them
        owner = difference.subsystem or setting_owner(difference.path)
        return bool(difference.governs) or not owner or owner in self._heavy

    def _mitigations(self) -> Iterator[Candidate]:
        for difference in self._differences.values:
            if not difference.path.startswith(VULNERABILITIES):
                continue
            if switch := mitigation_off(difference.path, difference.before, difference.after):
                parameter, on_to, on_from = switch
                yield _boot(
                    parameter,
                    difference.before or "(none)",
                    difference.after or "(none)",
                    "entry and exit",
                    on_to,
                    on_from,
                )

    def _options_at_boot(self) -> Iterator[Candidate]:
        for option in self._owned():
            name = option.option.removeprefix("CONFIG_")
            if parameter := LISTS_OF_OPTIONS.get(name):
                yield _given_at_boot(parameter, option.before or "", option.after or "", option.owners[0])
            elif (switch := OF_OPTIONS.get(name)) and {option.before, option.after} == {"y", None}:
                # An option that one kernel has: there it is switched off.
                before, after = option.before or "not set", option.after or "not set"
                yield _boot(switch, before, after, option.owners[0], after == "y", before == "y")

    def _options_as_modules(self) -> Iterator[Candidate]:
        """What one kernel has as a module that nobody loads: loaded, it may do what is built in elsewhere."""
        for option in self._owned():
            if ALL_CODE in option.owners or "m" not in (option.before, option.after):
                continue
            names = [_module_of(option.option, modules) for modules in self._modules]
            old = names[0] if option.before == "m" else ""
            new = names[1] if option.after == "m" else ""
            if old or new:
                yield Candidate(
                    name=old or new,
                    kind=CauseKind.MODULE,
                    target=old or new,
                    before=option.before or "not set",
                    after=option.after or "not set",
                    on_to=new or None,
                    on_from=old or None,
                    subsystem=option.owners[0],
                )

    def _options_to_build(self) -> Iterator[Candidate]:
        builds = [build_of(self._study, treatment) for treatment in (self._before, self._after)]
        if None in builds or any(self._differs(kind) for kind in BUILD_KINDS - {FactorKind.KCONFIG}):
            return
        for option in self._owned():
            yield Candidate(
                name=option.option.removeprefix("CONFIG_"),
                kind=CauseKind.OPTION,
                target=option.option,
                before=option.before or "n",
                after=option.after or "n",
                on_to=option.before or "n",
                on_from=option.after or "n",
                subsystem=option.owners[0],
            )

    def _differs(self, kind: FactorKind) -> bool:
        return any(
            factor.kind is kind and self._before.levels[factor.name] != self._after.levels[factor.name]
            for factor in self._study.factors
        )

    def _owned(self) -> Iterator[OptionDifference]:
        return (option for option in self._differences.options if option.owners)


def _features(text: str) -> dict[str, bool]:
    """Feature → whether it is on."""
    return {word.removeprefix(_OFF): not word.startswith(_OFF) for word in text.split()}


def _feature(name: str, path: str, old: bool | None, new: bool | None) -> Iterator[Candidate]:
    """One that is on in one of the two only. A feature that only one kernel has can be switched off there."""
    if bool(old) == bool(new):
        return
    word = {True: name, False: f"{_OFF}{name}"}
    yield Candidate(
        name=name,
        kind=CauseKind.FEATURE,
        target=path,
        before="not there" if old is None else word[old],
        after="not there" if new is None else word[new],
        on_to=None if new is None else word[bool(old)],
        on_from=None if old is None else word[bool(new)],
        subsystem=_SCHEDULER,
    )


def _two_sided(difference: ValueDifference) -> Candidate | None:
    """A file that both have. A module's parameter is given at boot: most are read-only afterwards."""
    old, new = difference.before or "", difference.after or ""
    if match := _PARAMETER.fullmatch(difference.path):
        name = f"{match[1]}.{match[2]}"
        return _given_at_boot(name, old, new, difference.subsystem)
    if difference.path == _PREEMPTION:
        old, new = (re.sub(r"\((\w+)\)", r"[\1]", text) for text in (old, new))
    return Candidate(
        name=_name(difference.path),
        kind=CauseKind.SETTING,
        target=difference.path,
        before=chosen(old),
        after=chosen(new),
        on_to=chosen(old) or None,
        on_from=chosen(new) or None,
        subsystem=difference.subsystem,
    )


def _one_sided(difference: ValueDifference) -> Candidate | None:
    """A switch that only one kernel has, and that is on: off is as the other kernel is."""
    old, new = (
        off(difference.path, text) if text is not None else None
        for text in (difference.before, difference.after)
    )
    if old is None and new is None:
        return None
    return Candidate(
        name=_name(difference.path),
        kind=CauseKind.SETTING,
        target=difference.path,
        before="not there" if difference.before is None else chosen(difference.before),
        after="not there" if difference.after is None else chosen(difference.after),
        on_to=new,
        on_from=old,
        subsystem=difference.subsystem,
    )


def _name(path: str) -> str:
    """A sysctl by its name, as sysctl(8) has it; anything else by its path."""
    if not path.startswith(_SYSCTL):
        return path
    return path.removeprefix(_SYSCTL).translate(str.maketrans("./", "/."))


# What can be switched in a kernel that is built already: the boot parameters of options and of files.
#
# Names and defaults are those of Documentation/admin-guide/kernel-parameters.txt and of the options' help.


def _boot(text: str, before: str, after: str, subsystem: str, on_to: bool, on_from: bool) -> Candidate:
    parameter, _, value = text.partition("=")
    level = value or parameter
    return Candidate(
        name=text,
        kind=CauseKind.BOOT,
        target=parameter,
        before=before,
        after=after,
        on_to=level if on_to else None,
        on_from=level if on_from else None,
        subsystem=subsystem,
    )


def _given_at_boot(parameter: str, old: str, new: str, subsystem: str) -> Candidate:
    """A parameter that takes the text which the other kernel has."""
    return Candidate(
        name=parameter,
        kind=CauseKind.BOOT,
        target=parameter,
        before=old or "not set",
        after=new or "not set",
        on_to=old or None,
        on_from=new or None,
        subsystem=subsystem,
    )


def _module_of(option: str, modules: Collection[str]) -> str:
    """`CONFIG_CRYPTO_CRC32C_INTEL` → `crc32c_intel`: the module that the option's name ends with, if any."""
    words = option.removeprefix("CONFIG_").lower().split("_")
    names = {name.replace("-", "_") for name in modules}
    ends = ("_".join(words[place:]) for place in range(len(words)))
    return next((name for name in ends if name in names and len(name) > 2), "")


OF_OPTIONS = {
    "INIT_ON_ALLOC_DEFAULT_ON": "init_on_alloc=0",
    "INIT_ON_FREE_DEFAULT_ON": "init_on_free=0",
    "RANDOMIZE_KSTACK_OFFSET_DEFAULT": "randomize_kstack_offset=off",
    "HARDENED_USERCOPY_DEFAULT_ON": "hardened_usercopy=off",
    "HARDENED_USERCOPY": "hardened_usercopy=off",
    "PAGE_TABLE_ISOLATION": "pti=off",
    "MITIGATION_PAGE_TABLE_ISOLATION": "pti=off",
    "CPU_MITIGATIONS": "mitigations=off",
    "SPECULATION_MITIGATIONS": "mitigations=off",
    "X86_KERNEL_IBT": "ibt=off",
    "X86_FRED": "fred=off",
    "AUDIT": "audit=0",
    "SECURITY_APPARMOR": "apparmor=0",
    "SECURITY_SELINUX": "selinux=0",
    "PSI": "psi=0",
    "MEMCG": "cgroup_disable=memory",
    "CGROUP_FAVOR_DYNMODS": "cgroup_favordynmods=0",
    "NUMA_BALANCING_DEFAULT_ENABLED": "numa_balancing=disable",
    "SHUFFLE_PAGE_ALLOCATOR": "page_alloc.shuffle=0",
    "WQ_POWER_EFFICIENT_DEFAULT": "workqueue.power_efficient=0",
    "X86_USER_SHADOW_STACK": "nousershstk",
    "X86_5LEVEL": "no5lvl",
}
"""Option, without CONFIG_ → the boot parameter that stands for an option that is not set."""
LISTS_OF_OPTIONS = {"LSM": "lsm"}
"""Option that is a text → the boot parameter that takes the same text."""
_MITIGATIONS = {
    "gather_data_sampling": "gather_data_sampling=off",
    "indirect_target_selection": "indirect_target_selection=off",
    "l1tf": "l1tf=off",
    "mds": "mds=off",
    "meltdown": "pti=off",
    "mmio_stale_data": "mmio_stale_data=off",
    "reg_file_data_sampling": "reg_file_data_sampling=off",
    "retbleed": "retbleed=off",
    "spec_rstack_overflow": "spec_rstack_overflow=off",
    "spec_store_bypass": "spec_store_bypass_disable=off",
    "spectre_v1": "nospectre_v1",
    "spectre_v2": "spectre_v2=off",
    "srbds": "srbds=off",
    "tsa": "tsa=off",
    "tsx_async_abort": "tsx_async_abort=off",
    "vmscape": "vmscape=off",
}
"""File below /sys/devices/system/cpu/vulnerabilities → what switches its mitigation off at boot."""
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities/"
_SWITCH = re.compile(r"(?:.*_)?enabled?")
_ON = re.compile(r"1|[yY]|on|true|0x0*[1-9a-fA-F][0-9a-fA-F]*")
_CHOICES = re.compile(r".*\[(\w+)\].*")
_NEVER = "never"


def mitigation_off(path: str, before: str | None, after: str | None) -> tuple[str, bool, bool] | None:
    """Parameter, and whether it makes the second (the first) as the other is; None where none does.

    A mitigation can only be switched off: that is as the other kernel is where that one has none.
    """
    parameter = _MITIGATIONS.get(path.removeprefix(VULNERABILITIES))
    old, new = _mitigated(before), _mitigated(after)
    return (parameter, new and not old, old and not new) if parameter and old != new else None


def _mitigated(text: str | None) -> bool:
    return bool(text and text.startswith("Mitigation"))


def off(path: str, value: str) -> str | None:
    """What switches off a file that only one kernel has; None where it is no switch, or off already."""
    if not _SWITCH.fullmatch(path.rpartition("/")[2]):
        return None
    if choice := _CHOICES.fullmatch(value):
        return _NEVER if _NEVER in value and choice[1] != _NEVER else None
    if not _ON.fullmatch(value):
        return None
    return "N" if value in {"Y", "y"} else "0"
