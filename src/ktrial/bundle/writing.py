"""Writes a bundle: everything that the store has of a study, what it came from, and what a stranger needs."""

import contextlib
import hashlib
import io
import json
import mimetypes
import re
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ktrial import report
from ktrial.analysis.result import make_record
from ktrial.bundle import archive
from ktrial.bundle import archive as parts
from ktrial.bundle.archive import (
    CRATE,
    KERNELS,
    NAMESPACE,
    ArchiveEntry,
    BundleContents,
    Guests,
    KernelEntry,
    is_plain,
)
from ktrial.bundle.errors import BundleError, BundleNotWritten
from ktrial.experiment.explain import stored_explanations
from ktrial.format.sanitize import one_line
from ktrial.installation import VERSION, package_directory
from ktrial.kernels import kernel_registry
from ktrial.kernels.depmod import GENERATED
from ktrial.kernels.errors import KernelError
from ktrial.machines import guest_programs
from ktrial.model.design import FactorKind, scheduler_argv
from ktrial.model.kernel import Kernel, Patch
from ktrial.model.study import REAL_MACHINES, Study, StudyRecord, builds_of, kernel_of, treatments
from ktrial.model.trial import Trial
from ktrial.store.head_file import Head
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile.references import resolved
from ktrial.studyfile.writer import study_toml

Tell = Callable[[str], None]


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
    store: Store, stored: StoredStudy, file: Path, options: Wanted, tell: Tell = lambda _text: None
) -> Written:
    """Write the study's bundle; a half-written one is never left. One store's study gives the same bytes.

    Raises BundleError, StoreError.
    """
    tell("reading the trials")
    trials = _whole_trials(store, stored)
    without_parts = {"profiles": (), "sampled": ()}
    record = make_record(store, stored, tuple(trial.model_copy(update=without_parts) for trial in trials))
    contents = _contents(record, options, store.head_of_study(stored.id))
    if options.with_kernels and (missing := missing_files(contents.kernels)):
        problem = f"the cache has no {', '.join(missing)} any more"
        raise BundleError(
            f"Study {stored.study.name} cannot be bundled: {problem}.", hint="leave --with-kernels out"
        )
    tell("writing the page")
    entries = [
        *_of_study(store, stored, record, contents),
        *_of_trials(trials),
        *_patches(record.study),
        *entries_of_files(contents.kernels),
    ]
    tell("packing")
    packed = _packed(file, record, contents, entries, options.key)
    _replace(file, packed)
    digest = hashlib.sha256(packed).hexdigest()
    return Written(file.expanduser().absolute(), len(packed), digest, contents, options.key is not None)


def _whole_trials(store: Store, stored: StoredStudy) -> list[Trial]:
    """In run order, with their profiles and series. Raises BundleError where there are none."""
    trials = sorted(store.trials(stored.id), key=lambda trial: (trial.planned.order, trial.planned.key))
    if not trials:
        raise BundleError(
            f"Study {stored.study.name} cannot be bundled: no trial of it has ended.",
            hint=f"run it first: ktrial run {stored.study.name}",
        )
    labels = sorted(store.profiled(stored.id))

    def whole(trial: Trial) -> Trial:
        stored_profiles = (store.profile(stored.id, trial.planned.key, label) for label in labels)
        profiles = tuple(profile for profile in stored_profiles if profile)
        return trial.model_copy(
            update={"profiles": profiles, "sampled": store.sampled(stored.id, trial.planned.key)}
        )

    return [whole(trial) for trial in trials]


def _contents(record: StudyRecord, options: Wanted, head: Head | None) -> BundleContents:
    study, met = record.study, [trial.provenance for trial in record.trials]
    return BundleContents(
        ktrial=VERSION,
        study=study.name,
        study_digest=record.study_digest,
        created=record.created,
        ended=max(trial.started for trial in record.trials),
        planned=record.planned,
        trials=len(record.trials),
        store_entry=head.number if head else 0,
        store_head=head.digest if head else "",
        machine=study.machine.kind,
        versions=tuple(sorted({provenance.ktrial for provenance in met if provenance.ktrial})),
        qemu=tuple(sorted({provenance.qemu for provenance in met if provenance.qemu})),
        kernels=kernel_entries(study, record.trials, with_files=options.with_kernels),
        guests=published_guests(),
        patches={patch.digest: Path(patch.path).name for patch in patches_of(study)},
        host_files=host_files(study),
        licence=options.licence,
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
    whys = report.whys(store, record, stored_explanations)
    yield ArchiveEntry(parts.CONTENTS, _json(contents.model_dump(mode="json")))
    # The order of a workload's parameters is that of its program's arguments, which its digits depend on.
    yield ArchiveEntry(parts.STUDY, _json(record.study.model_dump(mode="json"), in_order=False))
    if not record.study.search:
        yield ArchiveEntry(parts.STUDY_FILE, study_toml(record.study).encode())
        yield ArchiveEntry(parts.RESULT, _json(record.result.model_dump(mode="json")))
        yield ArchiveEntry(parts.PAGE, report.study_html(record, whys).encode())
        yield ArchiveEntry(parts.MARKDOWN, report.study_markdown(record, whys).encode())
    if tuned := store.answer(stored.id):
        yield ArchiveEntry(parts.SEARCHED, _json(tuned.model_dump(mode="json")))
    yield ArchiveEntry(
        parts.DIFFERENCES, _json([difference.model_dump(mode="json") for difference in record.kernels])
    )
    yield ArchiveEntry(parts.PACKAGES, installed_packages().encode())
    yield ArchiveEntry(parts.README, readme_text(record, contents).encode())
    if licence := licence_text():
        yield ArchiveEntry(parts.LICENCE, licence)


def _of_trials(trials: Sequence[Trial]) -> Iterator[ArchiveEntry]:
    for number, trial in enumerate(trials):
        plain = trial.model_dump(mode="json", exclude={"profiles", "sampled"})
        yield ArchiveEntry(parts.trial_name(number), _json(plain))
        for kind, several in (("profiles", trial.profiles), ("series", trial.sampled)):
            for place, part in enumerate(several):
                text = _json(part.model_dump(mode="json", exclude_defaults=kind == "profiles"))
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
    entries = [*entries, ArchiveEntry(parts.CRATE, crate_metadata(record, contents, described))]
    digests = {entry.name: _described(entry).digest for entry in entries}
    listed = archive.manifest_text(digests).encode()
    entries.append(ArchiveEntry(archive.MANIFEST, listed))
    if key:
        entries.append(ArchiveEntry(archive.MANIFEST_SIGNATURE, archive.signed(file, key, listed)))
    archive_file = io.BytesIO()
    try:
        archive.write_archive(archive_file, entries)
    except OSError as error:
        raise BundleNotWritten(file, error.strerror or str(error)) from error
    if len(archive_file.getbuffer()) > archive.MOST_BYTES:
        problem = f"it would have more than the {archive.MOST_BYTES} bytes that a bundle may have"
        raise BundleNotWritten(file, problem, hint="leave --with-kernels out")
    return archive_file.getvalue()


class Described(NamedTuple):
    """One file of the bundle."""

    name: str
    size: int
    digest: str


def _described(entry: ArchiveEntry) -> Described:
    content = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
    return Described(entry.name, len(content), hashlib.sha256(content).hexdigest())


def _replace(file: Path, packed: bytes) -> None:
    absolute = file.expanduser().absolute()
    partial = absolute.with_name(f".{absolute.name}.partial")
    try:
        partial.write_bytes(packed)
        partial.replace(absolute)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            partial.unlink()
        raise BundleNotWritten(absolute, error.strerror or str(error)) from error


def _json(data: Any, *, in_order: bool = True) -> bytes:
    """Numbers with all their digits, and keys in order; else as they stand in the data."""
    text = json.dumps(data, indent=1, sort_keys=in_order, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


# The page in a bundle that tells a stranger what it is, and what to do with it.


def readme_text(record: StudyRecord, contents: BundleContents) -> str:
    """As Markdown, in lines that can also be read as they are."""
    parts = (_head(record, contents), _again(contents), _inside(), _kernels(contents), _rights(contents))
    return "\n".join(parts)


def _head(record: StudyRecord, contents: BundleContents) -> str:
    kinds = {"exact": "exact mode: the same numbers to the last digit on any machine"}
    measured = kinds.get(contents.machine, f"machine {contents.machine}: the statistics of repeated trials")
    return f"""# {_plain(contents.study)}: a study of Linux kernels, with all that it measured

This is a bundle of **ktrial** {contents.ktrial}, which runs controlled trials on Linux kernels.

Question: {_plain(record.study.question) or "none was written down"}

Answer: {_plain(record.result.answer)}

It comes from {contents.trials} of {contents.planned} planned trials, measured in {measured}.
"""


def _again(contents: BundleContents) -> str:
    if contents.machine in REAL_MACHINES:
        again = "It was measured on its author's machine itself; `ktrial run study.toml` repeats it on yours."
    else:
        again = "`ktrial replicate` runs all of it again in guests, and compares every number."
    return f"""## Check it

    ktrial show FILE.zip          the verdicts, worked out anew from the trials in here
    ktrial replicate FILE.zip     the same trials on your machine, compared digit by digit

{again}

Without ktrial: `report.html` shows the result in a browser, `sha256sum -c manifest-sha256.txt`
compares every file, and where there is a signature

    ssh-keygen -Y verify -f SIGNERS -I WHO -n {NAMESPACE} -s manifest-sha256.txt.sig < manifest-sha256.txt

says whether WHO of your file of allowed signers made it (ssh-keygen(1)).
"""


def _inside() -> str:
    return """## What is inside

| file | what it is |
| --- | --- |
| `study.toml`, `study.json` | the study: for people and `ktrial run`, and exactly as it was run |
| `trials/` | every trial: samples, counters, settings read back, console, all that can change a result |
| `profiles/`, `series/` | instructions by kernel function, and what was read over time, of each trial |
| `result.json`, `report.html`, `report.md` | the verdicts that came of it, and the page |
| `kernel-differences.json` | what differs between the kernels: options, packages, compilers |
| `bundle.json` | kernels by digest with what obtains them, guests' programs, versions of ktrial and QEMU |
| `packages.txt` | the Python packages that ktrial ran with when the bundle was made |
| `patches/`, `kernels/` | patches by digest; the kernels themselves, where the author put them in |
| `ro-crate-metadata.json` | the same for machines, as RO-Crate 1.1 has it |
| `manifest-sha256.txt` | the digest of every other file |
"""


def _kernels(contents: BundleContents) -> str:
    rows = "\n".join(_kernel(entry) for entry in contents.kernels)
    return f"## Kernels\n\n{rows or 'None is known.'}\n"


def _kernel(entry: KernelEntry) -> str:
    if not entry.digest:
        return f"- `{_plain(entry.asked)}` could not be had: no trial ran on it."
    where = "it is in here" if entry.files else ""
    obtain = f"`ktrial kernel add {entry.obtain}` brings it" if entry.obtain else ""
    source = "; ".join(filter(None, (where, obtain))) or "no command brings it: its author has it"
    description = f"Linux {entry.release}, {entry.package} (SHA-256 {entry.digest})"
    return f"- `{_plain(entry.asked)}` is {_plain(description)}: {source}."


def _rights(contents: BundleContents) -> str:
    data = f"What was measured: {contents.licence}." if contents.licence else _NO_LICENCE
    kernels = _KERNELS if any(entry.files for entry in contents.kernels) else ""
    page = "The page's scripts and style sheets are ktrial's: GPL-2.0-or-later."
    return f"## Licences\n\n{data} {page}{kernels}\n"


_NO_LICENCE = "What was measured: its author chose no licence, so ask before you publish it elsewhere."


_KERNELS = (
    " The kernels in `kernels/` are GPL-2.0-only with the Linux system call note; the packages named above "
    "are built from sources that their distribution offers under the same names and versions."
)


def _plain(readme_text: str) -> str:
    """On one line, and no markup."""
    return one_line(readme_text).replace("<", "&lt;").replace("`", "'").replace("|", "/")


# The bundle's metadata as RO-Crate 1.1: a standard that repositories of research data read.
#
# https://www.researchobject.org/ro-crate/specification/1.1/ (root data entity, data entities, provenance).

_CONTEXT = "https://w3id.org/ro/crate/1.1/context"


_PROFILE = "https://w3id.org/ro/crate/1.1"


_KTRIAL, _QEMU = "#ktrial", "#qemu"


_TYPES = {"toml": "application/toml", "md": "text/markdown", "patch": "text/x-diff", "txt": "text/plain"}


def crate_metadata(record: StudyRecord, contents: BundleContents, files: Sequence[Described]) -> bytes:
    """`ro-crate-metadata.json`: the same for the same bundle."""
    graph = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": _PROFILE},
        },
        _root(record, contents, files),
        *(_file(file) for file in files),
        *_software(contents),
        *(_crate_kernel(entry) for entry in contents.kernels),
        _run(contents, files),
    ]
    document = {"@context": _CONTEXT, "@graph": graph}
    return (json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _root(record: StudyRecord, contents: BundleContents, files: Sequence[Described]) -> dict[str, Any]:
    licence = f"https://spdx.org/licenses/{contents.licence}" if contents.licence else ""
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"ktrial study {contents.study}",
        "description": record.study.question or record.result.answer or f"The study {contents.study}",
        "abstract": record.result.answer,
        "datePublished": contents.ended.date().isoformat(),
        "identifier": contents.study_digest,
        "license": {"@id": licence} if licence else "Its author chose no licence: ask before you reuse it.",
        "hasPart": _references(file.name for file in files),
        "mentions": [{"@id": "#run"}],
    }


def _file(file: Described) -> dict[str, Any]:
    ending = file.name.rpartition(".")[2]
    guessed = _TYPES.get(ending) or mimetypes.guess_type(file.name, strict=True)[0]
    return {
        "@id": file.name,
        "@type": "File",
        "name": file.name,
        "contentSize": str(file.size),
        "encodingFormat": guessed or "application/octet-stream",
        "sha256": file.digest,
    }


def _software(contents: BundleContents) -> list[dict[str, Any]]:
    versions = contents.versions or (contents.ktrial,)
    ktrial = {
        "@id": _KTRIAL,
        "@type": "SoftwareApplication",
        "name": "ktrial",
        "softwareVersion": ", ".join(versions),
        "license": {"@id": "https://spdx.org/licenses/GPL-2.0-or-later"},
    }
    machine = {
        "@id": _QEMU,
        "@type": "SoftwareApplication",
        "name": "QEMU",
        "softwareVersion": ", ".join(contents.qemu),
    }
    return [ktrial, machine] if contents.qemu else [ktrial]


def _crate_kernel(entry: KernelEntry) -> dict[str, Any]:
    return {
        "@id": _kernel_id(entry),
        "@type": "SoftwareApplication",
        "name": f"Linux {entry.release}".strip(),
        "alternateName": entry.asked,
        "softwareVersion": entry.package or entry.release,
        "identifier": entry.digest,
        "license": {"@id": "https://spdx.org/licenses/GPL-2.0-only"},
    }


def _kernel_id(entry: KernelEntry) -> str:
    return f"#kernel-{entry.digest[:16] or 'not-had'}-{_fragment(entry.asked)}"


def _fragment(text: str) -> str:
    """`text` as a part of an IRI's fragment."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)


def _run(contents: BundleContents, files: Sequence[Described]) -> dict[str, Any]:
    """That the trials came of running the study (provenance: a CreateAction)."""
    trials = (file.name for file in files if file.name.startswith("trials/"))
    return {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"{contents.trials} of {contents.planned} trials",
        "endTime": contents.ended.isoformat(),
        "instrument": _references((_KTRIAL, *((_QEMU,) if contents.qemu else ()))),
        "object": _references(("study.toml", *(_kernel_id(entry) for entry in contents.kernels))),
        "result": _references(trials),
    }


def _references(names: Any) -> list[Mapping[str, str]]:
    return [{"@id": name} for name in names]


# With what a bundle was made: versions of packages, ktrial's own programs.

_NAME = re.compile(r"[A-Za-z0-9._-]+")


_REVISION = "REVISION"


_COMMIT = re.compile(r"[0-9a-f]{40}")
"""Written beside the guest programs when a wheel is built."""


def installed_packages() -> str:
    """The Python packages that ktrial needs, as they are installed: a line each, `numpy==2.1.0`."""
    seen: dict[str, str] = {}
    waiting = deque(["ktrial"])
    while waiting:
        name = _canonical(waiting.popleft())
        if name in seen:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another system or Python: a marker of the requirement says so
        seen[name] = distribution.version
        needed = (text for text in distribution.requires or [] if "extra ==" not in text)
        waiting.extend(match[0] for text in needed if (match := _NAME.match(text)))
    return "".join(f"{name}=={seen[name]}\n" for name in sorted(seen))


def _canonical(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def published_guests() -> Guests:
    """The guest's programs that come with this ktrial, and the revision that they were built from."""
    where = guest_programs.directory()
    return Guests(revision=_revision(where), programs=guest_programs.published(where))


def _revision(where: Path) -> str:
    try:
        noted = (where.parent / _REVISION).read_text("ascii").strip()
    except (OSError, ValueError):
        noted = _last_commit(package_directory().parents[1])
    return noted if _COMMIT.fullmatch(noted) else ""


def _last_commit(checkout: Path) -> str:
    """Of the guest programs' sources, in a checkout of ktrial; empty in any other place."""
    if not (checkout / "crates" / "agent").is_dir():
        return ""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%H", "--", "crates"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def licence_text() -> bytes:
    """The GNU General Public License, version 2: ktrial's, and Linux's."""
    package = package_directory()
    places = (package / "LICENSE", package.parents[1] / "LICENSE")
    return next((place.read_bytes() for place in places if place.is_file()), b"")


# The kernels of a study, by digest, with what obtains them again, and their files.

IMAGE, CONFIG, SYSTEM_MAP, MODULES = "vmlinuz", "config", "System.map", "modules"


def kernel_entries(study: Study, trials: Sequence[Trial], *, with_files: bool) -> tuple[KernelEntry, ...]:
    """One for each name, in the order of the treatments."""
    ran = {
        trial.planned.treatment.key: trial.provenance for trial in trials if trial.provenance.kernel_digest
    }
    entries: dict[str, KernelEntry] = {}
    full = resolved(study)
    for treatment in treatments(full):
        name = kernel_of(full, treatment).label
        met = ran.get(treatment.key)
        if name in entries and (met is None or entries[name].digest):
            continue
        if met is None:
            entries[name] = KernelEntry(asked=name)
            continue
        kernel = cached(met.kernel_digest)
        entries[name] = KernelEntry(
            asked=name,
            release=met.kernel_release,
            digest=met.kernel_digest,
            config_digest=met.config_digest,
            package=met.kernel_package,
            origin=kernel.origin if kernel else None,
            obtain=_obtained_by(met.kernel, met.kernel_release, kernel),
            files=tuple(name for name, _ in _files(kernel)) if kernel and with_files else (),
        )
    return tuple(entries.values())


def cached(digest: str) -> Kernel | None:
    """The kernel of this content, where the cache has it."""
    try:
        return kernel_registry.get(digest) if digest else None
    except KernelError:
        return None


def _obtained_by(name: str, release: str, kernel: Kernel | None) -> str:
    """Debian's packages are named by what `uname -r` says, which is of one build."""
    provider = kernel.origin.provider if kernel else name.partition(":")[0]
    return f"debian:{release}" if provider == "debian" and release else ""


def entries_of_files(entries: Sequence[KernelEntry]) -> Iterator[ArchiveEntry]:
    """The kernels' files for the archive: those that the entries list."""
    for entry in {entry.digest: entry for entry in entries if entry.files}.values():
        kernel = cached(entry.digest)
        for name, path in _files(kernel) if kernel else ():
            yield ArchiveEntry(f"{KERNELS}/{entry.digest}/{name}", path)


def missing_files(entries: Sequence[KernelEntry]) -> list[str]:
    """Names of the kernels whose files are wanted and not in the cache any more."""
    return [entry.asked for entry in entries if entry.digest and not entry.files]


def _files(kernel: Kernel) -> Iterator[tuple[str, Path]]:
    yield IMAGE, kernel.image
    if kernel.config:
        yield CONFIG, kernel.config
    system_map = kernel.image.with_name(SYSTEM_MAP)
    if system_map.is_file():
        yield SYSTEM_MAP, system_map
    if kernel.modules is None:
        return
    for path in sorted(kernel.modules.rglob("*")):
        if path.is_file() and path.name not in GENERATED:
            name = f"{MODULES}/{path.relative_to(kernel.modules)}"
            if is_plain(f"{KERNELS}/{kernel.digest}/{name}"):
                yield name, path
