"""From samples to verdicts."""

from ktrial.stats.answer import answer
from ktrial.stats.exact import Arm, compare, spread

__all__ = ["Arm", "answer", "compare", "spread"]
