"""The audit of the environment: what of this machine can change a timed result. Nothing is changed.

A module here has a tuple `READERS`: one more row of it, or one more module, is one more reading.
"""

from ktrial.monitors.environment.comparison import audit, changes, concerns, confounds, readers
from ktrial.monitors.environment.reader import EnvironmentReader, Observation

__all__ = ["EnvironmentReader", "Observation", "audit", "changes", "concerns", "confounds", "readers"]
