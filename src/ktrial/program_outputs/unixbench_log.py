"""UnixBench's log of all passes: one reader for the workload that runs it, and for `ktrial analyze`."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ktrial.model.imported import BASELINES
from ktrial.program_outputs.errors import OutputDamaged
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import number
from ktrial.text_lines import lines_of

UNITS = {
    "Double-Precision Whetstone": "MWIPS",
    "File Copy 1024 bufsize 2000 maxblocks": "KBps",
    "File Copy 256 bufsize 500 maxblocks": "KBps",
    "File Copy 4096 bufsize 8000 maxblocks": "KBps",
    "Shell Scripts (1 concurrent)": "lpm",
    "Shell Scripts (8 concurrent)": "lpm",
}
"""Of the tests of the index whose results are not in loops a second, `lps` (UnixBench's Run)."""
_TEST = re.compile(r"^(\S.{0,60}?) -- ([0-9]{1,6}) cop(?:y|ies)$")
_FACT = re.compile(r"^# (COUNT0|COUNT1|TIME|elapsed|status): (\S{1,40})$")
_UNIT = re.compile(r"^# COUNT2: (\S{1,12})$")
_PASS = re.compile(r"^#### Pass ([0-9]{1,4})$")
_SCORE = re.compile(r"^>>>> score: ([0-9.]{1,40})$")
LINES = LinePatterns(
    measurements=(
        r"\S.{0,60} -- [0-9]{1,6} cop(?:y|ies)",
        r"#### Pass [0-9]{1,4}",
        r"# (?:COUNT[012]|TIME|elapsed|status): \S{1,40}",
        r">>>> score: [0-9.]{1,40}",
    ),
    decoration=(
        r"#{20,}",
        r"==> .*",
        r"# pid: [0-9]+",
        r"(?:COUNT|TIME)\|.*",
        r">>>> (?:Results of|Sum of) [0-9]+ cop(?:y|ies)",
        r">>>> (?:time|iterations): [0-9.]+",
        r"\*?(?:Count|Dump) score: +[0-9.]+",
    ),
)
_SAME = 0.001
"""How far the log's own score and the passes' may be apart: it rounds times."""
_Pass = list[dict[str, float]]
"""What each copy counted."""


@dataclass
class Section:
    """A test in the log, with so many copies, and its passes."""

    test: str
    copies: int
    passes: list[_Pass] = field(default_factory=list)
    unit: str = ""
    notes: list[str] = field(default_factory=list)
    """What does not agree, for people."""

    @property
    def result(self) -> float:
        """UnixBench's result (combinePassResults in Run); 0 where a pass that counts has none.

        Counts are summed over copies and times averaged; the lowest third of the passes (rounded down) is
        dropped; the result is the geometric mean of count / (time / timebase), or of the count where the
        timebase is 0.
        """
        rates = sorted((_count(copies), _rate(copies)) for copies in self.passes if copies)
        counted = [rate for _, rate in rates[len(rates) // 3 :]]
        if min(counted) <= 0:
            return 0.0
        return math.exp(math.fsum(math.log(rate) for rate in counted) / len(counted))


def sections(text: str) -> list[Section]:
    """Every test that has passes, in the log's order. Raises OutputDamaged."""
    read: list[Section] = []
    copy: dict[str, float] = {}
    for at, line in enumerate([*lines_of(text), ""], start=1):
        if heading := _TEST.match(line):
            _close(read, at)
            read.append(Section(heading[1], int(heading[2])))
        elif not read:
            continue
        elif begins := _PASS.match(line):
            if int(begins[1]) != len(read[-1].passes) + 1:
                raise _damaged(at, f"pass {begins[1]} of {read[-1].test} follows pass {len(read[-1].passes)}")
            read[-1].passes.append([])
        elif unit := _UNIT.match(line):
            read[-1].unit = unit[1]
        elif score := _SCORE.match(line):
            _check(read[-1], number(score[1]))
        elif fact := _FACT.match(line):
            value = number(fact[2])
            if value is None or value < 0:
                raise _damaged(at, f"{fact[1]} is {fact[2]!r}, not a number")
            if copy.get(fact[1], value) != value:
                raise _damaged(at, f"{fact[1]} is there twice, with {copy[fact[1]]:g} and {value:g}")
            copy[fact[1]] = value
        elif not line.strip() and copy:  # it ends what a copy counted
            _keep(read[-1], copy, at)
            copy = {}
    _close(read, at)
    return [section for section in read if section.passes]


def _damaged(at: int, problem: str) -> OutputDamaged:
    return OutputDamaged(format="unixbench", where=f"line {at}", problem=problem)


def _keep(section: Section, copy: dict[str, float], at: int) -> None:
    """What a copy counted becomes part of its pass; a copy that failed before it counted is told."""
    if copy.pop("status", 0.0):
        section.notes.append(f"{section.test}: a copy ended with an error (line {at})")
    if not section.passes or not copy.keys() & {"COUNT0", "COUNT1", "TIME"}:
        return
    missing = [name for name in ("COUNT0", "COUNT1") if name not in copy]
    missing += [] if copy.keys() & {"TIME", "elapsed"} else ["elapsed"]
    if missing:
        raise _damaged(at, f"a copy of {section.test} has no {missing[0]}")
    section.passes[-1].append(copy)


def _close(read: list[Section], at: int) -> None:
    """The last test's passes: each has what every copy counted, unless none did. Raises OutputDamaged."""
    if not read:
        return
    if any(read[-1].passes) and not read[-1].unit:
        raise _damaged(at, f"{read[-1].test} has no COUNT2, its unit")
    for one_based, copies in enumerate(read[-1].passes, 1):
        if copies and len(copies) != read[-1].copies:
            problem = f"pass {one_based} of {read[-1].test} has {len(copies)} of {read[-1].copies} copies"
            raise _damaged(at, problem)
    read[-1].passes = [copies for copies in read[-1].passes if copies]


def _check(section: Section, score: float | None) -> None:
    """The log's own score against the passes', from which it was computed."""
    if score and any(section.passes) and abs(section.result / score - 1) > _SAME:
        section.notes.append(f"{section.test}: the log says {score:g}, its passes {section.result:g}")


def index(results: Mapping[str, float]) -> float:
    """Ten times the geometric mean of the results of all twelve tests over the baseline's."""
    logs = [math.log(results[test] / baseline) for test, baseline in BASELINES.items()]
    return 10 * math.exp(math.fsum(logs) / len(logs))


def _count(copies: _Pass) -> float:
    return math.fsum(copy["COUNT0"] for copy in copies)


def _rate(copies: _Pass) -> float:
    timebase = copies[0].get("COUNT1", 0.0)
    if not timebase:
        return _count(copies)
    # As in Run: a time of 0 or none at all stands for the elapsed time.
    time = math.fsum(copy.get("TIME") or copy.get("elapsed", 0.0) for copy in copies) / len(copies)
    return _count(copies) * timebase / time if time else 0.0
