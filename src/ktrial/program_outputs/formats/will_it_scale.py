"""will-it-scale's samples (antonblanchard/will-it-scale, main.c): operations in each second."""

import re

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, the_only

_RATE = Column("operations", "1/s", Direction.HIGHER)
_SAMPLE = r"min:(\d+) max:(\d+) total:(\d+)"
_LINES = LinePatterns(
    measurements=(_SAMPLE, r"average:\d+"),
    conditions=(r"testcase:(?P<test>\S.*)",),
    decoration=(r"warmup|measurement|.*_(?:processes|threads)(?: .*)?",),
)


class WillItScale:
    """The mean of all samples."""

    name = "will-it-scale"
    summary = "will-it-scale's TEST_processes or TEST_threads -t N -s SAMPLES, on standard output"
    columns = (_RATE,)
    remarks = (
        "the average over all tasks, which has to be that of the samples after the warm-up. How many tasks "
        "there were it does not say"
    )
    of_groups = False
    begins = (r"^testcase:",)

    def recognises(self, text: str) -> bool:
        """Whether it has a sample and the average, or begins with a test case."""
        return bool(re.search(rf"^{_SAMPLE}$", text, re.MULTILINE)) and (
            "average:" in text or text.lstrip().startswith("testcase:")
        )

    def read(self, text: str) -> Report:
        """The average. Raises OutputDamaged, OutputEmpty."""
        average = measured(the_only(r"^average:(\S+)$", text, self.name), self.name, "average")
        _, warm_up, after = text.partition("measurement\n")
        samples = re.findall(rf"^{_SAMPLE}$", after if warm_up else text, re.MULTILINE)
        if not samples or not average:
            raise OutputEmpty(format=self.name, problem="there is no sample with an operation")
        totals = [int(total) for _, _, total in samples]
        if sum(totals) // len(totals) != average:
            problem = (
                f"it is {average:g}, and that of the {len(totals)} samples is {sum(totals) // len(totals)}"
            )
            raise OutputDamaged(format=self.name, where="average", problem=problem)
        for least, most, total in samples:
            if not int(least) <= int(most) <= int(total):
                problem = f"{least} to {most} of a task are not {total} together"
                raise OutputDamaged(format=self.name, where="total", problem=problem)
        note = Note(f"the {len(totals)} samples of one process are one run", "run it several times")
        read = Measured(_RATE.metric, (average,), _RATE.unit, _RATE.direction)
        return Report((read,), notes=(note, *_LINES.remainder(text)), conditions=_LINES.conditions_of(text))


FORMAT = WillItScale()
