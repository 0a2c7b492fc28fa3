"""perf stat: its table for people, CSV (-x) and JSON (-j) (tools/perf/Documentation/perf-stat.txt)."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, Spread
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.reading import finite, json_objects, measured, text_of
from ktrial.text_lines import lines_of

_HEAD = 4096
_LARGEST = 1 << 18
_LONGEST_LINE = 500
_WHOLE = 99.0
"""Per cent of the time: below that perf took turns, and scaled what it counted."""
_PARTS = {"interval", "cpu", "core", "socket", "die", "node", "thread", "aggregate-number"}
NOT_SUPPORTED, _NOT_COUNTED = "<not supported>", "<not counted>"
_UNITS = {"msec": "ms"}
_HEADING = "Performance counter stats for"
_GROUP = r"[\u202f\u00a0\u2009'\u2019 ]"
"""What groups digits by threes in some languages, besides commas and points."""
_ROW = re.compile(
    rf"^ *(?P<value><not supported>|<not counted>|[0-9]{{1,3}}(?:{_GROUP}[0-9]{{3}})+(?:[.,][0-9]+)?"
    r"|[0-9][0-9.,]*)\s+"
    r"(?:(?P<unit>msec|ns|usec|Joules|[KMG]iB|C|Watts) +)?(?P<event>[^\s#]+)(?: \((?P<old_unit>msec)\))?"
    r"\s*(?:#.*?)?(?:\( \+-\s*(?P<error>[0-9.]+)% \))?\s*(?:[(\[](?P<percent>[0-9.]+)%[)\]])?\s*$"
)
_ELAPSED = re.compile(
    r"^ +(?P<value>\S+)(?: \+- \S+)? seconds (?P<what>time elapsed|user|sys)"
    r"\s*(?:\( \+-\s*(?P<error>[0-9.]+)% \))?\s*$"
)
_COMMA = re.compile(
    r"^ +\d+,\d+(?: \+- \d+,\d+)? seconds (?:time elapsed|user|sys)"
    r"|^ *[\d.]*\d,\d\d(?!\d)|[(\[](?: \+- +)?\d+,\d+%"
)
"""Decimals behind a comma: of seconds, which perf never groups, of what has two of them, of a per cent."""
_POINT = re.compile(
    r"^ +\d+\.\d+(?: \+- \d+\.\d+)? seconds (?:time elapsed|user|sys)"
    r"|^ *[\d,]*\d\.\d\d(?!\d)|[(\[](?: \+- +)?\d+\.\d+%"
)
_POINTS = re.compile(r"^ *\d{1,3}(?:\.\d{3}){2,}(?!\S)")
"""A count that is grouped by points: no number has two decimal points."""
_NUMBER = re.compile(rf"(?<![\w,.])\d{{1,3}}(?:(?:\.|{_GROUP})\d{{3}})*(?:,\d+)?(?![\w])|(?<![\w,.])\d+,\d+")
_NO_DIGIT = r"[^\d,]"
_COMMAND = re.compile(rf"{_HEADING} (?P<command>.+?)(?: \([0-9]+ runs\))?:")
_RUNS = re.compile(rf"{_HEADING} .*\((?P<runs>[0-9]+) runs\):")
_DECORATION = re.compile(
    r"\s*#.*|\s*Topdown\S+(?: \(\S+\))?\s*#.*|Some events weren't counted\..*|\s*(?:echo|perf stat) .*"
    r"|The events in group .*|\s*\(events? .*\)|\s*[0-9.]+ (?:\+- [0-9.]+ )?\S+ .*\bbound\b.*"
)
"""Metrics that perf computes of its counts, and what it advises."""
_GROUPED_BY_POINTS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
_SEPARATORS = ",;:|\t"
_PERCENT = re.compile(r"[0-9]+(\.[0-9]+)?")
_FEWEST_SEPARATORS = 3
_METRIC_ONLY = re.compile(r"[\s,;:|]*(?:[0-9.]*[,;:|][^,;:|]+)?|#.*|\s*started on .*")
"""A further metric of the event before."""
_MOST_PARTS = 2
"""Fields before the value where it is one of a part of the run: a time, a CPU, a socket and its CPUs."""
_SHOWN = 5
"""Events that a remark names."""
_NO_PART = "it tells parts of the run (-I, -A, --per-…): perf stat without these tells the whole"
_KEYS = KeyPatterns(
    measurements=("{event,counter-value,unit,event-runtime,pcnt-running,variance}",),
    decoration=("{metric-value,metric-unit,metric-threshold,metricgroup}",),
)


class Count(NamedTuple):
    """One event that perf was to count."""

    value: str
    """A number, `<not supported>` by this system, or `<not counted>`: a program may end before its turn."""
    unit: str
    """`msec` of task-clock; empty for a plain count."""
    event: str
    percent: str
    error: str = ""
    """Standard error of the mean of several runs, in per cent."""
    runs: int = 1

    @property
    def spread(self) -> Spread | None:
        """What the runs scatter, where this is the mean of several."""
        if not self.error or self.runs < 2 or not self.is_counted:
            return None
        value = float(self.value)
        half_unit = 0.5 * 10.0 ** -len(self.value.partition(".")[2])
        places = len(self.error.partition(".")[2])
        return Spread(self.runs, value * float(self.error) / 100, half_unit, value * 0.005 * 10.0**-places)

    @property
    def is_counted(self) -> bool:
        """Whether there is a number."""
        return self.value not in (NOT_SUPPORTED, _NOT_COUNTED)

    @property
    def takes_turns(self) -> bool:
        """Whether it was counted a part of the time only: the value is scaled up."""
        return not _PERCENT.fullmatch(self.percent) or float(self.percent) < _WHOLE


class PerfStat:
    """Events that were counted, and times."""

    name = "perf-stat"
    summary = "perf stat, with -x, or -j or neither, on standard output or error"
    columns = (
        Column("the event's name", "", Direction.LOWER),
        Column("task-clock", "ms", Direction.LOWER),
        Column("time elapsed", "s", Direction.LOWER),
        Column("user", "s", Direction.LOWER),
        Column("sys", "s", Direction.LOWER),
    )
    remarks = (
        "every event that was counted; fewer count as better. Events that were not, that took turns and "
        "are scaled, and lines that are not understood are told; of several runs "
        "(`-r`) the scatter is kept. Parts (`-I`, `-A`, `--per-…`), an event "
        "that is there twice, and points that may be decimal or group digits are refused"
    )
    of_groups = False
    begins = (rf"^ *{_HEADING}",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only perf stat prints."""
        return (
            _HEADING in text
            or '"counter-value"' in text
            or any(_csv_fields(line)[1] for line in _lines(text[:_HEAD]))
        )

    def read(self, text: str) -> Report:
        """A metric for each event. Raises OutputDamaged, OutputEmpty."""
        if len(text) > _LARGEST:
            problem = "it is longer than any report of perf stat"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        counts = list(self._counts(text))
        for name, times in Counter(count.event for count in counts).items():
            if times > 1:
                problem = f"it is there {times} times; {_NO_PART}"
                raise OutputDamaged(format=self.name, where=name, problem=problem)
        read = tuple(
            Measured(
                row.event,
                (measured(row.value, self.name, row.event),),
                _UNITS.get(row.unit, row.unit),
                Direction.LOWER,
                spread=row.spread,
            )
            for row in counts
            if row.is_counted
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no event was counted")
        command = _COMMAND.search(text)
        conditions = {"command": command["command"]} if command else {}
        return Report(read, notes=(*self._left_over(text), *_notes(counts, text)), conditions=conditions)

    def _left_over(self, text: str) -> Iterator[Note]:
        """Lines that hold no counts: of a table below its heading, of CSV with its commas."""
        if _HEADING in text:
            lines = [line for line in _below_heading(text) if line.strip()]
            left = [
                line
                for line in lines
                if not (_ROW.match(line) or _ELAPSED.match(line) or _DECORATION.fullmatch(line))
            ]
            yield from told(left, len(lines))
            if not any(_ELAPSED.match(line) and "elapsed" in line for line in lines):
                yield Note("it does not tell the time elapsed: it may be cut short")
        elif '"counter-value"' in text:
            lines = [line for line in _lines(text) if "{" in line or "}" in line]
            yield from told([line for line in lines if '{"' not in line or "}" not in line], len(lines))
            yield from _KEYS.remainder(json_objects(text, self.name))
        else:
            lines = [line for line in _lines(text) if max(map(line.count, _SEPARATORS)) >= _FEWEST_SEPARATORS]
            left = [line for line in lines if not _csv_fields(line)[1] and not _METRIC_ONLY.fullmatch(line)]
            yield from told(left, len(lines))

    def _counts(self, text: str) -> Iterator[Count]:
        if '"counter-value"' in text:
            yield from self._of_json(text)
        elif _HEADING in text:
            yield from self._of_table(text)
        else:
            yield from csv_counts(text, self.name)

    def _of_json(self, text: str) -> Iterator[Count]:
        for json_object in json_objects(text, self.name):
            event = text_of(json_object.get("event"))
            if not event:
                continue  # a further metric of the event before
            if _PARTS & json_object.keys():
                raise OutputDamaged(format=self.name, where=event, problem=_NO_PART)
            value = text_of(json_object.get("counter-value"))
            yield Count(
                value,
                text_of(json_object.get("unit")),
                event,
                str(finite(json_object.get("pcnt-running")) or 0),
            )

    def _of_table(self, text: str) -> Iterator[Count]:
        if text.count(_HEADING) > 1:
            problem = f"there are {text.count(_HEADING)} reports: it is not clear which of them counts"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        match = _RUNS.search(text)
        runs = int(match["runs"]) if match else 1
        for line in _below_heading(text):
            if match := _ELAPSED.match(line):
                yield Count(match["value"], "s", match["what"], "100", match["error"] or "", runs)
            elif match := _ROW.match(line):
                unit = match["unit"] or match["old_unit"] or ""
                value = self._value(match["value"], unit, match["event"])
                yield Count(
                    value, unit, match["event"], match["percent"] or "100", match["error"] or "", runs
                )

    def _value(self, value: str, unit: str, event: str) -> str:
        """Raises OutputDamaged: 4.982 of a count is 4982 in another language."""
        value = re.sub(_GROUP, "", value) if value not in (NOT_SUPPORTED, _NOT_COUNTED) else value
        if not unit and _GROUPED_BY_POINTS.fullmatch(value):
            problem = f"{value} groups digits by points: run perf with LC_ALL=C"
            raise OutputDamaged(format=self.name, where=event, problem=problem)
        return _plain(value)


def _below_heading(text: str) -> list[str]:
    """The lines of the table, in English where they show that commas are decimal, or that points group."""
    lines = _lines(text[text.index(_HEADING) :])[1:]
    points = any(map(_POINT.search, lines))
    foreign = any(map(_COMMA.search, lines)) or any(map(_POINTS.match, lines))
    return [_in_english(line) for line in lines] if foreign and not points else lines


def _in_english(line: str) -> str:
    """`1.101,01 msec` is `1101.01 msec`: what grouped digits goes, commas become points."""
    return _NUMBER.sub(lambda number: re.sub(_NO_DIGIT, "", number[0]).replace(",", "."), line)


def csv_counts(text: str, format: str = "") -> Iterator[Count]:
    """What `perf stat -x` printed; other lines are passed over.

    `format`: what OutputDamaged names where lines tell parts of the run; empty: these are passed over.
    """
    for line in _lines(text):
        parts, fields = _csv_fields(line)
        if parts and format:
            problem = f"{_NO_PART}. Or its numbers have decimal commas: run it with LC_ALL=C"
            raise OutputDamaged(format=format, where=f"the line {line[:60]!r}", problem=problem)
        if fields and not parts:
            yield Count(fields[0], fields[1], fields[2], fields[4])


def _lines(text: str) -> list[str]:
    """Those that perf may have printed."""
    return [line for line in lines_of(text) if len(line) < _LONGEST_LINE]


def _csv_fields(line: str) -> tuple[int, list[str]]:
    """How many fields stand before the value; then value, unit, event, time, per cent, or nothing."""
    for separator in filter(line.count, _SEPARATORS):
        fields = line.strip(" \0").split(separator)
        for parts in range(_MOST_PARTS + 1):
            # -r has the spread of the runs before the time.
            counted = [field for at, field in enumerate(fields[parts:]) if at != 3 or not field.endswith("%")]
            if _is_count(counted):
                return parts, counted
    return 0, []


def _is_count(fields: list[str]) -> bool:
    if len(fields) < 5:
        return False
    value, unit, event, time, percent = fields[:5]
    numbers = value in (NOT_SUPPORTED, _NOT_COUNTED) or re.fullmatch(r"[0-9]+([.,][0-9]+)?", value)
    names = re.fullmatch(r"[A-Za-z]*", unit) and re.match(r"[A-Za-z]", event)
    return bool(numbers and names and time.isdigit() and _PERCENT.fullmatch(percent))


def _plain(value: str) -> str:
    """Without the commas that group digits by threes (LC_NUMERIC=en_US.UTF-8).

    perf prints no decimals, or two, six or nine: three digits behind a comma are a group in any language.
    """
    return value.replace(",", "") if re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", value) else value


def _some(events: list[str]) -> str:
    more = f" and {len(events) - _SHOWN} more" if len(events) > _SHOWN else ""
    return f"{', '.join(events[:_SHOWN])}{more}"


def _notes(counts: list[Count], text: str) -> Iterator[Note]:
    if missing := [count.event for count in counts if not count.is_counted]:
        yield Note(f"perf did not count {_some(missing)}")
    shared = [count.event for count in counts if count.is_counted and count.takes_turns]
    if shared:
        yield Note(f"there were not counters enough: these took turns, and are scaled up: {_some(shared)}")
    if re.search(r"^[^\s#]{1,99}[0-9]%[,;:|\t][0-9]+[,;:|\t]", text, re.MULTILINE):
        text = "the means of several runs: of how many is not told, and so their scatter is lost"
        yield Note(text, "perf stat -r without -x tells both; ktrial repeats by itself: repeats = 5")
    elif (match := _RUNS.search(text)) and int(match["runs"]) > 1:
        yield Note(f"the means of {match['runs']} runs", "ktrial repeats by itself: repeats = 5")


FORMAT = PerfStat()
