"""perf stat: its table for people, CSV (-x) and JSON (-j) (tools/perf/Documentation/perf-stat.txt)."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
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
_ROW = re.compile(
    r"^ {2,}(?P<value><not supported>|<not counted>|\S+)\s+"
    r"(?:(?P<unit>msec|Joules|[KMG]iB|C|Watts) +)?(?P<event>\S+)"
    r"\s*(?:#.*?)?(?:\( \+-\s*\S+ \))?\s*(?:\((?P<percent>[0-9.]+)%\))?\s*$"
)
_ELAPSED = re.compile(r"^ +(?P<value>\S+)(?: \+- \S+)? seconds (?P<what>time elapsed|user|sys)\b")
_SEPARATORS = ",;:|\t"
_PERCENT = re.compile(r"[0-9]+(\.[0-9]+)?")
_MOST_PARTS = 2
"""Fields before the value where it is one of a part of the run: a time, a CPU, a socket and its CPUs."""
_NO_PART = "it tells parts of the run (-I, -A, --per-…): perf stat without these tells the whole"


class Count(NamedTuple):
    """One event that perf was to count."""

    value: str
    """A number, `<not supported>` by this system, or `<not counted>`: a program may end before its turn."""
    unit: str
    """`msec` of task-clock; empty for a plain count."""
    event: str
    percent: str

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
        "are scaled, and means of several runs (`-r`) are told. Parts (`-I`, `-A`, `--per-…`), an event "
        "that is there twice, and decimal commas are refused"
    )
    of_groups = False

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
            )
            for row in counts
            if row.is_counted
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no event was counted")
        return Report(read, notes=tuple(_notes(counts, text)))

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
        for line in _lines(text[text.index(_HEADING) :])[1:]:
            if match := _ELAPSED.match(line):
                yield Count(match["value"], "s", match["what"], "100")
            elif match := _ROW.match(line):
                unit = match["unit"] or ""
                yield Count(_plain(match["value"], unit), unit, match["event"], match["percent"] or "100")


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


def _plain(value: str, unit: str) -> str:
    """Without the commas that group the digits of whole numbers by threes (LC_NUMERIC=en_US.UTF-8).

    perf prints counts without decimals and what has a unit with them: else it is another language's.
    """
    grouped = r"[0-9]{1,3}(,[0-9]{3})+" + (r"\.[0-9]+" if unit else "")
    return value.replace(",", "") if re.fullmatch(grouped, value) else value


def _notes(counts: list[Count], text: str) -> Iterator[Note]:
    if missing := [count.event for count in counts if not count.is_counted]:
        yield Note(f"perf did not count {', '.join(missing)}")
    shared = [count.event for count in counts if count.is_counted and count.takes_turns]
    if shared:
        yield Note(
            f"there were not counters enough: these took turns, and are scaled up: {', '.join(shared)}"
        )
    if re.search(r"\(\d+ runs\):|^[^\s#]{1,99}[0-9]%[,;:|\t][0-9]+[,;:|\t]", text, re.MULTILINE):
        yield Note(
            "the means of several runs: how these scatter is lost", "ktrial repeats them itself: repeats = 5"
        )


FORMAT = PerfStat()
