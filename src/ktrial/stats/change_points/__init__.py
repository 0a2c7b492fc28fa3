"""Where a metric changed over versions, or over time.

`steps` is for exact series, which have no noise: by margin and by spread. `shifts` is for timed ones: a test
with a controlled rate of false alarms, for independent noise and for noise that autocorrelated.
`shifts_of_all` judges many series together. docs/history.md says what was simulated.
"""

from ktrial.stats.change_points.exact_series import steps
from ktrial.stats.change_points.seeded_segmentation import ALPHA, Shift, p_of_any, shifts, shifts_of_all

__all__ = ["ALPHA", "Shift", "p_of_any", "shifts", "shifts_of_all", "steps"]
