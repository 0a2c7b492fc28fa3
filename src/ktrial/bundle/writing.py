"""Writes a bundle: everything that the store has of a study, what it came from, and what a stranger needs."""

import contextlib
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrial import report
from ktrial.analysis.result import record_of
from ktrial.bundle import archive, crate, kernel_entries, manifest, readme, signature, software
from ktrial.bundle import contents as parts
from ktrial.bundle.archive import ArchiveEntry
from ktrial.bundle.contents import BundleContents
from ktrial.bundle.errors import BundleNotWritten, NothingToBundle
from ktrial.installation import VERSION
from ktrial.model.design import FactorKind, scheduler_argv
from ktrial.model.kernel import Patch
from ktrial.model.plan import treatments
from ktrial.model.study import Study, builds_of
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.store import Store, StoredStudy
from ktrial.studyfile.writer import study_toml

Tell = Callable[[str], None]
NO_TRIALS = "run it first: ktrial run {study}"


@dataclass(frozen=True)
class Wanted:
    """What goes into a bundle beside what always does."""

    with_kernels: bool = False
    licence: str = ""
    """An SPDX identifier for what was measured."""
    key: Path | None = None
    """The OpenSSH key that signs it."""


@dataclass(frozen=True)
class Written:
    """A bundle that was written."""

    file: Path
    size: int
    digest: str
    """SHA-256 of the archive."""
    contents: BundleContents
    signed: bool


def write_bundle(
    store: Store, stored: StoredStudy, file: Path, wanted: Wanted, tell: Tell = lambda _text: None
) -> Written:
    """Write the study's bundle; a half-written one is never left. The same study gives the same bytes.

    Raises NothingToBundle, BundleNotWritten, NotSignable, StoreError.
    """
    tell("reading the trials")
    trials = _whole_trials(store, stored)
    record = record_of(store, stored, tuple(_alone(trial) for trial in trials))
    contents = _contents(record, wanted)
    if wanted.with_kernels and (missing := kernel_entries.missing_files(contents.kernels)):
        problem = f"the cache has no {', '.join(missing)} any more"
        raise NothingToBundle(study=stored.study.name, problem=problem, advice="leave --with-kernels out")
    tell("writing the page")
    entries = [
        *_of_study(store, stored, record, contents),
        *_of_trials(trials),
        *_patches(record.study),
        *kernel_entries.entries_of_files(contents.kernels),
    ]
    tell("packing")
    packed = _packed(file, record, contents, entries, wanted.key)
    _replace(file, packed)
    digest = hashlib.sha256(packed).hexdigest()
    return Written(file.expanduser().absolute(), len(packed), digest, contents, wanted.key is not None)


def _whole_trials(store: Store, stored: StoredStudy) -> list[Trial]:
    """In run order, with their profiles and series. Raises NothingToBundle."""
    trials = sorted(store.trials(stored.id), key=lambda one: (one.planned.order, one.planned.key))
    if not trials:
        advice = NO_TRIALS.format(study=stored.study.name)
        raise NothingToBundle(study=stored.study.name, problem="no trial of it has ended", advice=advice)
    labels = sorted(store.profiled(stored.id))

    def whole(trial: Trial) -> Trial:
        stored_profiles = (store.profile(stored.id, trial.planned.key, label) for label in labels)
        profiles = tuple(profile for profile in stored_profiles if profile)
        return trial.model_copy(
            update={"profiles": profiles, "sampled": store.sampled(stored.id, trial.planned.key)}
        )

    return [whole(trial) for trial in trials]


def _alone(trial: Trial) -> Trial:
    return trial.model_copy(update={"profiles": (), "sampled": ()})


def _contents(record: StudyRecord, wanted: Wanted) -> BundleContents:
    study, met = record.study, [trial.provenance for trial in record.trials]
    return BundleContents(
        ktrial=VERSION,
        study=study.name,
        study_digest=record.study_digest,
        created=record.created,
        ended=max(trial.started for trial in record.trials),
        planned=record.planned,
        trials=len(record.trials),
        machine=study.machine.kind,
        versions=tuple(sorted({one.ktrial for one in met if one.ktrial})),
        qemu=tuple(sorted({one.qemu for one in met if one.qemu})),
        kernels=kernel_entries.kernel_entries(study, record.trials, with_files=wanted.with_kernels),
        guests=software.guests(),
        patches={patch.digest: Path(patch.path).name for patch in patches_of(study)},
        host_files=host_files(study),
        licence=wanted.licence,
    )


def patches_of(study: Study) -> tuple[Patch, ...]:
    """Every patch of the kernels that the study builds, once."""
    builds = builds_of(study, treatments(study)).values() if study.builds else ()
    return tuple({patch.digest: patch for build in builds for patch in build.patches}.values())


def host_files(study: Study) -> tuple[str, ...]:
    """Files and programs of the author's system that the study takes into its guests, or runs."""
    named = list(study.machine.files)
    for use in study.workloads:
        if use.command:
            named += [*use.command.argv[:1], *use.command.files]
    for factor in study.factors:
        if factor.kind is FactorKind.SCHEDULER:
            named += [argv[0] for level in factor.levels if (argv := scheduler_argv(level))]
    return tuple(dict.fromkeys(named))


def _of_study(
    store: Store, stored: StoredStudy, record: StudyRecord, contents: BundleContents
) -> Iterator[ArchiveEntry]:
    whys = report.whys(store, record)
    yield ArchiveEntry(parts.CONTENTS, _json(contents.model_dump(mode="json")))
    # The order of a workload's parameters is that of its program's arguments, which its digits depend on.
    yield ArchiveEntry(
        parts.STUDY, _json(record.study.model_dump(mode="json", by_alias=True), in_order=False)
    )
    if not record.study.search:
        yield ArchiveEntry(parts.STUDY_FILE, study_toml(record.study).encode())
        yield ArchiveEntry(parts.RESULT, _json(record.result.model_dump(mode="json")))
        yield ArchiveEntry(parts.PAGE, report.study_html(record, whys).encode())
        yield ArchiveEntry(parts.MARKDOWN, report.study_markdown(record, whys).encode())
    if tuned := store.answer(stored.id):
        yield ArchiveEntry(parts.SEARCHED, _json(tuned.model_dump(mode="json")))
    yield ArchiveEntry(parts.DIFFERENCES, _json([one.model_dump(mode="json") for one in record.kernels]))
    yield ArchiveEntry(parts.PACKAGES, software.packages().encode())
    yield ArchiveEntry(parts.README, readme.text(record, contents).encode())
    if licence := software.licence_text():
        yield ArchiveEntry(parts.LICENCE, licence)


def _of_trials(trials: Sequence[Trial]) -> Iterator[ArchiveEntry]:
    for number, trial in enumerate(trials):
        plain = trial.model_dump(mode="json", exclude={"profiles", "sampled"})
        yield ArchiveEntry(parts.trial_name(number), _json(plain))
        for kind, several in (("profiles", trial.profiles), ("series", trial.sampled)):
            for place, one in enumerate(several):
                text = _json(one.model_dump(mode="json", exclude_defaults=kind == "profiles"))
                yield ArchiveEntry(parts.part_name(kind, number, place), text)


def _patches(study: Study) -> Iterator[ArchiveEntry]:
    """Those that are where they were, and are what was applied."""
    for patch in patches_of(study):
        with contextlib.suppress(OSError):  # its digest is in bundle.json
            content = Path(patch.path).read_bytes()
            if hashlib.sha256(content).hexdigest() == patch.digest:
                yield ArchiveEntry(f"{parts.PATCHES}/{patch.digest}.patch", content)


def _packed(
    file: Path, record: StudyRecord, contents: BundleContents, entries: list[ArchiveEntry], key: Path | None
) -> bytes:
    described = [_described(entry) for entry in sorted(entries)]
    entries = [*entries, ArchiveEntry(parts.CRATE, crate.metadata(record, contents, described))]
    digests = {entry.name: _described(entry).digest for entry in entries}
    listed = manifest.text_of(digests).encode()
    entries.append(ArchiveEntry(manifest.NAME, listed))
    if key:
        entries.append(ArchiveEntry(manifest.SIGNATURE, signature.signed(file, key, listed)))
    made = io.BytesIO()
    try:
        archive.write(made, entries)
    except OSError as error:
        raise BundleNotWritten(file=file, problem=error.strerror or str(error)) from error
    if len(made.getbuffer()) > archive.MOST_BYTES:
        problem = f"it would have more than the {archive.MOST_BYTES} bytes that a bundle may have"
        raise BundleNotWritten(file=file, problem=problem, hint="leave --with-kernels out")
    return made.getvalue()


def _described(entry: ArchiveEntry) -> crate.Described:
    content = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
    return crate.Described(entry.name, len(content), hashlib.sha256(content).hexdigest())


def _replace(file: Path, packed: bytes) -> None:
    absolute = file.expanduser().absolute()
    partial = absolute.with_name(f".{absolute.name}.partial")
    try:
        partial.write_bytes(packed)
        partial.replace(absolute)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            partial.unlink()
        raise BundleNotWritten(file=absolute, problem=error.strerror or str(error)) from error


def _json(data: Any, *, in_order: bool = True) -> bytes:
    """Numbers with all their digits, and keys in order; else as they stand in the data."""
    text = json.dumps(data, indent=1, sort_keys=in_order, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()
