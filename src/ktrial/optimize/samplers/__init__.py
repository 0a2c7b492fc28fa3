"""Optimisers behind one seam: ask for configurations, tell what was measured. One file each."""

from ktrial.optimize.samplers.protocol import Evaluation, Optimiser, optimiser

__all__ = ["Evaluation", "Optimiser", "optimiser"]
