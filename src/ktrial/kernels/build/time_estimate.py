"""How far a build is: make's lines counted, against how many there were the last time; past builds' time."""

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
"""Before that, the time left is worked out from past builds."""
_LONG_STEP_SECONDS = 10.0
"""A link that takes longer is named: nothing else shows that the build goes on."""
_BUILDS_KEPT = 30
_FILES_AN_OPTION = 2.9
"""Files for each option that is set, where no build has told: what 6.1 has in the guest configuration."""
_JOB_SECONDS_A_FILE = 0.42
"""Where no build has told: 6.1 in the guest configuration, ten minutes of one core for 1440 files."""


class _PastBuild(TypedDict):
    seconds: float
    anew: bool


class Teller:
    """Counts what is compiled, and tells it now and then."""

    def __init__(self, progress: Progress, what: str, expected: int = 0, jobs: int = 1) -> None:
        self.done = 0
        self._progress, self._what, self._expected = progress, what, expected
        self._expected_rate = _job_seconds_a_file() / jobs
        self._start = self._told = self._line_read = time.monotonic()
        self._line = ""
        progress(self._text(0.0))

    def __call__(self, line: str) -> None:
        """Take one line of make's output; an empty one where nothing has come for a while."""
        now = time.monotonic()
        if line:
            self._line, self._line_read = line.strip(), now
        compiled = bool(_COMPILED.match(line))
        self.done += compiled
        if (compiled or not line) and now - self._told >= _SECONDS_BETWEEN:
            self._told = now
            self._progress(f"{self._text(now - self._start)}{self._long_step(now - self._line_read)}")

    def _text(self, seconds: float) -> str:
        of, counted = self._expected, f"{self._what}: {self.done:,}"
        if self.done >= of:
            return f"{counted} files" if self.done else self._what
        text = f"{counted} of about {of:,} files" if self.done else f"{self._what}: about {of:,} files"
        rate = seconds / self.done if self.done and seconds >= _SECONDS_TO_JUDGE else self._expected_rate
        return f"{text}, {left(rate * (of - self.done))}"

    def _long_step(self, seconds: float) -> str:
        if seconds < _LONG_STEP_SECONDS or not self._line:
            return ""
        return f"; {' '.join(self._line.split())} has taken {seconds:.0f} s"


def left(seconds: float) -> str:
    """A time for people: `about 3 min left`."""
    if seconds < 60:
        return "less than a minute left"
    return f"about {round(seconds / 60)} min left"


def expected_files(config: str) -> int:
    """How many files a build from nothing compiles, by the last one that was finished."""
    return round(_options_set(config) * _files_an_option())


def remember_files(config: str, files: int, job_seconds: float) -> None:
    """Keep how many files a build from nothing compiled, and how long all its jobs took together."""
    if files and (options := _options_set(config)):
        _memory().parent.mkdir(parents=True, exist_ok=True)
        rates = {"files_an_option": files / options, "job_seconds_a_file": job_seconds / files}
        write_atomically(_memory(), json.dumps(_remembered() | rates))


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


def _files_an_option() -> float:
    return _remembered_rate("files_an_option", _FILES_AN_OPTION)


def _job_seconds_a_file() -> float:
    return _remembered_rate("job_seconds_a_file", _JOB_SECONDS_A_FILE)


def _remembered_rate(name: str, without: float) -> float:
    try:
        return float(_remembered()[name])
    except (ValueError, KeyError, TypeError):
        return without


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
