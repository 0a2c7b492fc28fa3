"""The audit of the environment: what of this machine can change a timed result. Nothing is changed.

A module here has a tuple `READERS`: one more row of it, or one more module, is one more reading.
"""

from ktrial.monitors.environment.comparison import audit, changes, concerns, confounds, readers
from ktrial.monitors.environment.reader import Observation, Reader

__all__ = ["Observation", "Reader", "audit", "changes", "concerns", "confounds", "readers"]
