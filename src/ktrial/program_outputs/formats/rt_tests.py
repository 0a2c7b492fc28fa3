"""What rt-tests' other programs print: pairs of threads, signaltest, oslat, pi_stress, hwlatdetect."""

import re
from collections.abc import Iterator, Sequence

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only
from ktrial.text_lines import lines_of

_MEAN = Column("latency", "µs", Direction.LOWER)
_WORST = Column("worst latency", "µs", Direction.LOWER)
_INVERSIONS = Column("inversions", "", Direction.HIGHER)
_OVER = Column("samples over threshold", "", Direction.LOWER)
_PAIR = re.compile(
    r"#(?P<sender>\d+): ID-?\d+, P(?P<priority>\d+), (?:CPU\d+, )?I(?P<interval>\d+); "
    r"#(?P<receiver>\d+): ID-?\d+, P\d+, (?:CPU\d+, )?(?:TO \d+, )?Cycles (?P<cycles>\d+)\s*"
)
_RESULT = re.compile(
    r"#(?P<receiver>\d+) -> #(?P<sender>\d+), Min +(?P<min>-?\d+), Cur +-?\d+, Avg +(?P<avg>-?\d+), "
    r"Max +(?P<max>-?\d+)"
)
_THREAD = re.compile(
    r"T: *(?P<thread>\d+) \( *\d+\)(?: P: *(?P<priority>\d+)| I: *(?P<interval>\d+)) C: *(?P<cycles>\d+) "
    r"Min: *(?P<min>\d+) Act: *-?\d+ Avg: *(?P<avg>\d+) Max: *(?P<max>-?\d+)"
)
_ROWS = ("Minimum", "Average", "Maximum", "Duration")
_LINES = LinePatterns(
    measurements=(
        _RESULT.pattern,
        _THREAD.pattern,
        r"\s*(?:Minimum|Average|Maximum|Duration):[\s\d.]+\((?:us|sec)\)",
        r"Total inversion performed: \d+",
        r"Max Latency: (?:\d+us|Below threshold)",
        r"Samples exceeding threshold: \d+",
    ),
    conditions=(
        r"(?P<command>oslat|hwlatdetect) ?(?:V|:) .*",
        r"Total runtime: \s*(?P<duration>\d+ seconds)",
        r"CPU list: \s*(?P<CPUs>\S+)",
        r"Workload: \s*(?P<workload>\S+)",
        r"Test Duration: (?P<duration>.*)",
        r"Number of thread groups: (?P<groups>\d+)",
        r"Test threads using scheduler policy: (?P<policy>\S+)",
        r"\s*CPU list: +(?P<CPUs>\S+)",
        r"\s*Latency threshold: (?P<threshold>\d+us)",
        r"\s*Sample window: +(?P<window>\d+us)",
        r"\s*Sample width: +(?P<width>\d+us)",
    ),
    failures=(r"(?:FATAL|ERROR|Unable to|WARN(?:ING)?: error).*",),
    decoration=(
        _PAIR.pattern,
        r"[\d.]+ [\d.]+ [\d.]+ \d+/\d+ \d+ *",
        r"(?:policy: .*)?loadavg: .*|Using all CPUS|interval: \S+|\s*Tested at .*",
        r"(?:deadline|main) thread .*|thread\[\d+\] runtime=.*",
        r"\s*[\d.]+ \(us\):[\s\d]+(?:\(including overflows\))?|\s*Max-Min:[\s\d.]+\(us\)|\s*Core:[\s\d]+",
        r"\s*Counter Freq:.*|Thread priority:.*|CPU for main thread:.*|Workload mem:.*|Preheat cores:.*",
        r"Pre-heat for .*|Test starts\.\.\.|Test completed\.|\s*\S* ?Inversions: \d+",
        r"Stopp+ing test|Starting PI .*|Press Ctrl-C .*|.* thread (?:SCHED_\w+ )?priority:? +\d+",
        r"\d+ groups of \d+ threads will be created|.*threads running on processor: .*",
        r"(?:\S+ )+priority: +\d+",
        r"\s*detector: .*|\s*parameters:|\s*Non-sampling period: .*|\s*Output File: .*|Starting test",
        r"Duration of test run: .*|Number of inversions per group: .*",
        r"test finished|Samples recorded: \d+|SMIs during run: \d+|\d+ SMIs occured on cpu \d+",
        r"ts: \S+, inner: ?\d+, outer: ?\d+.*|(?:sample data|report) .*|Current Inversions: \d+",
    ),
)
_PROGRAMS = (
    re.compile(r"^#\d+ -> #\d+, Min ", re.MULTILINE),
    re.compile(r"^T: *\d+ \( *\d+\) (?:P: *\d+|I: *\d+) C: ", re.MULTILINE),
    re.compile(r"^ *Counter Freq:\s", re.MULTILINE),
    re.compile(r"^Total inversion performed: ", re.MULTILINE),
    re.compile(r"^Samples exceeding threshold: ", re.MULTILINE),
)
_MARKS = ("T:", " -> #", "Counter Freq:", "Total inversion", "Samples exceeding threshold:")
_Thread = tuple[float, float, float]


class RtTests:
    """What each program is about: the mean and the worst latency, or how many there were of something."""

    name = "rt-tests"
    summary = "rt-tests' other programs on standard output: signaltest, oslat, hwlatdetect, pi_stress …"
    columns = (_MEAN, _WORST, _INVERSIONS, _OVER)
    remarks = (
        "of ptsematest, svsematest, pmqtest, sigwaittest, signaltest, cyclicdeadline and oslat the mean over "
        "all threads and the worst. Of lines that are printed again and again the last count. "
        "hwlatdetect tells no latency below its threshold"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has the result of one of these programs."""
        return any(mark in text for mark in _MARKS) and any(
            pattern.search("\n".join(_plain(text))) for pattern in _PROGRAMS
        )

    def read(self, text: str) -> Report:
        """The numbers. Raises OutputDamaged, OutputEmpty."""
        if not any(mark in text for mark in _MARKS):
            raise OutputEmpty(format=self.name, problem="it has no result of these programs")
        plain = "\n".join(_plain(text))
        if failure := _LINES.failure_of(plain):
            raise OutputEmpty(format=self.name, problem=f"it says {failure}")
        programs = [pattern.search(plain) is not None for pattern in _PROGRAMS]
        if sum(programs) > 1:
            problem = "it has results of several programs"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        if programs[3]:
            read = self._inversions(plain)
        elif programs[4]:
            read = self._hardware(plain)
        else:
            read = self._latencies(self._oslat(plain) if programs[2] else self._threads(plain))
        notes = tuple(_LINES.remainder(plain))
        return Report(read, notes=notes, conditions=_conditions(plain))

    def _latencies(self, threads: Sequence[_Thread]) -> tuple[Measured, ...]:
        samples = sum(count for count, _, _ in threads)
        mean = sum(count * average for count, average, _ in threads) / samples
        worst = max(largest for _, _, largest in threads)
        read = tuple(_of(column, value) for column, value in ((_MEAN, mean), (_WORST, worst)) if value)
        if not read:
            raise OutputEmpty(format=self.name, problem="all latencies are printed as 0")
        return read

    def _threads(self, text: str) -> list[_Thread]:
        """Samples, mean and worst of each thread's last line; of pairs the receiver's."""
        pairs: dict[str, list[int]] = {}
        results: dict[str, list[re.Match[str]]] = {}
        for line in lines_of(text):
            if match := _PAIR.fullmatch(line):
                self._check_growth(pairs.setdefault(match["receiver"], []), int(match["cycles"]), match[0])
            elif match := _RESULT.fullmatch(line):
                results.setdefault(match["receiver"], []).append(match)
            elif match := _THREAD.fullmatch(line):
                cycles = int(match["cycles"])
                self._check_growth(pairs.setdefault(match["thread"], []), cycles, f"thread {match['thread']}")
                results.setdefault(match["thread"], []).append(match)
        if {key: len(lines) for key, lines in pairs.items()} != {
            key: len(lines) for key, lines in results.items()
        }:
            problem = "threads and their results are not told of equally often"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        self._check_numbers(results)
        return [
            self._checked(f"thread {key}", float(pairs[key][-1]), *(last[name] for name in _NUMBERS))
            for key, last in ((key, lines[-1]) for key, lines in results.items())
        ]

    def _check_numbers(self, results: dict[str, list[re.Match[str]]]) -> None:
        """That no thread is missing: receivers are 1, 3, 5; other threads 0, 1, 2; signaltest has two."""
        numbers = sorted(int(key) for key in results)
        lines = [line for of_thread in results.values() for line in of_thread]
        in_pairs = all(line.re is _RESULT for line in lines)
        whole = range(1, 2 * len(numbers), 2) if in_pairs else range(len(numbers))
        of_signaltest = any(line.re is _THREAD and line["priority"] for line in lines)
        if not numbers or numbers != list(whole) or (of_signaltest and len(numbers) < 2):
            problem = f"of threads only {', '.join(map(str, numbers)) or 'none'} are told of"
            raise OutputDamaged(format=self.name, where="threads", problem=problem)

    def _check_growth(self, before: list[int], cycles: int, where: str) -> None:
        """That a line that is there again is a later one."""
        if before and cycles <= before[-1]:
            problem = "it is there again, and its cycles did not grow"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        before.append(cycles)

    def _checked(self, where: str, samples: float, *numbers: str) -> _Thread:
        if not samples:
            raise OutputDamaged(format=self.name, where=where, problem="it has no sample")
        low, mean, worst = (measured(number, self.name, where) for number in numbers)
        if not low <= mean <= worst:
            problem = f"its average is {mean:g}, from {low:g} to {worst:g}"
            raise OutputDamaged(format=self.name, where=where, problem=problem)
        return samples, mean, worst

    def _oslat(self, text: str) -> list[_Thread]:
        """The same of each core: its loops, how long one took, and the longest."""
        cores = the_only(r"^\s*Core:([\s\d]+?)$", text, self.name).split()
        rows = {
            name: the_only(rf"^\s*{name}:([\s\d.]+)\(", text, self.name).split()
            for name in ("Max-Min", *_ROWS)
        }
        if {len(cores)} != {len(row) for row in rows.values()}:
            problem = "its rows tell of different numbers of cores"
            raise OutputDamaged(format=self.name, where="Core", problem=problem)
        threads = []
        for core, *row in zip(cores, *(rows[name] for name in _ROWS), strict=True):
            average, duration = (measured(cell, self.name, f"core {core}") for cell in (row[1], row[3]))
            threads.append(self._checked(f"core {core}", 1e6 * duration / (average or 1), *row[:3]))
            if abs(float(row[2]) - float(row[0]) - float(rows["Max-Min"][len(threads) - 1])) > 1:
                problem = "Max-Min is not the maximum without the minimum"
                raise OutputDamaged(format=self.name, where=f"core {core}", problem=problem)
        return threads

    def _inversions(self, text: str) -> tuple[Measured, ...]:
        number = measured(
            the_only(r"^Total inversion performed: (\d+)$", text, self.name), self.name, "inversions"
        )
        if not number:
            raise OutputEmpty(format=self.name, problem="there was no inversion")
        before = [int(count) for count in re.findall(r"^Current Inversions: (\d+)$", text, re.MULTILINE)]
        if before and number < before[-1]:
            problem = f"{number:g} in all, after {before[-1]}"
            raise OutputDamaged(format=self.name, where="inversions", problem=problem)
        return (_of(_INVERSIONS, number),)

    def _hardware(self, text: str) -> tuple[Measured, ...]:
        """hwlatdetect's: what took the CPU from the kernel."""
        over = measured(
            the_only(r"^Samples exceeding threshold: (\d+)$", text, self.name), self.name, "samples"
        )
        worst = only(r"^Max Latency: (\d+us|Below threshold)$", text, self.name)
        if worst is None or (worst == "Below threshold") != (not over):
            problem = f"{over:g} samples exceed the threshold, and the latency is {worst}"
            raise OutputDamaged(format=self.name, where="Max Latency", problem=problem)
        latency = measured(worst.removesuffix("us"), self.name, "Max Latency") if over else 0.0
        return (_of(_OVER, over), *([_of(_WORST, latency)] if over else []))


_NUMBERS = ("min", "avg", "max")


def _conditions(text: str) -> dict[str, str]:
    """What the lines tell, and of threads how many, with which priority and interval."""
    matches = [
        match for line in lines_of(text) if (match := _PAIR.fullmatch(line) or _THREAD.fullmatch(line))
    ]
    if not matches:
        return _LINES.conditions_of(text)
    threads = {match["receiver"] if match.re is _PAIR else match["thread"] for match in matches}
    kept = {
        name: str(level)
        for name, level in matches[0].groupdict().items()
        if level and name in ("priority", "interval")
    }
    return {"threads": str(len(threads)), **kept}


def _of(column: Column, value: float) -> Measured:
    return Measured(column.metric, (value,), column.unit, column.direction)


def _plain(text: str) -> Iterator[str]:
    """Lines without the codes that move a terminal's cursor."""
    for line in lines_of(text):
        yield re.sub(r"\x1b\[\d*[A-Z]", "", line).rstrip()


FORMAT = RtTests()
