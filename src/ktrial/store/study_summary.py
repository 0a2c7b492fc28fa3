"""A study as its row in the store has it: all that a list of studies says, without a model of it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from ktrial.model.levels import FactorLevels, Levels, combinations, count, label, use_label


@dataclass(frozen=True)
class StudyRow:
    """A study in the store."""

    id: int
    name: str
    digest: str
    spec: dict[str, Any]
    """model.study.Study as JSON."""
    created: datetime
    finished: int
    """How many of its trials ended."""
    failed: int
    """How many of those ended with another outcome than `completed`."""

    @classmethod
    def of_sql(cls, row: tuple[Any, ...]) -> Self:
        """From what a database has: JSON as text, moments in UTC (SQLite: text); last the noted digest.

        Raises ValueError, also where the row is not what was noted; TypeError.
        """
        number, name, digest, spec, created, finished, failed, noted = row
        made = cls(number, name, digest, json.loads(spec), moment(created), int(finished), int(failed))
        if noted is not None and noted != study_digest(name, digest, made.spec, made.created):
            raise ValueError("the study is not what was stored")
        return made

    @property
    def question(self) -> str:
        """The study's question."""
        return str(self.spec["question"])

    @property
    def is_search(self) -> bool:
        """Whether it searches: then its treatments are found while it runs."""
        return bool(self.spec.get("search"))

    @property
    def treatments(self) -> tuple[Levels, ...]:
        """The levels of every treatment, as `model.plan.treatments`."""
        return combinations(self._factors, self.spec["design"], self.spec["listed"])

    @cached_property
    def treatment_count(self) -> int:
        """How many treatments it has."""
        return count(self._factors, self.spec["design"], self.spec["listed"])

    @property
    def _factors(self) -> list[FactorLevels]:
        return [FactorLevels(one["name"], one["levels"], one["baseline"]) for one in self.spec["factors"]]

    @property
    def labels(self) -> list[str]:
        """What its treatments are called."""
        return [label(levels) for levels in self.treatments]

    @property
    def workloads(self) -> list[str]:
        """The labels of its workloads."""
        return [use_label(use["name"], use["parameters"]) for use in self.spec["workloads"]]

    @property
    def planned(self) -> int | None:
        """How many trials there will be; of a search at most; None where only its time is limited."""
        if self.is_search:
            runs: int | None = self.spec["search"]["budget"]["runs"]
            return runs
        timing = self.spec["timing"]
        return self.treatment_count * int(timing["blocks"] if timing else self.spec["perturbations"])


def study_digest(name: str, key: str, spec: object, created: datetime) -> str:
    """SHA-256 of what a row of studies says."""
    said = [name, key, spec, created.replace(tzinfo=None).isoformat()]
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def moment(stored: str | datetime) -> datetime:
    """A moment as a database has it: in UTC, without saying so. Raises ValueError, TypeError."""
    made = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    return made.replace(tzinfo=UTC)
