"""UnixBench, as its script `Run` runs it: every pass is taken from its log, and the index computed anew.

`unixbench` is ktrial's own, in the static program.
"""

import math
import re
import statistics
from collections.abc import Iterator

from ktrial.model.workload import Metric
from ktrial.workloads.adapter import (
    PROLOGUE,
    SHELL,
    InstalledProgram,
    Settings,
    choice,
    described,
    more,
    whole,
    word,
)

_TESTS = {
    "dhry2reg": ("Dhrystone 2 using register variables", 116700.0, "lps"),
    "whetstone-double": ("Double-Precision Whetstone", 55.0, "MWIPS"),
    "execl": ("Execl Throughput", 43.0, "lps"),
    "fstime": ("File Copy 1024 bufsize 2000 maxblocks", 3960.0, "KBps"),
    "fsbuffer": ("File Copy 256 bufsize 500 maxblocks", 1655.0, "KBps"),
    "fsdisk": ("File Copy 4096 bufsize 8000 maxblocks", 5800.0, "KBps"),
    "pipe": ("Pipe Throughput", 12440.0, "lps"),
    "context1": ("Pipe-based Context Switching", 4000.0, "lps"),
    "spawn": ("Process Creation", 126.0, "lps"),
    "shell1": ("Shell Scripts (1 concurrent)", 42.4, "lpm"),
    "shell8": ("Shell Scripts (8 concurrent)", 6.0, "lpm"),
    "syscall": ("System Call Overhead", 15000.0, "lps"),
}
"""Test → its title, its score on the SPARCstation 20-61 that counts as 10, and its unit (pgms/index.base)."""
_INDEX = "index"

_SCRIPT = (
    PROLOGUE
    + """
directory=$1 copies=$2 passes=$3
shift 3
[ -x "$directory/Run" ] || fail "there is no UnixBench in '$directory': say where, directory = …"
export UB_RESULTDIR="$scratch" UB_TMPDIR="$scratch"
cd "$directory"
sed -n 's/^ *# *\\(Version .*\\)/\\1/p; s/.*\\$version *= *"\\([^"]*\\)".*/UnixBench \\1/p' Run | head -n 1
# shellcheck disable=SC2086
./Run -q -c "$copies" -i "$passes" "$@" >"$scratch/said" 2>&1 || { tail -n 20 "$scratch/said" >&2; exit 1; }
cat "$scratch"/*.log
"""
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    tests = list(_TESTS) if settings["tests"] == "index" else [str(settings["tests"])]
    values = (str(settings[name]) for name in ("directory", "copies", "passes"))
    return ("-c", _SCRIPT, "unixbench", *values, *tests)


def _read(output: str, settings: Settings) -> dict[str, float]:
    names = {title: name for name, (title, _, _) in _TESTS.items()}
    scores: dict[str, float] = {}
    for title, text in _parts(output, int(settings["copies"])):
        if title in names:
            scores[names[title]] = score(
                [_pass(text_of_pass) for text_of_pass in re.split(r"^#### Pass ", text, flags=re.M)[1:]]
            )
    if set(scores) == set(_TESTS):
        scores[_INDEX] = index(scores)
    return scores


def _parts(log: str, copies: int) -> Iterator[tuple[str, str]]:
    """Title and text of each test that ran with so many copies."""
    heads = list(re.finditer(r"^(.+) -- (\d+) cop(?:y|ies)$", log, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(log)]
    for head, end in zip(heads, ends, strict=True):
        if int(head[2]) == copies:
            yield head[1], log[head.end() : end]


def _pass(text: str) -> float:
    """COUNT over time, in units of its timebase; COUNT itself where that is 0. A copy is a paragraph."""
    counts = [float(number) for number in re.findall(r"^# COUNT0: ([0-9.]+)", text, re.MULTILINE)]
    bases = [float(digits) for digits in re.findall(r"^# COUNT1: ([0-9.]+)", text, re.MULTILINE)]
    times = [float(each) for each in re.findall(r"^# TIME: ([0-9.]+)", text, re.MULTILINE)]
    elapsed = [float(each) for each in re.findall(r"^# elapsed: ([0-9.]+)", text, re.MULTILINE)]
    if not counts or not bases:
        raise ValueError("a pass without a COUNT")
    if not bases[0]:
        return sum(counts)
    seconds = statistics.fmean(times or elapsed)
    return sum(counts) / (seconds / bases[0])


def score(passes: list[float]) -> float:
    """The geometric mean of the passes without the worst third, as Run's combinePassResults has it."""
    counted = sorted(passes)[len(passes) // 3 :]
    if not counted or min(counted) <= 0:
        raise ValueError("a test without a pass that counts")
    return math.exp(statistics.fmean(math.log(rate) for rate in counted))


def index(scores: dict[str, float]) -> float:
    """Ten times the geometric mean of the scores over the baseline's."""
    return 10 * math.exp(
        statistics.fmean(math.log(scores[name] / base) for name, (_, base, _) in _TESTS.items())
    )


def _metrics() -> tuple[Metric, ...]:
    return (*(more(name, unit) for name, (_, _, unit) in _TESTS.items()), more(_INDEX, "index"))


WORKLOAD = InstalledProgram(
    described(
        "unixbench-run",
        "UnixBench itself, by its script Run; unixbench is ktrial's own",
        "Runs UnixBench's `Run` in `directory` and reads every pass from its log: the passes sorted, the "
        "lowest third dropped, the geometric mean of the others. With all twelve tests the index is computed "
        "from that. Results of UnixBench 5 and 6 do not compare.",
        _metrics(),
        (
            word("directory", "where Run is, built", "/usr/local/UnixBench"),
            choice("tests", "index: all twelve of the index; or one", _INDEX, *_TESTS),
            whole("copies", "at once", 1, high=1024),
            whole("passes", "of a long test (Run's -i); a third of that of a short one", 10, high=100),
        ),
        "https://github.com/kdlucas/byte-unixbench",
    ),
    SHELL,
    _arguments,
    _read,
)
