"""hyperfine --export-json: every command's times."""

from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Report, Told, distinct
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import finite, has_keys, json_report, objects_of, text_of

_TIME = Column("time", "s", Direction.LOWER)
_MEND = "a command that fails does something else than one that works: mend it first"


class Hyperfine:
    """Times in seconds. hyperfine runs all runs of one command before the next: that is the run order."""

    name = "hyperfine"
    summary = "hyperfine --export-json"
    columns = (_TIME,)
    remarks = (
        "every run of every command. Runs that ended with an error are left out and told. Times that "
        "hyperfine gives as nothing, because the shell's start took longer (`-N` runs without one), are "
        "told"
    )
    of_groups = True

    def recognises(self, text: str) -> bool:
        """Whether it has what only hyperfine writes."""
        return has_keys(text, "results", "command")

    def read(self, text: str) -> Report:
        """A metric for each command. Raises OutputDamaged, OutputEmpty."""
        results = objects_of(json_report(text, self.name).get("results"), self.name, "results")
        names = distinct([text_of(each.get("command")) or "command" for each in results])
        commands = [self._command(name, result) for name, result in zip(names, results, strict=True)]
        measured = tuple(each for each in commands if each.values)
        failures = tuple(_failures(commands))
        if not measured:
            problem = "; ".join(each.text for each in failures) or "there is no result"
            raise OutputEmpty(format=self.name, problem=problem)
        return Report(measured, failures, tuple(_notes(measured)))

    def _command(self, name: str, result: dict[str, Any]) -> Measured:
        """A command's times; no values where all of its runs failed, or it has none."""
        times = result.get("times")
        values = [finite(time) for time in times] if isinstance(times, list) else []
        codes = result.get("exit_codes")
        failures = [code != 0 for code in codes] if isinstance(codes, list) else []
        failures += [False] * (len(values) - len(failures))
        kept = tuple(
            value for value, bad in zip(values, failures, strict=False) if value is not None and not bad
        )
        if any(value < 0 for value in kept):
            raise OutputDamaged(format=self.name, where=name, problem="a time is below 0")
        parameters = result.get("parameters")
        given = (
            {str(key): str(value) for key, value in parameters.items()}
            if isinstance(parameters, dict)
            else {}
        )
        return Measured(_TIME.metric, kept, _TIME.unit, _TIME.direction, name, len(values) - len(kept), given)


def _failures(commands: list[Measured]) -> list[Told]:
    told = [
        f"all {each.failed} runs of {each.of} ended with an error: it is left out"
        if each.failed
        else f"{each.of} has no times: it is left out"
        for each in commands
        if not each.values
    ]
    if failed := sum(each.failed for each in commands if each.values):
        told.append(f"{failed} runs ended with an error; their times are left out")
    return [Told(text, _MEND) for text in told]


def _notes(commands: tuple[Measured, ...]) -> list[Told]:
    advice = "hyperfine -N starts the command without a shell"
    return [
        Told(f"{each.of}: {zeros} of its {len(each.values)} times are 0: faster than a shell's start", advice)
        for each in commands
        if (zeros := each.values.count(0.0))
    ]


FORMAT = Hyperfine()
