"""A study with everything that it measured: what the store yields and reports are made from."""

from datetime import datetime

from ktrial.model.base import Model
from ktrial.model.comparison import Result
from ktrial.model.kernel_diff import KernelDifference
from ktrial.model.proof import Proof
from ktrial.model.study import Study
from ktrial.model.time_series import TrialSampled
from ktrial.model.trial import Trial


class StudyRecord(Model):
    """One study in the store."""

    id: int
    study: Study
    study_digest: str
    created: datetime
    planned: int
    """How many trials the study plans."""
    trials: tuple[Trial, ...]
    """Those that ended, in run order."""
    result: Result
    kernels: tuple[KernelDifference, ...] = ()
    """What differs from the baseline's kernel to each other one that trials ran on."""
    sampled: tuple[TrialSampled, ...] = ()
    """What monitors read over time in each treatment's first trial that completed, where they did."""
    proofs: tuple[Proof, ...] = ()
    """What was proved about the causes of its differences (`explain --prove`)."""
