"""Statistics: pure functions of numbers. Nothing here knows of kernels, stores or pages."""

from ktrial.stats.exact_comparison import Arm, compare

__all__ = ["Arm", "compare"]
