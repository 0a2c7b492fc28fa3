"""Errors about studies in real time."""

from ktrial.errors import KtrialError


class TimedError(KtrialError):
    """{problem}"""


class NothingToCalibrate(TimedError):
    """The A/A study {study} calibrates nothing: {problem}."""

    hint = "run it with at least ten blocks: ktrial calibrate --blocks 20"


class CalibrationNotThere(TimedError):
    """The machine {machine} has not been calibrated in this store."""

    hint = "ktrial calibrate --machine {machine} --workload W"


class NothingToConfirm(TimedError):
    """The study {study} is exact: a second run would give the same numbers to the last digit."""

    exit_code = 2
    hint = "only studies in real time are confirmed; more perturbations show more spread: --perturbations"
