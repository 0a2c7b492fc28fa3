"""vmstat's samples (procps 3.3 and later, with -w, -t, -n): what the machine did."""

from collections.abc import Iterator

from ktrial.program_outputs import Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import told
from ktrial.program_outputs.machine_load import COLUMNS, QUEUE, SWAPPED, SWITCHES, Sample, report
from ktrial.program_outputs.reading import number
from ktrial.text_lines import lines_of

_SUMS = {
    "CPU user": ("us", "gu"),
    "CPU system": ("sy",),
    "I/O wait": ("wa",),
    "steal": ("st",),
    "CPU idle": ("id",),
    QUEUE: ("r",),
    SWITCHES: ("cs",),
    SWAPPED: ("si", "so"),
}
_NEEDED = {"r", "us", "sy", "id", "wa", "cs"}
_LONGEST = 400


class Vmstat:
    """The means of all samples but the first, which is of the time since the boot."""

    name = "vmstat"
    summary = "vmstat 1 10, with -w, -t or -n"
    columns = COLUMNS
    remarks = (
        "means of all samples but the first, which is of the time since the boot. In `ktrial analyze` they "
        "are conditions of results with the same label, unless `--value` names one"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether it has vmstat's heading."""
        return "swpd" in text and any(_is_heading(line) for line in _lines(text))

    def read(self, text: str) -> Report:
        """The means. Raises OutputDamaged, OutputEmpty."""
        if "swpd" not in text:
            raise OutputEmpty(format=self.name, problem="vmstat's heading is not in it")
        names, samples, left = list[str](), list[Sample](), list[str]()
        for at, line in enumerate(_lines(text)):
            if _is_heading(line):
                heading = line.split()
                if names and heading != names:
                    problem = "its columns are others than those above"
                    raise OutputDamaged(format=self.name, where=f"line {at + 1}", problem=problem)
                names = heading
            elif names and (numbers := _numbers(line, names)):
                samples.append(Sample(_named(numbers), f"line {at + 1}"))
            elif line and not line.startswith(("procs ", "--procs--", "-----")):
                left.append(line)
        return report(self.name, samples[1:], tuple(told(left, len(samples) + len(left))))


def _is_heading(line: str) -> bool:
    return line.lstrip().startswith("r ") and set(line.split()) >= _NEEDED


def _numbers(line: str, names: list[str]) -> dict[str, float] | None:
    """By the names of the columns; behind them may stand a time."""
    cells = line.split()
    columns = [name for name in names if name.islower()]
    values = [number(cell) for cell in cells[: len(columns)]]
    if len(values) < len(columns) or len(cells) > len(columns) + 2:
        return None
    read = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
    return read if len(read) == len(columns) and min(read.values()) >= 0 else None


def _named(numbers: dict[str, float]) -> dict[str, float]:
    return {
        name: sum(numbers.get(key, 0.0) for key in keys)
        for name, keys in _SUMS.items()
        if any(key in numbers for key in keys)
    }


def _lines(text: str) -> Iterator[str]:
    return (line.rstrip() if len(line) < _LONGEST else "" for line in lines_of(text))


FORMAT = Vmstat()
