"""From the options of `ktrial explain` to an explanation: of a stored result, of a study file, of kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ktrial.analysis.attribution.question import AttributionQuestion, check_differ, question
from ktrial.analysis.fidelity_citation import known
from ktrial.analysis.result import record
from ktrial.cli import studies
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import messages, say
from ktrial.cli.options.common import duration, memory_of
from ktrial.cli.options.counting import on_machine, on_model
from ktrial.cli.options.own_command import memory_for, one_use
from ktrial.cli.progress import progress
from ktrial.cli.render.explanation import estimate, print_known_so_far
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import NothingStored, find, open_existing
from ktrial.experiment.explain import Guests, explain_question, explain_record
from ktrial.experiment.proof import Proven, Proving, is_of_proof, prove
from ktrial.model.attribution import Attribution, Candidate, Cost
from ktrial.model.design import Factor, FactorKind, LevelValue, Treatment
from ktrial.model.fidelity import FidelityTable
from ktrial.model.study import MachineSettings, Study
from ktrial.store.errors import StoreError, StudyNotStored
from ktrial.store.location import default_location
from ktrial.store.store import Store, open_store
from ktrial.studyfile.reader import load

_KERNEL = "kernel"


@dataclass(frozen=True)
class ExplainOptions:
    """The options, as they were given."""

    study: str | None = None
    words: tuple[str, ...] = ()
    """A command of one's own, behind `--`."""
    workload: str | None = None
    before: str | None = None
    after: str | None = None
    kernels: tuple[str, ...] = ()
    boot_before: tuple[str, ...] = ()
    boot_after: tuple[str, ...] = ()
    boot: tuple[str, ...] = ()
    memory: str | None = None
    store: str | None = None
    values: bool = True
    machine: str | None = None
    cpus: int | None = None
    model: str | None = None


@dataclass(frozen=True)
class ProveOptions:
    """The options of --prove, as they were given."""

    perturbations: int = 3
    budget: str | None = None
    candidates: tuple[str, ...] = ()
    each: bool = False
    jobs: int | None = None


def why(given: ExplainOptions) -> Attribution:
    """The explanation that was asked for. Raises BadOption, and what `explain_record` raises."""
    if given.kernels:
        asked = _of_kernels(given)
        with progress() as observer:
            return explain_question(asked, Guests(observer=observer, values=given.values))
    _refuse_of_study(given)
    return _of_study(given)


def proven(given: ExplainOptions, how: ProveOptions) -> Proven:
    """The explanation, with measured shares of what differs. Raises BadOption, and what `prove` raises."""
    if not given.values:
        raise BadOption(option="--no-values", problem="--prove takes settings back: it has to know them")
    if given.machine == "exact-parallel" or given.cpus:
        raise BadOption(option="--prove", problem="shares are proven on the machine exact")
    budget = duration("--budget", how.budget) if how.budget else None
    with open_store(given.store or default_location()) as store:
        asked = _asked(given, store)
        with progress() as observer:
            return prove(
                asked,
                Proving(
                    store,
                    perturbations=how.perturbations,
                    budget=budget,
                    candidates=how.candidates,
                    each_alone=how.each,
                    jobs=how.jobs,
                    observer=observer,
                    tell=_tell,
                    on_interruption=lambda proof: print_known_so_far(proof, messages()),
                ),
            )


def _asked(given: ExplainOptions, store: Store) -> AttributionQuestion:
    if given.kernels:
        return _of_kernels(given)
    _refuse_of_study(given)
    return question(_study(given, store), given.workload, given.before, given.after)


def _study(given: ExplainOptions, store: Store) -> Study:
    """The study as it is stored, or as its file has it."""
    try:
        return find(store, given.study or _newest(store)).study
    except (NothingStored, StudyNotStored):
        if given.study is None or not given.study.endswith(".toml"):
            raise
        return load(Path(given.study), studies.registry())


def _tell(cost: Cost, candidates: Sequence[Candidate], in_groups: bool) -> None:
    """What is going to be run."""
    say(estimate(cost, candidates, in_groups=in_groups))


def _newest(store: Store) -> str | None:
    """The number of the study that was stored last, apart from those that proofs have made."""
    numbers = [one.id for one in store.readable_studies()[0] if not is_of_proof(one.study)]
    return str(max(numbers)) if numbers else None


def _of_study(given: ExplainOptions) -> Attribution:
    """Of a study's stored trials; of a study file that has none yet, of trials that are run now."""
    told = (given.workload, given.before, given.after)
    with open_existing(given.store) as store:
        try:
            study_record = record(store, find(store, given.study or _newest(store)).id)
        except (NothingStored, StudyNotStored):
            if given.study is None or not given.study.endswith(".toml"):
                raise
            asked = question(load(Path(given.study), studies.registry()), *told)
            with progress() as observer:
                return explain_question(asked, Guests(observer=observer, values=given.values))
        with progress() as observer:
            return explain_record(store, study_record, *told, Guests(observer=observer, values=given.values))


def _of_kernels(given: ExplainOptions) -> AttributionQuestion:
    """The question that --kernel and the boot parameters ask."""
    _refuse(given, "goes with a study, not with --kernel", "study", "before", "after")
    _check_kernels(given)
    if given.words:
        several = (given.cpus or 1) > 1
        kind = given.machine or ("exact-parallel" if several else "exact")
        check_first(kind=kind, kernels=given.kernels, words=given.words)
    use = one_use(given.workload, given.words)
    name_of = studies.registry().kernel_name
    names = [name_of(name) for name in given.kernels]
    memory = memory_of(memory_for(given.words, given.memory) or "512M")
    kernels = [_factor(_KERNEL, FactorKind.KERNEL, names)] if len(names) == 2 else []
    factors = (*kernels, *_boot_factors(given))
    only = names[0] if len(names) == 1 else ""
    settings = MachineSettings(kernel=only, memory_mib=memory, boot=given.boot)
    machine = on_model(on_machine(settings, given.machine, given.cpus), given.model)
    study = Study(name="explain", machine=machine, factors=factors, workloads=(use,))
    before = Treatment(levels={factor.name: factor.levels[0] for factor in factors})
    after = Treatment(levels={factor.name: factor.levels[1] for factor in factors})
    check_differ(study, before, after)
    return AttributionQuestion(study, use, before, after, _labels(given, names))


def _labels(given: ExplainOptions, names: list[str]) -> tuple[str, str]:
    """The kernels, with the boot parameters that only they have."""
    first, second = (names[0], *given.boot_before), (names[-1], *given.boot_after)
    return " ".join(first), " ".join(second)


def _check_kernels(given: ExplainOptions) -> None:
    count = len(given.kernels)
    if count > 2:
        raise BadOption(option="--kernel", problem=f"{count} given; give two: from, to")
    if count == 1 and not (given.boot_before or given.boot_after):
        problem = "1 given; give two (from, to), or one and a boot parameter (--to-boot PARAMETER)"
        raise BadOption(option="--kernel", problem=problem)


def _boot_factors(given: ExplainOptions) -> Iterable[Factor]:
    """One factor for each boot parameter: its value, itself where it has none, nothing where it is absent."""
    first = _by_name("--from-boot", given.boot_before)
    second = _by_name("--to-boot", given.boot_after)
    for name in {**first, **second}:
        yield _factor(name, FactorKind.BOOT, [first.get(name, ""), second.get(name, "")])


def _by_name(option: str, parameters: Iterable[str]) -> dict[str, str]:
    by_name: dict[str, str] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not name or any(map(str.isspace, parameter)) or (equals and not value):
            raise BadOption(option=option, problem=f"{parameter!r} is no boot parameter; NAME=VALUE or NAME")
        if name in by_name or name == _KERNEL:
            raise BadOption(option=option, problem=f"{name} is given twice")
        by_name[name] = value or name
    return by_name


def _factor(name: str, kind: FactorKind, levels: list[str]) -> Factor:
    both: tuple[LevelValue, ...] = tuple(levels)
    return Factor(name=name, kind=kind, levels=both, baseline=both[0], target=name)


def _refuse_of_study(given: ExplainOptions) -> None:
    problem = "goes with --kernel: a study says it itself"
    _refuse(
        given, problem, "boot_before", "boot_after", "boot", "memory", "words", "machine", "cpus", "model"
    )


def refuse_of_proofs(how: ProveOptions) -> None:
    """Raise BadOption where an option of --prove is given without it."""
    given = {
        "--budget": how.budget,
        "--candidates": how.candidates,
        "--each": how.each,
        "--jobs": how.jobs,
    }
    for option, value in given.items():
        if value:
            raise BadOption(option=option, problem="goes with --prove")


_OPTIONS = {
    "study": "STUDY",
    "before": "--from",
    "after": "--to",
    "words": "-- COMMAND",
    "boot_before": "--from-boot",
    "boot_after": "--to-boot",
    "boot": "--boot",
    "memory": "--memory",
    "machine": "--machine",
    "cpus": "--cpus",
    "model": "--model",
}


def _refuse(given: ExplainOptions, problem: str, *fields: str) -> None:
    for name in fields:
        if getattr(given, name):
            raise BadOption(option=_OPTIONS[name], problem=problem)


# What the store that a command names knows of counted changes and time.


def stored_tables(location: str | None) -> tuple[FidelityTable, ...]:
    """The tables that may be cited; none where there is no store, or where it cannot be read."""
    try:
        with open_store(location or default_location(), existing=True) as store:
            return known(store)
    except StoreError:
        return ()
