"""From the options of `ktrial explain` to an explanation: of a stored result, of a study file, of kernels."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.analysis import fidelity_citation
from ktrial.analysis.attribution.question import AttributionQuestion, check_differ, question
from ktrial.analysis.result import load_record
from ktrial.cli import studies
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import messages, say
from ktrial.cli.options.common import duration
from ktrial.cli.options.workloads import single_use
from ktrial.cli.progress import progress
from ktrial.cli.render.explanation import citations, estimate, print_known_so_far
from ktrial.cli.studies import NothingStored, find, open_existing, open_store
from ktrial.experiment.explain import Guests, explain_question, explain_record
from ktrial.experiment.proof import Proven, Proving, prove
from ktrial.model.attribution import Attribution, Proof
from ktrial.model.design import Factor, FactorKind, LevelValue, Treatment
from ktrial.model.fidelity import FidelityCitation
from ktrial.model.study import Study
from ktrial.store.errors import StoreError, StudyNotStored
from ktrial.store.store import Store
from ktrial.studyfile.reader import load

if TYPE_CHECKING:
    from ktrial.cli.commands.explain import ExplainOptions, ProveOptions

_KERNEL = "kernel"


def why(options: "ExplainOptions") -> tuple[Attribution, Proof | None]:
    """The explanation, with the proof that the store has of it. Raises BadOption, and what `explain_record`
    raises.

    Of a study's stored trials; of kernels, or of a study file that never ran, from trials that are run now.
    """
    if options.kernel:
        return _counted(_of_kernels(options), options), None
    _refuse_with_study(options)
    with open_existing(options.store) as store:
        stored = _stored_or_file(options, store)
        if isinstance(stored, Study):
            asked_for = question(stored, options.workload, options.before, options.after)
            return _counted(asked_for, options), None
        record = load_record(store, stored)
        with progress() as observer:
            guests = Guests(observer=observer, values=not options.no_values)
            sides = (options.workload, options.before, options.after)
            attribution = explain_record(store, record, *sides, guests)
        explanation = attribution.explanation
        difference = (explanation.workload, explanation.before.label, explanation.after.label)
        proofs = (proof for proof in record.proofs if proof.difference_key == difference)
        return attribution, next(proofs, None)


def question_of(options: "ExplainOptions") -> AttributionQuestion:
    """What is to be explained; nothing is booted. Raises BadOption, ExplanationError."""
    if options.kernel:
        return _of_kernels(options)
    _refuse_with_study(options)
    with open_existing(options.store) as store:
        stored = _stored_or_file(options, store)
        study = stored if isinstance(stored, Study) else store.find(str(stored)).study
    return question(study, options.workload, options.before, options.after)


def _counted(asked_for: AttributionQuestion, options: "ExplainOptions") -> Attribution:
    with progress() as observer:
        return explain_question(asked_for, Guests(observer=observer, values=not options.no_values))


def _stored_or_file(options: "ExplainOptions", store: Store) -> Study | int:
    """The number of the stored study, the latest where none is named; the study of a file that never ran."""
    name = options.study
    try:
        return find(store, name).id
    except (NothingStored, StudyNotStored):
        if name is None or not name.endswith(".toml"):
            raise
        return load(Path(name), studies.registry())


def proven(options: "ExplainOptions", proving: "ProveOptions") -> Proven:
    """The explanation, with measured shares of what differs. Raises BadOption, and what `prove` raises."""
    if options.no_values:
        raise BadOption("--no-values", "--prove takes settings back: it has to know them")
    if options.machine == "exact-parallel" or options.cpus:
        raise BadOption("--prove", "shares are proven on the machine exact")
    budget = duration("--budget", proving.budget) if proving.budget else None
    with open_store(options.store) as store:
        asked_for = question_of(options)
        with progress() as observer:
            return prove(
                asked_for,
                Proving(
                    store,
                    perturbations=proving.perturbations,
                    budget=budget,
                    candidates=tuple(proving.candidates or ()),
                    each_alone=proving.each_alone,
                    jobs=proving.jobs,
                    observer=observer,
                    tell=lambda cost, candidates, in_groups: say(
                        estimate(cost, candidates, in_groups=in_groups)
                    ),
                    on_interruption=lambda proof: print_known_so_far(proof, messages()),
                ),
            )


def refuse_of_proofs(proving: "ProveOptions") -> None:
    """Raise BadOption where an option of --prove is given without it."""
    options = {
        "--budget": proving.budget,
        "--candidates": proving.candidates,
        "--each": proving.each_alone,
        "--jobs": proving.jobs,
    }
    _refuse(options, "goes with --prove")


def _refuse_with_study(options: "ExplainOptions") -> None:
    of_kernels = {
        "--from-boot": options.from_boot,
        "--to-boot": options.to_boot,
        "--boot": options.boot,
        "--memory": options.memory,
        "-- COMMAND": options.words,
        "--machine": options.machine,
        "--cpus": options.cpus,
        "--model": options.model,
    }
    _refuse(of_kernels, "goes with --kernel: a study says it itself")


def _refuse(options: Mapping[str, object], problem: str) -> None:
    for option, value in options.items():
        if value:
            raise BadOption(option, problem)


def _of_kernels(options: "ExplainOptions") -> AttributionQuestion:
    """The question that --kernel and the boot parameters ask."""
    of_study = {"STUDY": options.study, "--from": options.before, "--to": options.after}
    _refuse(of_study, "goes with a study, not with --kernel")
    kernels = options.kernel or []
    before_boot, after_boot = options.from_boot or [], options.to_boot or []
    if len(kernels) > 2:
        raise BadOption("--kernel", f"{len(kernels)} given; give two: from, to")
    if len(kernels) == 1 and not (before_boot or after_boot):
        problem = f"only {kernels[0]}; give two (6.1 6.12), or one and a boot parameter (--to-boot PARAMETER)"
        raise BadOption("--kernel", problem)
    options.check_system(kernels)
    use = single_use(options.workload, options.words)
    names = list(map(studies.registry().kernel_name, kernels))
    factors = [_factor(_KERNEL, FactorKind.KERNEL, names)] if len(names) == 2 else []
    # One factor for each boot parameter: its value, itself where it has none, nothing where it is absent.
    first, second = _by_name("--from-boot", before_boot), _by_name("--to-boot", after_boot)
    factors += [
        _factor(name, FactorKind.BOOT, [first.get(name, ""), second.get(name, "")])
        for name in {**first, **second}
    ]
    machine = options.settings(names[0] if len(names) == 1 else "")
    study = Study(name="explain", machine=machine, factors=tuple(factors), workloads=(use,))
    before = Treatment(levels={factor.name: factor.levels[0] for factor in factors})
    after = Treatment(levels={factor.name: factor.levels[1] for factor in factors})
    check_differ(study, before, after)
    labels = " ".join((names[0], *before_boot)), " ".join((names[-1], *after_boot))
    return AttributionQuestion(study, use, before, after, labels)


def _by_name(option: str, parameters: Iterable[str]) -> dict[str, str]:
    by_name: dict[str, str] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not name or any(map(str.isspace, parameter)) or (equals and not value):
            raise BadOption(option, f"{parameter!r} is no boot parameter; NAME=VALUE or NAME")
        if name in by_name or name == _KERNEL:
            raise BadOption(option, f"{name} is given twice")
        by_name[name] = value or name
    return by_name


def _factor(name: str, kind: FactorKind, levels: list[str]) -> Factor:
    both: tuple[LevelValue, ...] = tuple(levels)
    return Factor(name=name, kind=kind, levels=both, baseline=both[0], target=name)


def citations_of(attribution: Attribution, location: str | None) -> dict[str, FidelityCitation | None]:
    """What the store knows of changes in time as large as the explained one; nothing without a table."""
    try:
        with open_store(location, existing=True) as store:
            tables = fidelity_citation.known(store)
    except StoreError:
        tables = ()
    return citations(attribution, tables)
