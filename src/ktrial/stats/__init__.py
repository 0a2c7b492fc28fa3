"""Statistics: pure functions of numbers. Nothing here knows of kernels, stores or pages."""

from ktrial.stats.deterministic import Arm, compare

__all__ = ["Arm", "compare"]
