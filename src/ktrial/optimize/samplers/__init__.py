"""Optimisers behind one seam: ask for configurations, tell what was measured. One file each."""

from ktrial.optimize.samplers.protocol import Optimiser, Told, optimiser

__all__ = ["Optimiser", "Told", "optimiser"]
