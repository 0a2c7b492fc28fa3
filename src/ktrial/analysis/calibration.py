"""A/A studies: the same treatment under two names, to learn what a machine can tell apart."""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial import machines
from ktrial.analysis import interim
from ktrial.analysis.errors import AnalysisError, AnalysisUsageError, BadAmount
from ktrial.analysis.imported_results import measured_in_blocks
from ktrial.analysis.result import load_record, metrics_of
from ktrial.importers import Choices, read_all, source_file
from ktrial.importers.errors import NoMeasurements
from ktrial.model.comparison import Calibration, Estimand
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import Stopping, Study, StudyRecord, Timing
from ktrial.stats.sequential.design import SequentialDesign
from ktrial.stats.sequential.power import Power, blocks_needed, calibrate, ratio_spread
from ktrial.store.store import Store, open_store
from ktrial.text_lines import lines_of

ARMS = ("A", "B")
BLOCKS = 20
_FACTOR = "arm"
_NAME = "calibration-"


def calibration_study(study: Study, blocks: int = BLOCKS) -> Study:
    """The study with nothing changed but names, in a fixed number of blocks."""
    factor = Factor(name=_FACTOR, kind=FactorKind.NOTHING, levels=ARMS, baseline=ARMS[0])
    alpha = (study.timing or Timing()).alpha
    return study.model_copy(
        update={
            "name": f"{_NAME}{study.machine.kind}",
            "question": "What can be told apart here, where nothing was changed?",
            "factors": (factor,),
            "timing": Timing(blocks=blocks, stopping=Stopping.FIXED, alpha=alpha),
            "made_by": "calibrate",
        }
    )


def next_calibration(store: Store, study: Study) -> Study:
    """The newest stored one like this that was interrupted; otherwise this one, with a seed of its own."""
    like = [
        stored
        for stored in store.studies()
        if stored.study == study.model_copy(update={"seed": stored.study.seed})
    ]
    for stored in sorted(like, key=lambda stored: -stored.id):
        if interim.InterimData(stored.study, store.trials(stored.id)).blocks_wanted(()) is not None:
            return stored.study
    return study.model_copy(update={"seed": secrets.randbelow(2**31)})


def calibration_of(study_record: StudyRecord) -> Calibration:
    """What the A/A study says about studies with its margin. Raises AnalysisError."""
    study, trials = study_record.study, study_record.trials
    timing = study.timing or Timing()
    design = SequentialDesign(margin=study.margin, alpha=timing.alpha)
    try:
        measured = interim.InterimData(study, trials).measured(metrics_of(study, trials))
        if not measured:
            raise ValueError("it measured nothing")
        return calibrate(measured, design, study.machine.kind)
    except ValueError as error:
        raise AnalysisError(
            f"The A/A study {study.name} calibrates nothing: {error}.",
            hint="run it with at least ten blocks: ktrial timed calibrate --blocks 20",
        ) from None


def newest_calibration(store: Store, machine: str) -> Calibration:
    """That of the machine that was made last. Raises AnalysisError."""
    name = f"{_NAME}{machine}"
    stored = [stored_study for stored_study in store.studies() if stored_study.study.name == name]
    if not stored:
        raise AnalysisError(
            f"The machine {machine} has not been calibrated in this store.",
            hint=f"ktrial timed calibrate --machine {machine} --workload W",
        )
    return calibration_of(load_record(store, max(stored_study.id for stored_study in stored)))


# How many blocks a timed study needs.


@dataclass(frozen=True)
class PowerPlan:
    """What a study needs; None where no sensible number of blocks does it."""

    effect: float
    margin: float
    power: float
    ratio_spread: float
    """Standard deviation of a block's log ratio."""
    find_the_effect: Power | None
    show_equivalence: Power | None
    find_if_independent: Power | None
    """For the effect, if the interval did not allow for blocks that are alike: what that costs."""
    block_seconds: float | None


def spread_of(sd: float | None, calibration: str | None, margin: float, store: str) -> float:
    """Standard deviation of a block's log ratio, from what the user gave.

    `sd`: the trials' standard deviation, over their mean. Raises AnalysisUsageError, ImportFailed.
    """
    if sd is not None and calibration is None:
        return ratio_spread(sd)
    if calibration is not None and sd is None:
        if Path(calibration).exists() or calibration not in machines.names():
            return _calibrated(Path(calibration), margin).largest_spread
        with open_store(store) as opened:
            return newest_calibration(opened, calibration).largest_spread
    problem = "give one of them" if sd is None else "give one of them, not both"
    raise AnalysisUsageError(
        f"--sd and --from-calibration say how much this machine's numbers scatter: {problem}.",
        hint="--sd 1.2%, or --from-calibration FILE, which ktrial timed calibrate writes",
    )


def _calibrated(path: Path, margin: float) -> Calibration:
    """The calibration in a file, or that of the A/A blocks in it."""
    file = source_file(path)
    if file.text.lstrip().startswith("{") and '"ratio_spread"' in file.text:
        try:
            return Calibration.model_validate_json(file.text)
        except ValueError as error:
            problem = f"it is no calibration: {lines_of(str(error))[0]}"
            raise NoMeasurements(file=path, format="a calibration", problem=problem) from error
    (imported,) = read_all([("", path)], Choices())
    measured = [measured_in_blocks(family) for family in imported.families if family.blocked]
    if not measured:
        problem = "A/A blocks need a column block, and a column that names the arms"
        raise NoMeasurements(file=path, format=imported.format, problem=problem)
    try:
        return calibrate(measured, SequentialDesign(margin=margin))
    except ValueError as error:
        raise NoMeasurements(file=path, format=imported.format, problem=str(error)) from error


def plan_from(
    *,
    effect: float,
    spread: float,
    margin: float,
    power: float,
    block_seconds: float | None,
    estimand: Estimand = Estimand.TYPICAL,
) -> PowerPlan:
    """Blocks for finding the effect, and for showing that there is none. Raises BadAmount: an effect of 0."""
    if effect == 0:
        raise BadAmount(option="--effect", value="0", problem="a change of 0 cannot be found")
    design = SequentialDesign(margin=margin, estimand=estimand)
    return PowerPlan(
        effect=effect,
        margin=margin,
        power=power,
        ratio_spread=spread,
        find_the_effect=blocks_needed(effect, spread, design, share=power),
        show_equivalence=blocks_needed(0.0, spread, design, share=power),
        find_if_independent=blocks_needed(effect, spread, replace(design, independent=True), share=power),
        block_seconds=block_seconds,
    )
