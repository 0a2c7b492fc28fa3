"""Search over settings: explore, contend, take back what does not matter, confirm on fresh runs.

Nothing here knows a machine: `tune` asks for runs through an `Evaluator`, and gives a `Tuned`.
docs/tune.md says how it searches, and what stands behind each step.
"""

from ktrial.optimize.evaluation_log import Ask, Evaluator, Stage, StageProgress
from ktrial.optimize.search import tune

__all__ = ["Ask", "Evaluator", "Stage", "StageProgress", "tune"]
