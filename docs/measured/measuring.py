"""Measures what declarations ask for, once: trials are kept in a store, profiles in files beside it."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from docs.measured.errors import ClaimBroken
from docs.measured.made_with import MadeWith
from docs.measured.study_numbers import StudyNumbers, complete

from ktrial.analysis.attribution.question import AttributionQuestion
from ktrial.experiment import profile as profiling
from ktrial.experiment import session
from ktrial.experiment.observer import Observer
from ktrial.experiment.proof import Proving, prove
from ktrial.experiment.resources import installed
from ktrial.file_digests import digest_of_file
from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.machines.guest_programs import digest_of_all, parallel
from ktrial.machines.guest_programs import directory as guest_programs_in
from ktrial.machines.qemu.plugin import CacheShapes
from ktrial.model.attribution import Proof
from ktrial.model.parallel import QUANTUM_NS
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings, Study
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import load, study_from


def default_place() -> Path:
    """Where measurements are kept: any program of ktrial's that is another one gives others."""
    return cache_directory() / "numbers" / digest_of_all(guest_programs_in())[:12]


class Measuring:
    """One run of the script, in which blocks may share measurements."""

    def __init__(self, place: Path | None = None, jobs: int | None = None, observer: Observer | None = None):
        """`place`: where measurements are kept. `jobs`: trials at once; None: one a core."""
        self.place = place or default_place()
        """Where files go that only measurements need."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._store = open_store(self.place / "trials.db")
        self._jobs, self._observer = jobs, observer
        self._registry = installed().registry
        self.made_with = MadeWith()
        """What the block that is being made was measured with; the script begins a new one for each."""

    def in_file(self, path: Path) -> Study:
        """The study in a file, to be run as it is or with something changed. Raises StudyError."""
        return load(path, self._registry)

    def study(self, name: str, data: Mapping[str, Any]) -> StudyNumbers:
        """The study that `data` describes, in a study file's shape. Raises NotMeasured, KtrialError."""
        source = StudySource(f"docs/measured: {name}")
        return self.run(study_from(data, source, name, self.place, self._registry))

    def run(self, study: Study) -> StudyNumbers:
        """Run what the store has not got of a study. Raises NotMeasured, KtrialError."""
        record = session.run(study, store=self._store, jobs=self._jobs, observer=self._observer)
        complete(record)
        for trial in record.trials:
            self.made_with.add(trial.provenance.kernel, trial.provenance.kernel_release)
        return StudyNumbers(self._store, record)

    def proof(self, asked: AttributionQuestion, *names: str) -> Proof:
        """What these things have of a difference, as `explain --prove` says. Raises KtrialError."""
        observer = self._observer or Observer()
        how = Proving(
            self._store,
            perturbations=1,
            candidates=names,
            each_alone=True,
            jobs=self._jobs,
            observer=observer,
        )
        return prove(asked, how).proof

    def profile(
        self,
        kernel: str,
        workload: str,
        parameters: Mapping[str, int | float | str] | None = None,
        boot: Sequence[str] = (),
        caches: CacheShapes | None = None,
        cpus: int = 1,
        quantum_ns: int = QUANTUM_NS,
    ) -> Profile:
        """One kernel in one workload, by function; on several CPUs in simulated time. Raises KtrialError."""
        settings = MachineSettings(kernel=kernel, boot=tuple(boot))
        if several := cpus > 1:
            several_cpus = {"kind": ParallelMachine.name, "cpus": cpus, "quantum_ns": quantum_ns}
            settings = settings.model_copy(update=several_cpus)
        use = WorkloadUse(name=workload, parameters=dict(parameters or {}))
        digest = kernel_registry.add(kernel).digest
        key = ["profile", digest, use.model_dump(mode="json"), list(boot), repr(caches)]
        text = self.kept(
            [*key, cpus, quantum_ns, *map(digest_of_file, (parallel(), guest_programs_in() / "tasks"))]
            if several
            else key,
            lambda: profiling.profile(
                settings, use, caches=caches, observer=self._observer
            ).model_dump_json(),
        )
        made = Profile.model_validate_json(text)
        self.made_with.add(made.kernel, made.release)
        return made

    def kept(self, key: object, measure: Callable[[], str]) -> str:
        """What `measure` returns; the same key is measured once. The key names all that it depends on."""
        name = sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
        file = self.place / f"{name}.json"
        if not file.exists():
            partly = file.with_suffix(".part")
            partly.write_text(measure(), encoding="utf-8")
            partly.replace(file)
        return file.read_text(encoding="utf-8")

    def claim(self, holds: bool, sentence: str) -> None:
        """What a page says in words beside the numbers. Raises ClaimBroken where it does not hold."""
        if not holds:
            raise ClaimBroken(f"no longer true: {sentence}; write that sentence anew, with its declaration")
