"""How far a build is: make's lines counted, against how many there were the last time; past ones' time."""

import json
import re
import statistics
import time
from pathlib import Path
from typing import Any, TypedDict

from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.progress import Progress

_COMPILED = re.compile(r"^  (?:CC|AS|HOSTCC|AR|LD)(?: \[M\])? ")
_SECONDS_BETWEEN = 2.0
_SECONDS_TO_JUDGE = 15.0
"""Before that, nothing is said of the time left."""
_BUILDS_KEPT = 30
_FILES_AN_OPTION = 2.9
"""Files for each option that is set, where no build has told: what 6.1 has in the guest configuration."""


class _PastBuild(TypedDict):
    seconds: float
    anew: bool


class Teller:
    """Counts what is compiled, and tells it now and then."""

    def __init__(self, progress: Progress, what: str, expected: int = 0) -> None:
        self.done = 0
        self._progress, self._what, self._expected = progress, what, expected
        self._start = self._told = time.monotonic()

    def __call__(self, line: str) -> None:
        """Take one line of make's output."""
        if _COMPILED.match(line):
            self.done += 1
            now = time.monotonic()
            if now - self._told >= _SECONDS_BETWEEN:
                self._told = now
                self._progress(self._text(now - self._start))

    def _text(self, seconds: float) -> str:
        of = self._expected
        if self.done >= of:
            return f"{self._what}: {self.done} files"
        text = f"{self._what}: {self.done} of about {of} files"
        if seconds < _SECONDS_TO_JUDGE:
            return text
        return f"{text}, {left(seconds / self.done * (of - self.done))}"


def left(seconds: float) -> str:
    """A time for people: `about 3 min left`."""
    if seconds < 60:
        return "less than a minute left"
    return f"about {round(seconds / 60)} min left"


def expected_files(config: str) -> int:
    """How many files a build from nothing compiles, by the last one that was finished."""
    return round(_options_set(config) * _rate())


def remember_files(config: str, files: int) -> None:
    """Keep how many files a build from nothing compiled."""
    if files and (options := _options_set(config)):
        _memory().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_memory(), json.dumps(_remembered() | {"files_an_option": files / options}))


def remember_build(seconds: float, *, anew: bool) -> None:
    """Keep how long a build took; `anew`: in a tree that held nothing."""
    kept = [*_builds(), {"seconds": round(seconds, 1), "anew": anew}][-_BUILDS_KEPT:]
    _memory().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(_memory(), json.dumps(_remembered() | {"builds": kept}))


def build_seconds() -> float | None:
    """About how long a build takes that begins with another's tree, by past ones; None where there are none.

    The median; where only builds from nothing are known, of these.
    """
    past = _builds()
    again = [one["seconds"] for one in past if not one["anew"]] or [one["seconds"] for one in past]
    return float(statistics.median(again)) if again else None


def _options_set(config: str) -> int:
    return len(re.findall(r"^CONFIG_\w+=[ym]$", config, re.MULTILINE))


def _rate() -> float:
    try:
        return float(_remembered()["files_an_option"])
    except (ValueError, KeyError, TypeError):
        return _FILES_AN_OPTION


def _builds() -> list[_PastBuild]:
    records = _remembered().get("builds", ())
    try:
        return [{"seconds": float(one["seconds"]), "anew": bool(one["anew"])} for one in records]
    except (ValueError, KeyError, TypeError):
        return []


def _remembered() -> dict[str, Any]:
    try:
        memory = json.loads(_memory().read_text())
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}


def _memory() -> Path:
    return cache_directory() / "trees" / "rate.json"
