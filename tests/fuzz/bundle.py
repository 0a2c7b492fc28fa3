"""Bundles, which anybody may send.

An input begins with a byte that says what follows: 0, the archive; else lines that change a sound bundle,
whose list of digests is then made to fit, as a forger does who has no key: `FILE PLACE VALUE` puts a value of
JSON at that place of a file, counted through, and `FILE - TEXT` makes the text all that the file holds.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ktrial.bundle.archive import (
    CONTENTS,
    MANIFEST,
    NOT_LISTED,
    STUDY,
    ArchiveEntry,
    manifest_text,
    write_archive,
)
from ktrial.bundle.reading import open_bundle
from ktrial.bundle.replicating import ReplicationRequest, study_again
from ktrial.errors import KtrialError
from ktrial.machines.qemu.process import memory_file
from ktrial.model.base import digest
from ktrial.model.study import Study

WORDS = (
    *(b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\7", b"bundle.json", b"study.json", b"manifest-sha256.txt"),
    *(
        b"result.json",
        b"kernel-differences.json",
        b"search.json",
        b"trials/00000.json",
        b"\n",
        b" - ",
        b"null",
    ),
    *(b"1e999", b"NaN", b"-1", b"9223372036854775808", b'"\\ud800"', b'"\\u001b[2J"', b"[]", b"{}", b"true"),
    *(b"1" + b"0" * 400, b"0.1", b'"exact"', b'"host"', b"[[[[[[[[", b"\xff\xff\xff\xff"),
)
_MOST_CHANGES = 8
SOUND = Path(__file__).parent / "corpus" / "bundle" / "sound"


def read(data: bytes) -> None:
    """Read all of a bundle, and what would be measured again."""
    how_far(data)


def how_far(data: bytes) -> str:
    """`read`, or the name of the error that says why it was not."""
    content = data[1:] if data[:1] == b"\0" else _forged(data[1:])
    with memory_file("bundle", content) as descriptor:
        try:
            with open_bundle(Path(f"/proc/{os.getpid()}/fd/{descriptor}")) as bundle:
                list(bundle.trials())
                bundle.result()
                bundle.differences()
                bundle.searched()
                study_again(bundle, ReplicationRequest())
        except KtrialError as error:
            return type(error).__name__
    return "read"


@cache
def _whole() -> dict[str, bytes]:
    """The files of the sound bundle that is among the inputs."""
    with zipfile.ZipFile(io.BytesIO(SOUND.read_bytes()[1:])) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def _forged(lines: bytes) -> bytes:
    files = dict(_whole())
    for line in lines.decode("utf-8", "replace").split("\n")[:_MOST_CHANGES]:
        name, place, value = (*line.split(" ", 2), "", "")[:3]
        if place == "-":
            files[name if name in files else STUDY] = value.encode("utf-8", "surrogatepass")
        elif name in files and place.isascii() and place.isdigit():
            with suppress(ValueError, RecursionError):
                files[name] = _replaced(files[name], int(place[:6]), json.loads(value))
    return packed(_with_digest(files))


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of these files, with a list of digests that fits them."""
    content = {name: data for name, data in files.items() if name not in NOT_LISTED}
    content[MANIFEST] = manifest_text(
        {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    ).encode()
    made = io.BytesIO()
    write_archive(made, (ArchiveEntry(name, data) for name, data in content.items()))
    return made.getvalue()


def _replaced(content: bytes, place: int, value: Any) -> bytes:
    made = json.loads(content)
    places = list(_places(made))
    if places:
        holder, key = places[place % len(places)]
        holder[key] = value
    return json.dumps(made).encode("utf-8", "surrogatepass")


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield data, key
        yield from _places(value)


def _with_digest(files: dict[str, bytes]) -> dict[str, bytes]:
    """The study's digest where its author would have written it."""
    with suppress(ValueError, TypeError, RecursionError):
        contents = dict(json.loads(files[CONTENTS]))
        contents["study_digest"] = digest(Study.model_validate_json(files[STUDY]))
        return {**files, CONTENTS: json.dumps(contents).encode()}
    return files
