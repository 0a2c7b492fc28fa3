"""hyperfine --export-json: every command's times."""

import math
from decimal import Decimal
from statistics import fmean
from typing import Any

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, distinct
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.reading import finite, has_keys, json_report, objects_of, text_of

_TIME = Column("time", "s", Direction.LOWER)
_ROUNDING = 1e-6
"""What is lost where numbers are printed: hyperfine prints all digits."""
_FEWEST_DIGITS, _MOST_DIGITS = 6, 17
_MEND = "a command that fails does something else than one that works: mend it first"
_BESIDE = ("user", "system")
"""Means of what hyperfine measures of each run besides."""
_KEYS = KeyPatterns(
    measurements=("results/{command,times,exit_codes}",),
    conditions=("results/parameters/*",),
    decoration=("results/{parameter,mean,stddev,median,user,system,min,max,memory_usage_byte}",),
)


class Hyperfine:
    """Times in seconds. hyperfine runs all runs of one command before the next: that is the run order."""

    name = "hyperfine"
    summary = "hyperfine --export-json"
    columns = (_TIME,)
    remarks = (
        "every run of every command. Runs that ended with an error are left out, with a warning. Times that "
        "hyperfine gives as nothing, because the shell's start took longer (`-N` runs without one), are "
        "told"
    )
    of_groups = True

    def recognises(self, text: str) -> bool:
        """Whether it has what only hyperfine writes."""
        return has_keys(text, "results", "command")

    def read(self, text: str) -> Report:
        """A metric for each command. Raises OutputDamaged, OutputEmpty."""
        document = json_report(text, self.name)
        results = objects_of(document.get("results"), self.name, "results")
        names = distinct([text_of(entry.get("command")) for entry in results])
        if not all(names):
            raise OutputDamaged(format=self.name, where="results", problem="a result names no command")
        commands = [self._command(name, result) for name, result in zip(names, results, strict=True)]
        measured = tuple(timed for timed in commands if timed.values)
        failures = tuple(_failures(commands))
        if not measured:
            problem = "; ".join(failure.text for failure in failures) or "there is no result"
            raise OutputEmpty(format=self.name, problem=problem)
        notes = (*_notes(measured), *_KEYS.remainder(document))
        unread = tuple(
            key for key in _BESIDE if any(finite(result.get(key)) is not None for result in results)
        )
        return Report(measured, failures, notes, unread=unread)

    def _check(self, name: str, result: dict[str, Any], times: list[float], codes: int) -> None:
        """What hyperfine computed of the times has to follow from those that are there."""
        if codes != len(times) and len(times) == len(result.get("times") or []):
            problem = f"there are {len(times)} times and {codes} exit codes"
            raise OutputDamaged(format=self.name, where=name, problem=problem)
        computed = {"mean": fmean(times), "min": min(times), "max": max(times)} if times else {}
        for key, here in computed.items():
            printed = finite(result.get(key))
            if printed is None:
                continue
            lost = max(
                _ROUNDING * max(abs(here), _ROUNDING), _half_unit(printed) + max(map(_half_unit, times))
            )
            if abs(printed - here) > lost:
                digits = _digits_that_differ(printed, here)
                problem = f"its {key} is {printed:.{digits}g}, and that of its times is {here:.{digits}g}"
                raise OutputDamaged(format=self.name, where=name, problem=problem)

    def _command(self, name: str, result: dict[str, Any]) -> Measured:
        """A command's times; no values where all of its runs failed, or it has none."""
        times = result.get("times")
        values = [finite(time) for time in times] if isinstance(times, list) else []
        codes = result.get("exit_codes")
        failures = [code != 0 for code in codes] if isinstance(codes, list) else []
        told = len(failures) or len(values)
        failures += [False] * (len(values) - len(failures))
        good = tuple(
            value for value, bad in zip(values, failures, strict=False) if value is not None and not bad
        )
        if any(math.isnan(time) for time in times or () if isinstance(time, float)):
            raise OutputDamaged(format=self.name, where=name, problem="a time is NaN, which is no number")
        if any(value < 0 for value in good):
            raise OutputDamaged(format=self.name, where=name, problem="a time is below 0")
        self._check(name, result, [value for value in values if value is not None], told)
        parameters = result.get("parameters")
        named = (
            {str(key): str(value) for key, value in parameters.items()}
            if isinstance(parameters, dict)
            else {}
        )
        return Measured(_TIME.metric, good, _TIME.unit, _TIME.direction, name, len(values) - len(good), named)


def _half_unit(printed: float) -> float:
    """Half a unit of the last digit: what rounding by hand, or by another tool, may have changed."""
    exponent = Decimal(repr(printed)).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def _digits_that_differ(printed: float, computed: float) -> int:
    """As few significant digits as show that the two are not the same number."""
    every = range(_FEWEST_DIGITS, _MOST_DIGITS)
    return next(
        (digits for digits in every if f"{printed:.{digits}g}" != f"{computed:.{digits}g}"), _MOST_DIGITS
    )


def _failures(commands: list[Measured]) -> list[Note]:
    texts = [
        f"all {result.failed} runs of {result.of} ended with an error: it is left out"
        if result.failed
        else f"{result.of} has no times: it is left out"
        for result in commands
        if not result.values
    ]
    if failed := sum(timed.failed for timed in commands if timed.values):
        texts.append(f"{failed} runs ended with an error; their times are left out")
    return [Note(text, _MEND) for text in texts]


def _notes(commands: tuple[Measured, ...]) -> list[Note]:
    advice = "hyperfine -N starts the command without a shell"
    return [
        Note(
            f"{timed.of}: {zeros} of its {len(timed.values)} times are 0: faster than a shell's start", advice
        )
        for timed in commands
        if (zeros := timed.values.count(0.0))
    ]


FORMAT = Hyperfine()
