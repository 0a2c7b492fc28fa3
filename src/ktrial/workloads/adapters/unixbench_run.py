"""UnixBench, as its script `Run` runs it: every pass is taken from its log, and the index computed anew.

`unixbench` is ktrial's own, in the static program.
"""

from ktrial.model.imported import BASELINES
from ktrial.model.workload import Metric
from ktrial.program_outputs import OutputDamaged, unixbench_log
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
    "dhry2reg": "Dhrystone 2 using register variables",
    "whetstone-double": "Double-Precision Whetstone",
    "execl": "Execl Throughput",
    "fstime": "File Copy 1024 bufsize 2000 maxblocks",
    "fsbuffer": "File Copy 256 bufsize 500 maxblocks",
    "fsdisk": "File Copy 4096 bufsize 8000 maxblocks",
    "pipe": "Pipe Throughput",
    "context1": "Pipe-based Context Switching",
    "spawn": "Process Creation",
    "shell1": "Shell Scripts (1 concurrent)",
    "shell8": "Shell Scripts (8 concurrent)",
    "syscall": "System Call Overhead",
}
"""Test → its title in the log."""
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
    names = {title: name for name, title in _TESTS.items()}
    try:
        sections = unixbench_log.sections(output)
    except OutputDamaged as error:
        raise ValueError(error.message.removesuffix(".")) from None
    results = {
        section.test: section.result
        for section in sections
        if section.copies == settings["copies"] and section.test in names
    }
    if not all(results.values()):
        raise ValueError("a test without a pass that counts")
    metrics = {names[title]: result for title, result in results.items()}
    if results.keys() == BASELINES.keys():
        metrics[_INDEX] = unixbench_log.index(results)
    return metrics


def _metrics() -> tuple[Metric, ...]:
    units = {name: unixbench_log.UNITS.get(title, "lps") for name, title in _TESTS.items()}
    return (*(more(name, unit) for name, unit in units.items()), more(_INDEX, "index"))


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
