"""What came of the programs that docs/workloads.md says were tried, each captured by one command.

    .venv/bin/python -m docs.measured.tried_programs [NAME...]     try them, and keep what came of it
    .venv/bin/python docs/write_numbers.py tried-programs          write the table

A program that is not installed here keeps the row that it has.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from docs.measured.tried_commands import TRIED, TriedProgram

from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment import session
from ktrial.installation import cache_directory
from ktrial.model.study import MachineSettings, Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.store.store import open_store
from ktrial.workloads.capture import Captured, CaptureOptions, capture_command

KERNEL = "debian:6.1"
_KEPT = Path(__file__).with_suffix(".json")
_LONGEST_REASON = 300


@dataclass(frozen=True)
class TriedResult:
    """What came of one program."""

    captured: bool = False
    counted: bool = False
    identical: bool = False
    """Whether two trials gave the same numbers, to the last digit."""
    instructions: float = 0.0
    """Of a run: the median of those that count."""
    seconds: float = 0.0
    """CPU time of one trial, its boot left out."""
    files: int = 0
    mib: int = 0
    memory_mib: int = 0
    reason: str = ""
    """Why it was not captured or counted, or what differs."""


@dataclass
class Attempt:
    """One program, in a directory of its own."""

    program: TriedProgram
    place: Path
    store_place: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ktrial-tried-")))

    def capture(self) -> Captured:
        """Prepare its files, and run it once here. Raises KtrialError, CalledProcessError."""
        self.place.mkdir(parents=True, exist_ok=True)
        if not (self.place / ".prepared").exists():
            subprocess.run(
                ["sh", "-ec", self.program.prepare], cwd=self.place, check=True, capture_output=True
            )
            (self.place / ".prepared").touch()
        options = CaptureOptions(name=_plain(self.program))
        captured = capture_command(self.program.command, self.place, options)
        command = captured.use.command
        assert command is not None, "a captured workload has a command"
        use = captured.use.model_copy(update={"command": command.model_copy(update={"repeats": 1})})
        return captured.model_copy(update={"use": use})

    def trial(self, captured: Captured, number: int) -> Trial:
        """One trial of it, in a store of its own. Raises KtrialError."""
        memory = max(captured.memory_mib, self.program.memory_mib)
        study = Study(
            name=f"tried-{_plain(self.program)}",
            question=f"Does {self.program.name} count the same twice?",
            workloads=(captured.use,),
            machine=MachineSettings(kernel=KERNEL, memory_mib=memory),
            factors=(),
            perturbations=1,
        )
        record = session.run(study, store=open_store(self.store_place / f"{number}.db"), jobs=1)
        return record.trials[0]

    def result(self) -> TriedResult:
        """Capture it, count it twice, and compare. Whatever fails is a reason."""
        try:
            captured = self.capture()
        except subprocess.CalledProcessError as error:
            return TriedResult(reason=_short(error.stderr.decode(errors="replace")))
        except KtrialError as error:
            return TriedResult(reason=_short(str(error)))
        facts = TriedResult(
            captured=True,
            files=captured.files,
            mib=captured.size >> 20,
            memory_mib=max(captured.memory_mib, self.program.memory_mib),
        )
        try:
            trials = []
            for number in (1, 2):
                before = _cpu_seconds()
                trials.append(self.trial(captured, number))
            seconds = _cpu_seconds() - before
        except Interrupted:
            raise
        except KtrialError as error:
            return TriedResult(**(asdict(facts) | {"reason": _short(str(error))}))
        finally:
            shutil.rmtree(self.store_place, ignore_errors=True)
        return compared(facts, trials, seconds)


def compared(facts: TriedResult, trials: Sequence[Trial], seconds: float) -> TriedResult:
    """What two trials say of a captured program; `seconds` of CPU time that the second one took."""
    entry = asdict(facts) | {"seconds": round(seconds, 1)}
    for trial in trials:
        if trial.outcome is not Outcome.COMPLETED:
            return TriedResult(**(entry | {"reason": _short(trial.reason)}))
    first, second = (exact_values(trial) for trial in trials)
    differing = [name for name in first if first[name] != second.get(name)]
    values = list(first.values())
    entry |= {
        "counted": bool(values),
        "identical": first == second,
        "instructions": values[0] if values else 0,
    }
    return TriedResult(**(entry | {"reason": f"differs: {', '.join(differing)}" if differing else ""}))


def exact_values(trial: Trial) -> dict[str, float]:
    """Metric → value, of what was counted."""
    return {each.metric: each.value for each in trial.samples if each.mode is Mode.EXACT_PLUGIN}


def _plain(program: TriedProgram) -> str:
    """Its name as a workload may have it."""
    return re.sub(r"[^a-z0-9]+", "-", program.name.lower()).strip("-")


def missing(program: TriedProgram) -> list[str]:
    """What of it is not installed here."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    return [name for name in program.needs if shutil.which(name, path=places) is None]


def kept() -> dict[str, TriedResult]:
    """Program → what came of it when it was tried last."""
    if not _KEPT.exists():
        return {}
    rows = json.loads(_KEPT.read_text(encoding="utf-8"))
    return {name: TriedResult(**row) for name, row in rows.items()}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _cpu_seconds() -> float:
    times = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(time.ru_utime + time.ru_stime for time in times)


def main() -> int:
    """Try them one after another; what came of each is kept as it ends."""
    names = sys.argv[1:] or list(TRIED)
    if unknown := sorted(set(names) - set(TRIED)):
        print(f"there is no {', '.join(unknown)}; there are: {', '.join(TRIED)}", file=sys.stderr)
        return 2
    for name in names:
        program = TRIED[name]
        if lacking := missing(program):
            print(f"{name}: left out: {', '.join(lacking)} is not installed here")
            continue
        result = Attempt(program, cache_directory() / "tried" / _plain(program)).result()
        rows = {known: asdict(row) for known, row in (kept() | {name: result}).items()}
        ordered = {known: rows[known] for known in TRIED if known in rows}
        _KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {json.dumps(asdict(result), ensure_ascii=False)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
