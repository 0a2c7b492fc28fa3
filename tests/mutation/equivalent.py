"""Mutants that nothing anyone can see tells from the code, each named with the reason."""

import sys
import tomllib
from pathlib import Path

from tests.mutation.mutants import Mutant

FILE = Path(__file__).with_name("equivalent.toml")


class Equivalents:
    """Those of an area; the list may name none that there is not."""

    def __init__(self, root: Path, area: str, mutants: list[Mutant]) -> None:
        entries = tomllib.loads(FILE.read_text(encoding="utf-8")).get(area, [])
        functions = {(entry["file"], entry["function"]) for entry in entries}
        changes = {
            (mutant.file, mutant.function, *mutant.changes()): mutant.name
            for mutant in mutants
            if (mutant.file, mutant.function) in functions
        }
        self._reasons: dict[str, str] = {}
        for entry in entries:
            key = (entry["file"], entry["function"], entry["before"], entry["after"])
            if key not in changes:
                sys.exit(f"{FILE}: {area}: there is no mutant {key}")
            self._reasons[changes[key]] = entry["reason"]

    def reason(self, mutant: Mutant) -> str | None:
        """Why nobody can notice it; None for every other mutant."""
        return self._reasons.get(mutant.name)
