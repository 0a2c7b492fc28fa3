"""Verdicts on timed numbers: real time, real noise.

The runner of a timed study needs one function. After each block it calls

    interim_analysis.look(measured, design) -> Look

with everything measured so far (one `BlockedMetric` a metric of a workload: treatment → one value a block,
NaN where a trial failed) and the `SequentialDesign` that was fixed before the first block. The answer is
pure: it depends on the blocks alone, so that a study that was interrupted goes on as if it had not been.
`Look.next_look` is the number of blocks at which the next decision falls (run up to there), or None: the
study is over, and `Look.comparisons` are its verdicts. When time or trials run out, `look(…, final=True)`
takes what is there for all there is.

`confirm` judges fresh blocks of a fixed number; `permutation_p` asks nothing of their distribution; `power`,
`blocks_needed` and `smallest_detectable` plan; `calibrate` reads an A/A study. docs/statistics.md says what
stands behind each, and what was simulated.
"""
