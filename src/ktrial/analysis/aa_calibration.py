"""A/A studies: the same treatment under two names, to learn what a machine can tell apart."""

import secrets

from ktrial.analysis import interim
from ktrial.analysis.errors import CalibrationNotThere, NothingToCalibrate
from ktrial.analysis.result import metrics_of, record
from ktrial.model.calibration import Calibration
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import Stopping, Study, Timing
from ktrial.model.study_record import StudyRecord
from ktrial.stats.sequential import SequentialDesign, calibrate
from ktrial.store import Store

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
        }
    )


def next_calibration(store: Store, study: Study) -> Study:
    """The newest stored one like this that was interrupted; otherwise this one, with a seed of its own."""
    like = [
        each for each in store.studies() if each.study == study.model_copy(update={"seed": each.study.seed})
    ]
    for each in sorted(like, key=lambda one: -one.id):
        if interim.blocks_wanted(each.study, store.trials(each.id), ()) is not None:
            return each.study
    return study.model_copy(update={"seed": secrets.randbelow(2**31)})


def calibration_of(study_record: StudyRecord) -> Calibration:
    """What the A/A study says about studies with its margin. Raises NothingToCalibrate."""
    study, trials = study_record.study, study_record.trials
    timing = study.timing or Timing()
    design = SequentialDesign(margin=study.margin, alpha=timing.alpha)
    try:
        measured = interim.measured(study, trials, metrics_of(study, trials))
        if not measured:
            raise ValueError("it measured nothing")
        return calibrate(measured, design, study.machine.kind)
    except ValueError as error:
        raise NothingToCalibrate(study=study.name, problem=error) from None


def newest_calibration(store: Store, machine: str) -> Calibration:
    """That of the machine that was made last. Raises CalibrationNotThere, NothingToCalibrate."""
    name = f"{_NAME}{machine}"
    stored = [each for each in store.studies() if each.study.name == name]
    if not stored:
        raise CalibrationNotThere(machine=machine)
    return calibration_of(record(store, max(each.id for each in stored)))
