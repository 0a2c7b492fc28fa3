"""Stores with a study, and bundles of it, made in a moment."""

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
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


# Bundles that somebody, or some disk, has changed: bytes of the archive, and what stands in its files.

_TEXTS = (
    *("", "\0", "../../etc/passwd", "<script>alert(1)</script>", "\x1b[2J", "\u202etxt.exe", "A" * 5000),
    *("NaN", "-Infinity", "9" * 5000, "${jndi:x}", "'; drop table trials; --", "{{ 7*7 }}", "%s%n", "\ud800"),
)


_NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**300,
    -(10**30),
    0.0,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
)


_OTHERS: tuple[Any, ...] = (None, True, [], {}, [[[[[]]]]], {"a": {"b": {}}})


def damaged(archive: bytes, draw: random.Random) -> bytes:
    """The archive with bytes changed, cut out, doubled, or moved."""
    made = bytearray(archive)
    for _ in range(draw.choice((1, 1, 1, 2, 5, 50))):
        if not made:
            break
        at, length = draw.randrange(len(made)), draw.choice((1, 1, 2, 4, 30, 1000))
        match draw.randrange(6):
            case 0:
                made[at] ^= 1 << draw.randrange(8)
            case 1:
                made[at : at + length] = draw.randbytes(length)
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = made[at : at + length]
            case 4:
                made[at : at + 4] = draw.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"PK\1\2", b"PK\5\6"))
            case _ if draw.random() < 0.3:
                del made[at:]
            case _:
                moved = made[at : at + length]
                del made[at : at + length]
                to = draw.randrange(len(made) + 1)
                made[to:to] = moved
    return bytes(made)


def forged_archive(files: Mapping[str, bytes], draw: random.Random) -> bytes:
    """An archive whose digests are right, and in whose files values, keys or whole parts are others."""
    made = dict(files)
    for _ in range(draw.choice((1, 1, 2, 4))):
        name = draw.choice(sorted(made))
        if name.endswith(".json"):
            made[name] = json.dumps(_changed(json.loads(made[name]), draw)).encode("utf-8", "surrogatepass")
        elif draw.random() < 0.5:
            made[name] = damaged(made[name], draw)
        else:
            del made[name]
    return packed(relisted(made))


def _changed(data: Any, draw: random.Random) -> Any:
    """The JSON with one value, somewhere, replaced."""
    places = list(_places(data))
    if not places:
        return draw.choice(_OTHERS)
    holder, key = draw.choice(places)
    if isinstance(holder, dict) and draw.random() < 0.15:
        holder[draw.choice(_TEXTS)] = holder.pop(key)
    elif isinstance(holder, dict) and draw.random() < 0.15:
        del holder[key]
    else:
        holder[key] = draw.choice((*_TEXTS, *_NUMBERS, *_OTHERS))
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield data, key
        yield from _places(value)
