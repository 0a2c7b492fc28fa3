"""Stores with a study, and bundles of it, made in a moment."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.report_records import a_record

from ktrial.bundle import archive
from ktrial.bundle.writing import Wanted, Written, write_bundle
from ktrial.model.study import Study, plan
from ktrial.model.trial import Trial
from ktrial.store.store import open_store

NOTHING_MORE = Wanted()


def trials_as_planned(study: Study, trials: tuple[Trial, ...]) -> list[Trial]:
    """The trials, each in the place that the study's plan has for it."""
    made = {(one.planned.treatment.label, one.planned.perturbation.number): one for one in trials}
    return [
        made[planned.treatment.label, planned.perturbation.number].model_copy(update={"planned": planned})
        for planned in plan(study).trials
    ]


def fill(file: Path, **changes: Any) -> Study:
    """A store with one study of two kernels, all of whose trials ended."""
    record = a_record(**({"workloads": ("fork", "pipe", "nqueens")} | changes))
    with open_store(file) as store:
        number = store.study(record.study)
        for trial in trials_as_planned(record.study, record.trials):
            assert store.add_trial(number, trial)
    return record.study


def bundle(store: Path, file: Path, wanted: Wanted = NOTHING_MORE) -> Written:
    """The bundle of a store's newest study."""
    with open_store(store) as opened:
        stored = opened.newest()
        assert stored is not None
        return write_bundle(opened, stored, file, wanted)


def files_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def packed(files: Mapping[str, bytes]) -> bytes:
    """An archive of these files, as they are."""
    made = io.BytesIO()
    archive.write_archive(made, [archive.ArchiveEntry(name, content) for name, content in files.items()])
    return made.getvalue()


def relisted(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with a list of digests that fits them: what a forger does who has no key."""
    content = {name: data for name, data in files.items() if name not in archive.NOT_LISTED}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    return {**files, archive.MANIFEST: archive.manifest_text(digests).encode()}


def forged(file: Path, to: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """A copy of the bundle in which one file of JSON is changed, and listed with its new digest."""
    files = files_of(file)
    files[name] = json.dumps(change(json.loads(files[name]))).encode()
    to.write_bytes(packed(relisted(files)))
    return to
