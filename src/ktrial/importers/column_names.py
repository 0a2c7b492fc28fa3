"""What the name of a column says: a measurement, a group, a run's number, a spread, a size that was set.

Names are looked up in short lists, whole. A name that is in none says nothing here: it is not guessed at.
"""

import re
from collections.abc import Iterable

from ktrial.program_outputs.units import Units

_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_BRACKET = re.compile(r"\s*[(\[{][^()\[\]{}]*[)\]}]\s*$")


def plain(name: str) -> str:
    """A column's name in small letters and underscores, without brackets: `Time (ms)` is `time`.

    Dots, strokes and capitals part words: `Geometric.Mean`, `processing-time`, `MetricValue`; `run #`.
    """
    words = _WORD_ENDS.sub("_", _BRACKET.sub("", name.strip().rstrip("#") or name).strip())
    return re.sub(r"[\s.\-]+", "_", words).lower()


# --- What was measured.

_WHOLE = ("value", "score", "result", "index", "mean", "average", "avg")
"""Words that name what was measured where they are the whole name."""
_QUANTITIES = (
    "seconds", "time", "duration", "elapsed", "throughput", "goodput", "rate", "latency", "bandwidth",
    "runtime", "walltime", "speed", "ops", "iops", "tps", "qps", "rps", "fps", "ipc",
)  # fmt: skip
"""Words that name what was measured, alone, first or last: `time_ms`, `avg_latency`, `processing.time`."""
_COUNTED = re.compile(
    r"(?:n|num|number|no|count)_.*|.*_(?:count|cnt|num|number|factor|limit|target|slo|budget)"
    r"|time_?(?:slice|step|point|index|zone|out|limit).*"
)
"""Names of numbers of things, of what was set, and of when it was."""
MEANS = ("mean", "average", "avg")
_STATISTIC = re.compile(
    r"mean|average|avg|median|min|max|minimum|maximum|std|sd|stdev|stddev|dev|deviation|standard|se|sem|stderr|err|error|cv"
    r"|rsd|var|variance|iqr|range|mad|ci|lower|upper|low|high|margin|[pq][0-9]{1,3}|p99_?9+|[0-9]{1,3}%?|[0-9]{1,2}(?:st|nd|rd|th)"
    r"|percentile|quantile|of|best|worst"
)
_MEAN = re.compile(r"(?:.*_)?(?:mean|average|avg)(?:_.*)?")
_BESIDE_MEANS = re.compile(
    r"(?:.*_)?(?:error|err|margin|ci|ci_low|ci_high|ci_lower|ci_upper|lower|upper|lower_bound|upper_bound|±)"
)


def names_quantity(name: str, units: Units) -> bool:
    """Whether it names a unit or a quantity: what was measured, or a time, a size or a rate that was set."""
    whole = plain(name)
    if IDENTIFIER.fullmatch(whole) or _COUNTED.fullmatch(whole):
        return False
    named = units.of_column(name)
    if named.unit is not None or named.doubt or "better" in whole:
        return True
    words = whole.split("_")
    return (
        whole in _WHOLE or words[0] in (*MEANS, *_QUANTITIES) or words[-1] in (*MEANS, *_QUANTITIES, "value")
    )


def is_counted(name: str) -> bool:
    """Whether it is called a number of things: `num_edges`."""
    return _COUNTED.fullmatch(plain(name)) is not None


def is_quantity(name: str) -> bool:
    """Whether it is called as a quantity and nothing else: `seconds`, `latency`."""
    return plain(name) in (*_WHOLE, *_QUANTITIES)


def is_mean(name: str) -> bool:
    """Whether it is called a mean, of whatever."""
    return _MEAN.fullmatch(plain(name)) is not None


def is_plain_mean(name: str) -> bool:
    """Whether its first word is `mean`, so that a table of summaries is meant: `mean_mb_s`."""
    return plain(name).partition("_")[0] in MEANS


def is_statistic_of(name: str, mean: str, units: Units) -> bool:
    """Whether it is another statistic of what a mean is of: `p99_us` and `stddev_us` beside `mean_us`."""
    words, of_mean = ([*_words(column, units)] for column in (name, mean))
    statistics = [word for word in words if _STATISTIC.fullmatch(word)]
    stem = [word for word in words if word not in statistics]
    stem_of_mean = [word for word in of_mean if not _STATISTIC.fullmatch(word)]
    return bool(statistics) and stem in ([], stem_of_mean)


def _words(name: str, units: Units) -> Iterable[str]:
    """A name's words, without those of its unit."""
    unit = units.of_column(name).unit
    words = plain(name).split("_")
    while len(words) > 1 and unit is not None and units.of_column(f"x {words[-1]}").unit is not None:
        words.pop()
    return words


def is_beside_means(name: str) -> bool:
    """Whether it says how sure a mean is, in a way that nothing tells: `Error`, `ci_low`."""
    return _BESIDE_MEANS.fullmatch(plain(name)) is not None


# --- What tells rows apart.

BLOCK = {"block"}
RUN = {
    "trial", "run", "repeat", "repetition", "replicate", "rep", "run_no", "run_number", "run_index",
    "run_num", "run_nr", "run_id", "trial_id",
}  # fmt: skip
"""Names of numbers of runs."""
WEAK_RUN = {
    "iteration", "iter", "pass", "sample", "attempt", "round", "iteration_id", "sample_id", "result_id",
    "measurement_id", "seed",
}  # fmt: skip
"""Names of numbers of runs, or of settings: their numbers have to follow each other."""
SEED = {"seed"}
METRIC = {"metric", "metric_name"}
BENCHMARK = {"test", "benchmark", "workload", "test_name", "benchmark_name", "bench"}
KNOB = {"knob", "factor"}
LEVEL = "level"
SESSION = {"experiment", "session", "day"}
COMPARED = {
    "kernel", "kernel_version", "linux", "version", "release", "variant", "config", "configuration", "build",
    "commit", "branch", "revision", "arm", "treatment", "scheduler", "governor", "machine", "host",
}  # fmt: skip
"""What people compare; its cells may look like numbers: 6.1, 6.12."""
_SIZES = {
    "n", "size", "threads", "nthreads", "num_threads", "thread_count", "clients", "connections",
    "concurrency", "cores", "ncores", "num_cores", "cpus", "ncpus", "processes", "procs", "nprocs",
    "num_processes", "process_count", "ranks", "workers", "num_workers", "producers", "consumers",
    "block_size", "blocksize", "bs", "qd", "iodepth", "queue_depth", "batch", "batch_size", "bsize",
    "message_size", "msg_size", "payload_size", "file_size", "record_size", "buffer_size", "input_size",
    "data_size", "array_size", "matrix_size", "problem_size", "list_size", "dataset_size",
    "vector_size", "stride", "numjobs", "num_elements",
}  # fmt: skip
"""Numbers that are set."""


def is_size(name: str, units: Units) -> bool:
    """Whether it is called a number that is set: threads, a size, also with its unit: `block_size_kib`."""
    return plain(name) in _SIZES or "_".join(_words(name, units)) in _SIZES


# --- What is neither.

ERROR = {"standard_error", "std_error", "stderr", "std_err", "se", "sem"}
SD = {"sd", "std", "stdev", "stddev", "std_dev", "standard_deviation"}
SD_PERCENT = {"sd_percent", "sd%", "sd_%", "std_percent", "cv_percent", "cv_%", "rsd_percent", "rsd_%"}
"""Of `cv` alone nothing says whether it is in per cent."""
RUNS = {
    "n",
    "runs",
    "samples",
    "count",
    "rounds",
    "n_runs",
    "num_runs",
    "number_of_runs",
    "repetitions",
    "repeats",
}
"""Numbers of runs, beside a mean."""
COUNTS = {"n", "count", "repetitions", "repeats"}
"""Of these, those that may be something else where no spread stands beside them."""
DEFAULT = {"is_default", "default", "is_baseline"}
NOTE = {"note", "notes", "comment", "comments", "remark"}
RANK = {"rank", "place", "position", "row", "no", "nr", "#", "order", "run_order", "sequence", "seq"}
UNIT = re.compile(r"(?:.*_)?units?|scale|uom|unit_of_measure(?:ment)?")
STATUS = re.compile(
    r"(?:.*_)?(?:status|exit_?code|return_?code|rc|retval|success|succeeded|passed|verified|correct|valid|ok|failed"
    r"|failure|timed_out|timeout|error_occurred)"
)
TROUBLES = re.compile(
    r"(?:.*_)?(?:(?:error|failure|timeout)s?_count|errors|failures|timeouts|failed_requests|retries|drops|dropped)"
)
"""Names of columns that count what went wrong."""
IDENTIFIER = re.compile(r"(?:.*_)?(?:id|uuid|hash|pid|tid)(?:_[0-9]+)?")
_IS_BAD = re.compile(r"(?:.*_)?(?:failed|failure|timed_out|timeout|error_occurred)")
_IS_GOOD = re.compile(r"(?:.*_)?(?:success|succeeded|passed|verified|correct|valid|ok)")
_CODE = re.compile(r"(?:.*_)?(?:status|exit_?code|return_?code|rc|retval)")
_GOOD = {
    "", "0", "0.0", "200", "ok", "okay", "success", "successful", "succeeded", "pass", "passed", "true",
    "yes", "complete", "completed", "done", "finished", "normal", "valid", "none", "null",
}  # fmt: skip
_BAD = {"fail", "failed", "failure", "error", "timeout", "killed", "crashed", "crash", "aborted", "ko"}
NO = {"", "0", "no", "false", "none", "null", "n"}
YES = {"1", "yes", "true", "y"}


def is_status(name: str, cells: Iterable[str]) -> bool:
    """Whether its name says how a run ended, and each cell, too: `final` and `provisional` are no ends.

    A column `failed` with numbers in it may count what failed.
    """
    if not STATUS.fullmatch(plain(name)):
        return False
    words = {cell.strip().lower() for cell in cells}
    is_code = bool(_CODE.fullmatch(plain(name)))
    return all(word in _GOOD | _BAD | NO | YES or (is_code and word.lstrip("-").isdigit()) for word in words)


def has_failed(name: str, cell: str) -> bool:
    """Whether a cell of a column `status`, `exit_code`, `success`, `timed_out`… says that its run failed."""
    word = cell.strip().lower()
    if _IS_BAD.fullmatch(plain(name)):
        return word not in NO
    if _IS_GOOD.fullmatch(plain(name)):
        return word in NO | _BAD
    return word not in _GOOD


def is_measured_by_name(name: str) -> bool:
    """Whether a column is one of measurements, or of how they scatter, by its name."""
    return names_quantity(name, Units()) or plain(name) in ERROR | SD | SD_PERCENT
