"""Groups of runs that were not measured in blocks: data of papers and of other tools."""

from ktrial.stats.independent.group_comparisons import (
    Ratio,
    games_howell,
    games_howell_pairs,
    one_way,
    ratio,
    welch,
    welch_df,
)
from ktrial.stats.independent.moments import (
    Moments,
    mean_interval,
    moments,
    possible_runs,
    recovered_runs,
    sd_interval,
)

__all__ = [
    "Moments",
    "Ratio",
    "games_howell",
    "games_howell_pairs",
    "mean_interval",
    "moments",
    "one_way",
    "possible_runs",
    "ratio",
    "recovered_runs",
    "sd_interval",
    "welch",
    "welch_df",
]
