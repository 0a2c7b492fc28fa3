"""Groups of runs that were not measured in blocks: data of papers and of other tools."""

from ktrial.stats.independent.anova import one_way, welch
from ktrial.stats.independent.games_howell import games_howell, games_howell_pairs, welch_df
from ktrial.stats.independent.intervals import mean_interval, sd_interval
from ktrial.stats.independent.moments import Moments, moments, possible_runs, recovered_runs
from ktrial.stats.independent.ratios import Ratio, ratio

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
