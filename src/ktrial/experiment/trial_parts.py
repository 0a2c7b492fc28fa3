"""What the workloads of a trial under way have measured: kept as each ends, until the trial is stored.

A trial of twenty workloads may take an hour. Whoever is killed meanwhile has lost the workload under way: the
next run takes the others from here, if they would come out the same to the last digit.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from ktrial import monitors
from ktrial.experiment.jobs import Job
from ktrial.file_digests import digest_of_bytes, sealed, unsealed
from ktrial.installation import VERSION, cache_directory
from ktrial.model.base import Model, digest
from ktrial.model.design import PlannedTrial
from ktrial.model.machine import MachineIdentity
from ktrial.model.profile import Profile
from ktrial.model.trial import CounterDelta, Monitored, SampleSeries
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Sample

_FORGOTTEN_AFTER = 30 * 86_400
"""Seconds after which nobody goes on with a trial."""


class TrialPart(Model):
    """One workload of a trial, which came to its end."""

    done: str
    """A digest of what was done, and on what."""
    samples: tuple[Sample, ...]
    counters: tuple[CounterDelta, ...]
    profiles: tuple[Profile, ...]
    sampled: tuple[SampleSeries, ...]
    warnings: tuple[DataWarning, ...]
    settings: dict[str, str]
    executed: dict[str, str]
    programs: dict[str, str]
    monitored: tuple[Monitored, ...]
    complaints: tuple[str, ...]


class TrialParts:
    """The parts of one trial of a study, on a machine whose numbers do not depend on when it runs."""

    def __init__(self, scope: str, planned: PlannedTrial, directory: Path | None = None) -> None:
        """`scope` names the study and its store. `directory`: instead of `parts` below KTRIAL_CACHE."""
        self._root = directory or cache_directory() / "parts"
        self._planned = planned
        self._place = self._root / digest([scope, planned.model_dump(mode="json")])[:32]

    def done(self, job: Job, identity: MachineIdentity) -> str:
        """What the job does, and on what: the same, the same numbers."""
        facts = {
            "ktrial": VERSION,
            "machine": identity.model_dump(mode="json"),
            "kernel": job.boot.kernel.digest,
            "boot": job.boot.model_dump(mode="json"),
            "use": job.use.model_dump_json(),
            "files": job.carried.digest,
            "settings": [(setting.path, setting.value) for setting in job.settings],
            "disk": job.disk.model_dump(mode="json") if job.disk else None,
            "limits": job.limits.model_dump(mode="json") if job.limits else None,
            "watched": [*job.monitors, monitors.watched_digest()],
        }
        return digest(facts)

    def find(self, job: Job, identity: MachineIdentity) -> TrialPart | None:
        """What the job has measured already; None where nothing is kept, or what would come out otherwise."""
        try:
            content = unsealed(self._file(job).read_bytes())
            part = TrialPart.model_validate_json(content) if content is not None else None
        except (OSError, ValidationError):
            return None
        return part if part and part.done == self.done(job, identity) else None

    def keep(self, job: Job, part: TrialPart) -> None:
        """Keep it; where it cannot be written, or would be read otherwise, it is measured again."""
        text = part.model_dump_json()
        with suppress(OSError, ValidationError):
            if TrialPart.model_validate_json(text) != part:
                return
            self._place.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._place, prefix=".")
            with os.fdopen(descriptor, "wb") as file:
                file.write(sealed(text.encode()))
            Path(name).replace(self._file(job))

    def remove(self) -> None:
        """The trial is stored."""
        shutil.rmtree(self._place, ignore_errors=True)
        for place in self._forgotten():
            shutil.rmtree(place, ignore_errors=True)

    def _forgotten(self) -> Sequence[Path]:
        last = time.time() - _FORGOTTEN_AFTER
        with suppress(OSError):
            return [place for place in self._root.iterdir() if place.stat().st_mtime < last]
        return []

    def _file(self, job: Job) -> Path:
        return self._place / digest_of_bytes(job.label.encode())[:32]
