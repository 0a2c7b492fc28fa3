"""Errors about files of measurements from elsewhere."""

from pathlib import Path

from ktrial.errors import KtrialError


class ImportFailed(KtrialError):
    """A file cannot be read, or not as the user asks for it."""

    exit_code = 2


class MeasurementsDamaged(ImportFailed):
    """Something in a file is not as the tool writes it."""

    hint = "the file may be cut short, or changed by hand; write it again with the tool that made it"

    def __init__(self, file: Path, format: str, where: str, problem: str) -> None:
        super().__init__(f"{file}, taken for {format}: {where}: {problem}.")


class NoMeasurements(ImportFailed):
    """A file is as the tool writes it, and nothing in it can be compared."""

    hint = "look at the file; a run that failed leaves one like this"

    def __init__(self, file: Path, format: str, problem: str, hint: str = "") -> None:
        text = f"{file}, taken for {format}, holds no measurements: {problem}."
        super().__init__(text, hint=hint or self.hint)
