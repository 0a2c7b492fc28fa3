"""The bundle's metadata as RO-Crate 1.1: a standard that repositories of research data read.

https://www.researchobject.org/ro-crate/specification/1.1/ (root data entity, data entities, provenance).
"""

import json
import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ktrial.bundle.contents import CRATE, BundleContents, KernelEntry
from ktrial.model.study_record import StudyRecord

_CONTEXT = "https://w3id.org/ro/crate/1.1/context"
_PROFILE = "https://w3id.org/ro/crate/1.1"
_KTRIAL, _QEMU = "#ktrial", "#qemu"
_TYPES = {"toml": "application/toml", "md": "text/markdown", "patch": "text/x-diff", "txt": "text/plain"}


class Described(NamedTuple):
    """One file of the bundle."""

    name: str
    size: int
    digest: str


def metadata(record: StudyRecord, contents: BundleContents, files: Sequence[Described]) -> bytes:
    """`ro-crate-metadata.json`: the same for the same bundle."""
    graph = [
        _descriptor(),
        _root(record, contents, files),
        *(_file(each) for each in files),
        *_software(contents),
        *(_kernel(each) for each in contents.kernels),
        _run(contents, files),
    ]
    document = {"@context": _CONTEXT, "@graph": graph}
    return (json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _descriptor() -> dict[str, Any]:
    return {
        "@id": CRATE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _PROFILE},
    }


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
        "hasPart": _references(each.name for each in files),
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
    own = {
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
    return [own, machine] if contents.qemu else [own]


def _kernel(entry: KernelEntry) -> dict[str, Any]:
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
    trials = (each.name for each in files if each.name.startswith("trials/"))
    return {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"{contents.trials} of {contents.planned} trials",
        "endTime": contents.ended.isoformat(),
        "instrument": _references((_KTRIAL, *((_QEMU,) if contents.qemu else ()))),
        "object": _references(("study.toml", *(_kernel_id(each) for each in contents.kernels))),
        "result": _references(trials),
    }


def _references(names: Any) -> list[Mapping[str, str]]:
    return [{"@id": name} for name in names]
