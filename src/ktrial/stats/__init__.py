"""From samples to verdicts."""

from ktrial.stats.answer import answer
from ktrial.stats.exact import Arm, compare

__all__ = ["Arm", "answer", "compare"]
