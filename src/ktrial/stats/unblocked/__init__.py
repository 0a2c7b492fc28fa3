"""Groups of runs that were not measured in blocks: data of papers and of other tools."""

from ktrial.stats.unblocked.anova import one_way, welch
from ktrial.stats.unblocked.intervals import mean_interval, sd_interval
from ktrial.stats.unblocked.moments import Moments, moments, possible_runs, recovered_runs
from ktrial.stats.unblocked.pairs import games_howell, games_howell_pairs, welch_df
from ktrial.stats.unblocked.ratios import Ratio, ratio

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
