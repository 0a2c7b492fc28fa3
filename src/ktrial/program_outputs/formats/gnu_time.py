"""What GNU time prints of a command: in two lines, with -v, or with -p, as POSIX has it."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_ELAPSED = Column("time elapsed", "s", Direction.LOWER)
_USER = Column("user", "s", Direction.LOWER)
_SYSTEM = Column("sys", "s", Direction.LOWER)
_MEMORY = Column("memory", "KiB", Direction.LOWER)
_CLOCK = r"(?:\d+:)?\d+:\d\d(?:\.\d\d)?"
_SHORT = (
    rf"(?P<user>[0-9.]+)user (?P<system>[0-9.]+)system (?P<elapsed>{_CLOCK})elapsed (?:[0-9?]+%CPU|\?%CPU) "
    r"\(\d+avgtext\+\d+avgdata (?P<memory>\d+)maxresident\)k"
)
_VERBOSE = "Elapsed (wall clock) time"
_LINES = LinePatterns(
    measurements=(
        _SHORT,
        r"\s+(?:User|System) time \(seconds\): [0-9.]+",
        rf"\s+Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): {_CLOCK}",
        r"\s+Maximum resident set size \(kbytes\): \d+",
        r"(?:real|user|sys) [0-9.]+",
    ),
    conditions=(r"\s+Command being timed: \"(?P<command>.*)\"",),
    failures=(r"Command (?:exited with non-zero status|terminated by signal) \d+", r"\s+Exit status: \d+"),
    decoration=(
        r"\d+inputs\+\d+outputs \(\d+major\+\d+minor\)pagefaults \d+swaps",
        r"\s+(?:Percent of CPU this job got|Average .* size \(kbytes\)|Page size \(bytes\)|Swaps): .*",
        r"\s+(?:Major|Minor) \(.*\) page faults: \d+|\s+(?:Voluntary|Involuntary) context switches: \d+",
        r"\s+(?:File system (?:in|out)puts|Socket messages (?:sent|received)|Signals delivered): \d+",
    ),
)


class GnuTime:
    """Times, and the most memory, of a command."""

    name = "gnu-time"
    summary = "/usr/bin/time COMMAND, with -v, -p or neither, on standard error: sh -c 'time -v COMMAND 2>&1'"
    columns = (_ELAPSED, _USER, _SYSTEM, _MEMORY)
    remarks = (
        "times printed as 0 are left out. A command that failed is refused. -f prints a form of one's own"
    )
    of_groups = False
    begins = (r"^[0-9.]+user ", r"^\s+Command being timed:", r"^real [0-9.]+$")

    def recognises(self, text: str) -> bool:
        """Whether it begins as one of its three forms: what a program printed above is the program's."""
        begins = r"\s*(?:Command (?:exited|terminated) .*\n\s*)?"
        forms = (
            r"[0-9.]+user [0-9.]+system |Command being timed: |real [0-9.]+\nuser [0-9.]+\nsys [0-9.]+\s*\Z"
        )
        return bool(re.match(f"{begins}(?:{forms})", text))

    def read(self, text: str) -> Report:
        """The command's times. Raises OutputDamaged, OutputEmpty."""
        if match := re.search(
            r"^Command (exited with non-zero status|terminated by signal) \d+", text, re.MULTILINE
        ):
            raise OutputEmpty(format=self.name, problem=f"the command failed: {match[0]}")
        values = dict(self._verbose(text) if _VERBOSE in text else self._short(text))
        read = tuple(
            Measured(column.metric, (value,), column.unit, column.direction)
            for column, value in values.items()
            if value
        )
        if not values.get(_ELAPSED):
            raise OutputEmpty(format=self.name, problem="it took less than it can tell, 0.01 s")
        return Report(read, notes=tuple(_LINES.remainder(text)), conditions=_LINES.conditions_of(text))

    def _short(self, text: str) -> Iterator[tuple[Column, float]]:
        rows = re.findall(rf"^{re.sub('[?]P<[a-z]+>', '', _SHORT)}$", text, re.MULTILINE)
        if not rows:
            for column, name in ((_ELAPSED, "real"), (_USER, "user"), (_SYSTEM, "sys")):
                yield column, measured(the_only(rf"^{name} (\S+)$", text, self.name), self.name, name)
            return
        if len(rows) > 1:
            problem = f"it is there {len(rows)} times: it is not clear which of them counts"
            raise OutputDamaged(format=self.name, where="elapsed", problem=problem)
        user, system, elapsed, memory = rows[0]
        yield _ELAPSED, self._seconds(elapsed)
        yield _USER, measured(user, self.name, "user")
        yield _SYSTEM, measured(system, self.name, "system")
        yield _MEMORY, measured(memory, self.name, "maxresident")

    def _verbose(self, text: str) -> Iterator[tuple[Column, float]]:
        status = only(r"^\s+Exit status: (\d+)$", text, self.name)
        if status is None or status != "0":
            problem = (
                "it does not tell how the command ended"
                if status is None
                else f"the command ended with {status}"
            )
            raise OutputEmpty(format=self.name, problem=problem)
        elapsed = the_only(r"^\s+Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): (\S+)$", text, self.name)
        yield _ELAPSED, self._seconds(elapsed)
        for column, name in (
            (_USER, r"User time \(seconds\)"),
            (_SYSTEM, r"System time \(seconds\)"),
            (_MEMORY, r"Maximum resident set size \(kbytes\)"),
        ):
            yield (
                column,
                measured(the_only(rf"^\s+{name}: (\S+)$", text, self.name), self.name, column.metric),
            )

    def _seconds(self, clock: str) -> float:
        """Of `1:02:03` or `2:03.45`. Raises OutputDamaged."""
        if not re.fullmatch(_CLOCK, clock):
            raise OutputDamaged(format=self.name, where="elapsed", problem=f"{clock!r} is no time")
        seconds = 0.0
        for part in clock.split(":"):
            seconds = 60 * seconds + float(part)
        return seconds


FORMAT = GnuTime()
