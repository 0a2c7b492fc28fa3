"""What an installed program reports, read as everybody's outputs are: by a format of `program_outputs`."""

from collections.abc import Callable
from dataclasses import dataclass

from ktrial import program_outputs
from ktrial.program_outputs import OutputError, Report, Told
from ktrial.workloads.adapter import Settings


@dataclass(frozen=True)
class Reported:
    """Those metrics of a format that a workload promises."""

    format: str
    """`fio-json`, as `ktrial workload formats` names it."""
    required: tuple[str, ...] = ()
    """Metrics without which a report is of no use."""
    optional: tuple[str, ...] = ()
    """Metrics that it need not have."""
    of: Callable[[Settings], str] | None = None
    """What was to be measured, as the report names it; None: it has to be one thing, whatever its name."""

    def __call__(self, output: str, settings: Settings) -> dict[str, float | list[float]]:
        """Metric → its numbers. Raises ValueError where it is damaged, failed, or of something else."""
        report = self._report(output)
        for failure in report.failures:
            raise ValueError(failure.text)
        self._check_what_it_is_of(report, settings)
        told = {each.metric: list(each.values) for each in report.measured}
        if missing := [name for name in self.required if name not in told]:
            raise ValueError(f"there is no {', no '.join(missing)} in it; it tells: {', '.join(told)}")
        return {name: told[name] for name in (*self.required, *self.optional) if name in told}

    def notes(self, output: str) -> tuple[Told, ...]:
        """What is to be known about a report that could be read: transactions that failed."""
        return self._report(output).notes

    def _report(self, output: str) -> Report:
        format = program_outputs.find(self.format)
        try:
            return format.read(output)
        except OutputError as error:
            raise ValueError(error.message.removesuffix(".")) from None

    def _check_what_it_is_of(self, report: Report, settings: Settings) -> None:
        things = dict.fromkeys(each.of for each in report.measured)
        wanted = {self.of(settings)} if self.of else set(list(things)[:1])
        if things.keys() - wanted:
            raise ValueError(f"it tells of {', '.join(things)}, where {', '.join(wanted)} is meant")
