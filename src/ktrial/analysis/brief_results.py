"""What each study of a store came to, in brief: kept beside its trials, and made from them where it is not.

It is true for the study's state, and for the rules by which verdicts are reached: with a ktrial that has
others it is made again.
"""

import json
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from pydantic_core import from_json

from ktrial.analysis.history.stored_numbers import summaries_of
from ktrial.analysis.result import load_record, make_record
from ktrial.installation import program_digest
from ktrial.model.comparison import BriefResult, WarningsAlike
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Mode
from ktrial.store.store import Store
from ktrial.store.study_rows import OF_RESULT, StoredStudy, StudySummaries

_RULES = ("analysis", "model", "stats", "workloads")
"""The rooms that decide what a result says."""
_LEVEL = 1
"""Of compression: ten times smaller, and quick."""
_AT_ONCE = 50
"""Studies whose results are written in one transaction."""
_MANY_TRIALS = 5_000
"""Reading so many takes some seconds, which is worth a word."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class BriefResults:
    """What studies came to; each is taken apart when it is asked for: a thousand bytes are many objects."""

    content: Mapping[int, bytes]

    def of(self, number: int) -> BriefResult:
        """Of the study. Raises KeyError."""
        return unpacked_brief(self.content[number])


def brief_results(
    store: Store,
    studies: Collection[StoredStudy],
    states: Mapping[int, str],
    tell: Tell = lambda _text: None,
) -> BriefResults:
    """Of these studies. `states`: Store.study_states, from before the studies were read.

    Trials are read of those only of which nothing is kept that is true. Raises StoreError, TrialsDamaged
    among them.
    """
    summaries = store.summaries(OF_RESULT)
    unchanged: dict[int, bytes] = {}
    stale: list[StoredStudy] = []
    for study in studies:
        summary = summaries.get(study.id)
        if summary and summary.state == _true_for(states[study.id]):
            unchanged[study.id] = summary.content
        else:
            stale.append(study)
    return BriefResults(unchanged | _made_now(store, stale, states, tell))


def _made_now(
    store: Store, stale: Collection[StoredStudy], states: Mapping[int, str], tell: Tell
) -> dict[int, bytes]:
    total = sum(study.finished for study in stale)
    if total >= _MANY_TRIALS:
        tell(f"{store.name}: {total:,} trials are read, once, for the results of their studies in brief")
    contents: dict[int, bytes] = {}
    waiting: list[StudySummaries] = []
    for study in stale:
        summary = summary_of(
            make_record(store, study, store.trials(study.id, counted=False)), states[study.id]
        )
        contents[study.id] = summary.by_workload[OF_RESULT]
        waiting.append(summary)
        if len(waiting) >= _AT_ONCE:
            store.keep_summaries(waiting)
            waiting = []
    if waiting:
        store.keep_summaries(waiting)
    return contents


def summary_of(record: StudyRecord, state: str) -> StudySummaries:
    """What the store keeps of a result. `state`: the study's, from before the record was read."""
    return StudySummaries(record.id, _true_for(state), {OF_RESULT: packed_brief(brief_of(record))})


def brief_of(record: StudyRecord) -> BriefResult:
    """From the whole result."""
    comparisons = record.result.comparisons
    modes = {comparison.mode for comparison in comparisons}
    modes |= {sample.mode for trial in record.trials for sample in trial.samples}
    failed = sum(trial.outcome is not Outcome.COMPLETED for trial in record.trials)
    started = min((trial.started for trial in record.trials), default=None)
    # The result's warnings, then those of the trials, each once; by kind and advice.
    of_trials = (warning for trial in record.trials for warning in trial.warnings)
    groups: dict[tuple[str, str], list[DataWarning]] = {}
    for warning in dict.fromkeys((*record.result.warnings, *of_trials)):
        groups.setdefault((warning.kind, warning.advice), []).append(warning)
    return BriefResult(
        answer=record.result.answer,
        modes=tuple(mode for mode in Mode if mode in modes),
        planned=record.planned,
        completed=len(record.trials) - failed,
        failed=failed,
        started=started.isoformat() if started else "",
        warnings=tuple(WarningsAlike(alike[0], len(alike)) for alike in groups.values()),
        rows=[list(comparison.model_dump(mode="json").values()) for comparison in comparisons],
    )


def packed_brief(brief: BriefResult) -> bytes:
    """As the store keeps it."""
    warnings = [(warning.first.model_dump(mode="json"), warning.number) for warning in brief.warnings]
    plain = brief._asdict() | {"warnings": warnings}
    return zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), _LEVEL)


def unpacked_brief(content: bytes) -> BriefResult:
    """What `packed_brief` packed."""
    plain = from_json(zlib.decompress(content))
    warnings = (
        WarningsAlike(DataWarning.model_validate(warning), count) for warning, count in plain["warnings"]
    )
    typed = {"modes": tuple(map(Mode, plain["modes"])), "warnings": tuple(warnings)}
    return BriefResult(**plain | typed)


@cache
def _rules() -> str:
    return program_digest(*_RULES)


def _true_for(state: str) -> str:
    """A study's state, and the rules by which its verdicts are reached."""
    return sha256(f"{state} {_rules()}".encode()).hexdigest()


# At the end of a run what histories and sites ask of its study is kept: while its trials are at hand.


def keep_record(store: Store, number: int) -> StudyRecord:
    """The study's record, from which the store keeps what else would be read from all its trials again.

    Where that cannot be written it is made when it is asked for. Raises StoreError, as `load_record`.
    """
    state = store.study_states(number).get(number)  # from before: trials of another run may come in between
    study_record = load_record(store, number)
    if state is not None:
        numbers = summaries_of(number, study_record.study, study_record.trials, state)
        store.keep_summaries([numbers, summary_of(study_record, state)])
    return study_record
