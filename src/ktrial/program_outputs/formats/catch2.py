"""Catch2's benchmarks: its XML reporter, and its report for people (src/catch2/reporters of Catch2)."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import measured
from ktrial.program_outputs.units import converted
from ktrial.text_lines import lines_of

_TIME = Column("time", "ns", Direction.LOWER)
_HEADING = "benchmark name"
_SAMPLES = re.compile(r"(?P<name>.*\S)\s+(?P<samples>\d+)\s+(?P<iterations>\d+)\s+[0-9.]+ (?:ns|us|ms|s|m)")
_THREE = r"\s+([0-9.]+) (ns|us|ms|s|m)\s+([0-9.]+) (ns|us|ms|s|m)\s+([0-9.]+) (ns|us|ms|s|m)"
_MEAN = re.compile(rf"(?P<more>.*?){_THREE}")
_RULE = re.compile(r"-{20,}")
_LONGEST_LINE = 300
_SECONDS = {"m": "min"}


class Catch2:
    """The mean of each benchmark's samples, which are of one process."""

    name = "catch2"
    summary = "a Catch2 program, with --reporter xml or without, on standard output"
    columns = (_TIME,)
    remarks = (
        "the mean of each benchmark, with its test case where a name is there twice: one value. "
        "Means printed as 0 are left out, and told. A mean outside its own interval is refused"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether there are benchmarks of Catch2's in it."""
        return "<BenchmarkResults " in text or (
            re.search(r"^benchmark name +samples +iterations +est", text, re.MULTILINE) is not None
        )

    def read(self, text: str) -> Report:
        """A time for each benchmark. Raises OutputDamaged, OutputEmpty."""
        results = list(self._xml(text) if "<BenchmarkResults " in text else self._text(text))
        alike = Counter(name for _, name, _ in results)
        rows = [(f"{path}: {name}" if alike[name] > 1 else name, mean) for path, name, mean in results]
        names = [name for name, _ in rows]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise OutputDamaged(format=self.name, where=twice, problem="it is there twice")
        read = tuple(
            Measured(_TIME.metric, (mean,), _TIME.unit, _TIME.direction, name) for name, mean in rows if mean
        )
        if not read:
            raise OutputEmpty(format=self.name, problem="no benchmark has a mean above 0")
        notes = tuple(
            Note(f"{name}: its mean is printed as 0: it is left out") for name, mean in rows if not mean
        )
        return Report(read, notes=notes)

    # --- XML. Nanoseconds.

    def _xml(self, text: str) -> Iterator[tuple[str, str, float]]:
        try:
            root: Element = fromstring(text[text.index("<") :].strip(), forbid_dtd=True)
        except (ParseError, DefusedXmlException) as error:
            raise OutputDamaged(format=self.name, where="the whole", problem=f"no XML: {error}") from error
        if root.tag == "BenchmarkResults":  # it was cut out of a report
            yield self._result(root, "", root.get("name", ""))
            return
        cases = [(case, case.get("name", "")) for case in root.iter("TestCase")]
        results = [result for case, path in cases for result in self._within(case, path)]
        if lost := sum(1 for _ in root.iter("BenchmarkResults")) - len(results):
            problem = f"{lost} of its benchmarks are in no test case and no section of one"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        yield from results

    def _within(self, element: Element, path: str) -> Iterator[tuple[str, str, float]]:
        for child in element:
            if child.tag == "Section":
                yield from self._within(child, f"{path}/{child.get('name', '').strip()}")
            elif child.tag == "BenchmarkResults":
                yield self._result(child, path, child.get("name", ""))

    def _result(self, element: Element, path: str, name: str) -> tuple[str, str, float]:
        mean = element.find("mean")
        if mean is None:
            raise OutputDamaged(format=self.name, where=name, problem="it has no mean: did it fail?")
        return (
            path,
            name,
            self._checked(name, *(mean.get(key, "") for key in ("lowerBound", "value", "upperBound"))),
        )

    # --- Text.

    def _text(self, text: str) -> Iterator[tuple[str, str, float]]:
        """Three lines a benchmark: name and samples, mean, deviation; above, a test case between rules."""
        lines = [line.rstrip()[:_LONGEST_LINE] for line in lines_of(text)]
        path, name = "", ""
        for at, line in enumerate(lines):
            if _RULE.fullmatch(line) and at + 2 < len(lines) and not lines[at - 1].startswith(" "):
                path = "/".join(_title(lines[at + 1 :])) or path
            elif match := _SAMPLES.fullmatch(line):
                if name:
                    raise OutputDamaged(format=self.name, where=name, problem="it has no mean")
                name = match["name"].strip()
            elif name and (match := _MEAN.fullmatch(line)):
                full = " ".join(filter(None, (name, match["more"].strip())))
                self._check_deviation(full, lines[at + 1] if at + 1 < len(lines) else "")
                yield path, full, self._times(full, match)
                name = ""
            elif name and line.strip():
                raise OutputDamaged(format=self.name, where=name, problem=f"{line.strip()!r} is no mean")
            elif line.strip() and re.fullmatch(rf".*?{_THREE}", line) and not _is_after_mean(lines, at):
                raise OutputDamaged(
                    format=self.name, where=f"line {at + 1}", problem="these times have no name"
                )
        if name:
            raise OutputDamaged(format=self.name, where=name, problem="it is cut short")

    def _check_deviation(self, name: str, line: str) -> None:
        if not re.fullmatch(rf".*?{_THREE}", line):
            raise OutputDamaged(format=self.name, where=name, problem="its standard deviation is not there")

    def _times(self, name: str, match: re.Match[str]) -> float:
        mean, low, high = (
            converted(
                measured(match[at], self.name, name), _SECONDS.get(match[at + 1], match[at + 1]), _TIME.unit
            )
            for at in (2, 4, 6)
        )
        return self._checked(name, str(low), str(mean), str(high))

    def _checked(self, name: str, low: str, mean: str, high: str) -> float:
        """The mean, which lies in its interval."""
        numbers = [measured(text, self.name, f"{name}, mean") for text in (low, mean, high)]
        least, value, most = numbers
        inside = least <= value <= most or math.isclose(value, least) or math.isclose(value, most)
        if not inside:
            problem = f"its mean is {value:g} ns, outside its interval from {least:g} to {most:g}"
            raise OutputDamaged(format=self.name, where=name, problem=problem)
        return value


def _title(lines: list[str]) -> list[str]:
    """The test case and its sections: lines up to the next rule; none where a table stands there."""
    title: list[str] = []
    for line in lines:
        if _RULE.fullmatch(line):
            return title
        if not line.strip() or _SAMPLES.fullmatch(line) or len(line) - len(line.lstrip()) > len(line) // 2:
            return []
        title.append(line.strip())
    return []


def _is_after_mean(lines: list[str], at: int) -> bool:
    """Whether it is the line of deviations: the one before is a mean, and the one before that has samples."""
    return at > 1 and bool(_SAMPLES.fullmatch(lines[at - 2])) and bool(_MEAN.fullmatch(lines[at - 1]))


FORMAT = Catch2()
