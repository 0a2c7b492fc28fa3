"""Reads a bundle of somebody else's: every size limited, every digest compared, every text made harmless.

Nothing of it is trusted: not its answer, which is worked out anew from its trials, nor its page, which is not
shown. What it says can be wrong; it cannot do anything.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from ktrial.bundle import archive
from ktrial.bundle import archive as parts
from ktrial.bundle.archive import FORMAT, Archive, BundleContents
from ktrial.bundle.errors import BadBundle, BundleDamaged, BundleError, BundleTooLarge, NotABundle
from ktrial.format.sanitize import printable
from ktrial.model.base import digest
from ktrial.model.comparison import Result
from ktrial.model.design import Design, PlannedTrial
from ktrial.model.kernel import KernelDifference
from ktrial.model.profile import Profile
from ktrial.model.study import Study, plan
from ktrial.model.trial import SampleSeries, Trial
from ktrial.model.tuning import Tuned
from ktrial.store.store import Store, open_store
from ktrial.store.study_rows import StoredStudy

_DIFFERENCES = TypeAdapter(tuple[KernelDifference, ...])


_MOST_LEVELS = 1000


_MOST_MEMORY_MIB, _MOST_CPUS = 64 << 10, 64


_MOST_DEPTH = 60
"""Of JSON inside of JSON; what ktrial writes has some ten."""


Kind = TypeVar("Kind", bound=BaseModel)


@dataclass(frozen=True)
class Bundle:
    """A bundle that is open."""

    file: Path
    contents: BundleContents
    study: Study
    signer: str
    """Who signed it; empty where that was not asked."""
    manifest_digest: str
    """What tells this bundle from all others."""
    _archive: Archive
    _digests: Mapping[str, str]

    def read(self, name: str) -> bytes:
        """A file's content, compared with its digest. Raises BundleDamaged."""
        return _read(self.file, self._archive, self._digests, name)

    @property
    def names(self) -> tuple[str, ...]:
        """All its files, by name."""
        return tuple(sorted(self._digests))

    def trials(self) -> Iterator[Trial]:
        """Every trial, with its profiles and series, in run order. Raises BundleDamaged."""
        planned = self._planned()
        for number in range(self.contents.trials):
            trial = self._parsed(parts.trial_name(number), Trial)
            _check_trial(self.file, trial, planned)
            profiles = tuple(self._several("profiles", number, Profile))
            series = tuple(self._several("series", number, SampleSeries))
            yield trial.model_copy(update={"profiles": profiles, "sampled": series})

    def result(self) -> Result | None:
        """The answer that its author got. None where the study is a search."""
        return self._parsed(parts.RESULT, Result) if parts.RESULT in self._digests else None

    def differences(self) -> tuple[KernelDifference, ...]:
        """What differs between the kernels."""
        data = _json(self.file, parts.DIFFERENCES, self.read(parts.DIFFERENCES))
        return _valid(self.file, parts.DIFFERENCES, lambda: _DIFFERENCES.validate_python(data))

    def searched(self) -> Tuned | None:
        """What a search came to."""
        return self._parsed(parts.SEARCHED, Tuned) if parts.SEARCHED in self._digests else None

    def fill(self, store: Store) -> int:
        """Put all of it into a store; return the study's id there. Raises BundleDamaged, StoreError."""
        number = store.study(self.study)
        for trial in self.trials():
            if not store.add_trial(number, trial):
                raise BundleDamaged(self.file, f"it has trial {trial.planned.key} twice")
        for difference in self.differences():
            store.add_kernel_difference(number, difference)
        if tuned := self.searched():
            store.add_answer(number, tuned)
        return number

    def _several(self, kind: str, trial: int, model: type[Kind]) -> Iterator[Kind]:
        for place in range(parts.MOST_PARTS):
            name = parts.part_name(kind, trial, place)
            if name not in self._digests:
                return
            yield self._parsed(name, model)

    def _parsed(self, name: str, model: type[Kind]) -> Kind:
        return _parsed(self.file, name, self.read(name), model)

    def _planned(self) -> dict[str, PlannedTrial] | None:
        """Of a search nobody knows it beforehand."""
        return None if self.study.search else {trial.key: trial for trial in plan(self.study).trials}


@contextmanager
def open_bundle(file: Path, signers: Path | None = None) -> Iterator[Bundle]:
    """The bundle in a file. `signers`: OpenSSH's file of allowed signers, one of whom must have signed it.

    Raises BundleUnreadable, NotABundle, BundleTooLarge, BadBundle, BundleDamaged, BundleError,
    SignatureWrong.
    """
    with archive.opened_archive(file) as opened:
        listed = _small(file, opened, archive.MANIFEST, archive.MANIFEST_MOST_BYTES)
        who = _signer(file, opened, listed, signers) if signers else ""
        digests = archive.parsed_manifest(file, _text(file, archive.MANIFEST, listed))
        archive.check_names(file, digests, set(opened.sizes))
        content = _read(file, opened, digests, parts.CONTENTS)
        contents = _contents(file, content)
        study = _study(file, _read(file, opened, digests, parts.STUDY), contents)
        yield Bundle(file, contents, study, who, digest(dict(digests)), opened, digests)


def _small(file: Path, opened: Archive, name: str, most: int) -> bytes:
    if name not in opened.sizes:
        raise NotABundle(file, f"it has no {name}")
    if opened.sizes[name] > most:
        raise archive.too_large(file, f"its {name} has", opened.sizes[name], most)
    return opened.read(name)


def _signer(file: Path, opened: Archive, listed: bytes, signers: Path) -> str:
    if archive.MANIFEST_SIGNATURE not in opened.sizes:
        raise BundleError(
            f"Bundle {file} is not signed, and a signature was asked for.",
            hint="ask its author for a signed one (ktrial bundle --sign KEY), or leave --signers out",
        )
    signature = _small(file, opened, archive.MANIFEST_SIGNATURE, archive.SIGNATURE_MOST_BYTES)
    return archive.signer(file, signers, listed, signature)


def _read(file: Path, opened: Archive, digests: Mapping[str, str], name: str) -> bytes:
    if name not in digests:
        raise BundleDamaged(file, f"it has no {name}")
    content = opened.read(name)
    archive.check_content(file, name, content, digests)
    return content


def _contents(file: Path, content: bytes) -> BundleContents:
    data = _json(file, parts.CONTENTS, content)
    format_number = data.get("format") if isinstance(data, dict) else None
    if isinstance(format_number, int) and format_number > FORMAT:
        raise BadBundle(
            f"Bundle {file} was written by a newer ktrial (its format is {format_number}, this ktrial knows "
            f"{FORMAT}).",
            hint=f"use ktrial {data.get('ktrial', 'a newer one')} or later",
        )
    return _valid(file, parts.CONTENTS, lambda: BundleContents.model_validate(data))


def _text(file: Path, name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleDamaged(file, f"{name} is no text") from error


def _parsed(file: Path, name: str, content: bytes, model: type[Kind]) -> Kind:
    data = _json(file, name, content)
    return _valid(file, name, lambda: model.model_validate(data))


def _json(file: Path, name: str, content: bytes) -> Any:
    """The JSON, with all texts made printable: what a terminal or a page shows cannot do anything there."""
    try:
        return _harmless(json.loads(_text(file, name, content)), _MOST_DEPTH)
    except (ValueError, RecursionError) as error:
        raise BundleDamaged(file, f"{name} cannot be read as JSON") from error


def _harmless(data: Any, depth: int) -> Any:
    """Raises RecursionError where it is too deep."""
    if depth < 0:
        raise RecursionError
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, list):
        return [_harmless(value, depth - 1) for value in data]
    if isinstance(data, dict):
        return {printable(key): _harmless(value, depth - 1) for key, value in data.items()}
    return data


Made = TypeVar("Made")


def _valid(file: Path, name: str, make: Callable[[], Made]) -> Made:
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = f"{name}: {where}: {first['msg']}" if where else f"{name}: {first['msg']}"
        raise BundleDamaged(file, printable(problem)[:300]) from error


def _study(file: Path, content: bytes, contents: BundleContents) -> Study:
    """Raises BundleDamaged, BundleTooLarge."""
    study = _parsed(file, parts.STUDY, content, Study)
    _check_size(file, study, contents)
    as_it_was = _valid(file, parts.STUDY, lambda: Study.model_validate_json(content))
    if digest(as_it_was) != contents.study_digest:
        raise BundleDamaged(file, f"{parts.STUDY} is not the study of {parts.CONTENTS}")
    return study


def _check_size(file: Path, study: Study, contents: BundleContents) -> None:
    """Raise BundleTooLarge, BundleDamaged: what a study file could not ask for, a bundle cannot either."""
    levels = [len(factor.levels) for factor in study.factors]
    if max(levels, default=0) > _MOST_LEVELS or len(levels) > _MOST_LEVELS:
        raise BundleTooLarge(file, "its study has", "factors and levels", _MOST_LEVELS)
    sizes = {
        Design.FULL: math.prod(levels),
        Design.ONE_AT_A_TIME: sum(levels),
        Design.LISTED: len(study.listed),
    }
    trials = (sizes[study.design] + 1) * study.blocks
    if max(trials, contents.trials) > parts.MOST_TRIALS:
        counted = f"{max(trials, contents.trials)} trials"
        raise BundleTooLarge(file, "its study has", counted, parts.MOST_TRIALS)
    if study.machine.memory_mib > _MOST_MEMORY_MIB or study.machine.cpus > _MOST_CPUS:
        guest = f"{study.machine.memory_mib} MiB and {study.machine.cpus} CPUs for a guest"
        most = f"{_MOST_MEMORY_MIB} MiB and {_MOST_CPUS} CPUs"
        raise BundleTooLarge(file, "its study asks for", guest, most)


def _check_trial(file: Path, trial: Trial, planned: Mapping[str, PlannedTrial] | None) -> None:
    key = trial.planned.key
    if planned is not None and planned.get(key) != trial.planned:
        raise BundleDamaged(file, f"trial {key} is none that the study plans")
    numbers = [sample.value for sample in trial.samples] + [counter.delta for counter in trial.counters]
    if not all(map(math.isfinite, numbers)):
        raise BundleDamaged(file, f"trial {key} has a number that is none")


# A store that has what is in a bundle, for as long as it is looked at.


@contextmanager
def open_filled(file: Path, signers: Path | None = None) -> Iterator[tuple[Bundle, Store, StoredStudy]]:
    """The bundle, and a store that has its study, until the block ends. Raises what `open_bundle` raises."""
    with (
        open_bundle(file, signers) as bundle,
        tempfile.TemporaryDirectory(prefix="ktrial-bundle-") as directory,
        open_store(Path(directory) / "bundle.db") as store,
    ):
        number = bundle.fill(store)
        store.name = str(file)
        yield bundle, store, store.find(number)
