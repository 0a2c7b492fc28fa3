"""From a configuration of a search to a treatment, and to the study that has just its factors."""

from collections.abc import Mapping
from typing import Protocol

from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.kernel import BuildChange
from ktrial.model.study import Study, perturbation
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Configuration, Observation, Purpose, Space
from ktrial.studyfile.search import BOOT, KERNEL, OPTION


class Asked(Protocol):
    """One run that a search wants (ktrial.optimize.evaluation_log.Ask)."""

    @property
    def configuration(self) -> Configuration:
        """Dimension → value, for all that differ from their defaults."""

    @property
    def purpose(self) -> Purpose:
        """What it is for."""

    @property
    def order(self) -> int:
        """Running number, from 0."""

    @property
    def block(self) -> int | None:
        """Runs of one block are compared with each other."""

    @property
    def perturbation(self) -> int:
        """0 is the plain run."""


def planned(study: Study, ask: Asked) -> PlannedTrial:
    """The trial that answers the ask. Its block is the ask's number: no two trials have the same key."""
    return PlannedTrial(
        order=ask.order,
        block=ask.order,
        treatment=Treatment(levels=dict(ask.configuration)),
        perturbation=perturbation(study.seed, ask.perturbation),
        purpose=ask.purpose.value,
        compared_in=ask.block,
    )


def observation(trial: Trial) -> Observation:
    """What a trial of a search says."""
    levels = {name: str(level) for name, level in trial.planned.treatment.levels.items()}
    failed = trial.outcome is not Outcome.COMPLETED
    return Observation(
        configuration=levels,
        values={} if failed else {sample.metric: sample.value for sample in trial.samples},
        failure=(trial.reason or trial.outcome.value) if failed else "",
        refused=_refused(trial, levels) if trial.outcome is Outcome.REFUSED else "",
        seconds=trial.seconds,
        order=trial.planned.order,
        purpose=Purpose(trial.planned.purpose),
        block=trial.planned.compared_in,
        perturbation=trial.planned.perturbation.number,
    )


def _refused(trial: Trial, levels: Mapping[str, str]) -> str:
    """The setting that the reason names (ktrial.experiment.manipulation)."""
    return next((name for name in levels if trial.reason.startswith(f"{name} = ")), "")


def study_of(study: Study, space: Space, configuration: Mapping[str, str]) -> Study:
    """The study, with one factor for each dimension that the configuration changes.

    What it does not change is not touched: it stays as it is on the system.
    """
    changed = [each for each in space.dimensions if each.name in configuration]
    factors = tuple(_factor(each.name, each.default, configuration[each.name]) for each in changed)
    kernel = configuration.get(KERNEL)
    machine = study.machine.model_copy(update={"kernel": ""}) if kernel else study.machine
    return study.model_copy(update={"factors": factors, "machine": machine, "search": None})


def _factor(name: str, default: str, value: str) -> Factor:
    kind, target = kind_of(name)
    changes = {}
    if kind is FactorKind.KCONFIG:
        changes = {value: BuildChange(options={f"CONFIG_{target}": value})}
    return Factor(
        name=name,
        kind=kind,
        levels=(default, value),
        baseline=default,
        target=target,
        changes=changes,
    )


def kind_of(name: str) -> tuple[FactorKind, str]:
    """What a dimension changes, and its name without what says so."""
    if name == KERNEL:
        return FactorKind.KERNEL, ""
    for start, kind in ((BOOT, FactorKind.BOOT), (OPTION, FactorKind.KCONFIG)):
        if name.startswith(start):
            return kind, name.removeprefix(start)
    return FactorKind.SETTING, name
