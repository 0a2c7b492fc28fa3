"""Where a metric changed over versions, or over time.

`steps` is for exact series, which have no noise: by margin and by spread. `shifts` is for timed ones: a test
with a controlled rate of false alarms, for independent noise and for noise that autocorrelated.
`shifts_of_all` judges many series together. docs/history.md says what was simulated.

What needs numpy is imported when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ktrial.stats.change_points.exact_series import steps
from ktrial.stats.change_points.false_alarms import ALPHA

if TYPE_CHECKING:
    from ktrial.stats.change_points.seeded_segmentation import Shift, p_of_any, shifts, shifts_of_all

__all__ = ["ALPHA", "Shift", "p_of_any", "shifts", "shifts_of_all", "steps"]

if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'ktrial.stats.change_points' has no attribute {name!r}")
        return getattr(import_module("ktrial.stats.change_points.seeded_segmentation"), name)
