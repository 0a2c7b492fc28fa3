"""Captures that are kept: the same command in the same place, with the same files, is not run again here."""

import contextlib
import os
from pathlib import Path

from pydantic import ValidationError

from ktrial.file_digests import digest_of_file, sealed, unsealed
from ktrial.installation import cache_directory
from ktrial.model.base import Model, digest
from ktrial.workloads.capture.captured import Captured
from ktrial.workloads.command import WORKLOAD
from ktrial.workloads.errors import WorkloadError

_FORMAT = 1


class _Kept(Model):
    captured: Captured
    content: str
    """The digest of all that is carried, but for what the command itself changed."""


def find(words: tuple[str, ...], directory: Path) -> Captured | None:
    """What was captured before; None where nothing was, or something of it is not as it was."""
    try:
        data = unsealed(_place(words, directory).read_bytes())
        known = _Kept.model_validate_json(data) if data else None
    except (OSError, ValidationError):
        return None
    if known is None or known.content != _content(known.captured):
        return None
    return known.captured


def keep(words: tuple[str, ...], directory: Path, captured: Captured) -> None:
    """Keep it for later commands; without it they capture anew, and nothing else depends on it."""
    content = _content(captured)
    place = _place(words, directory)
    if content:
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            new = place.with_suffix(f".{os.getpid()}")
            new.write_bytes(sealed(_Kept(captured=captured, content=content).model_dump_json().encode()))
            new.replace(place)


def _place(words: tuple[str, ...], directory: Path) -> Path:
    own = {name: os.environ.get(name, "") for name in ("PATH", "HOME")}
    return cache_directory() / "captures" / f"{digest([_FORMAT, words, str(directory), own])[:32]}.json"


def _content(captured: Captured) -> str:
    """Empty where it cannot be told: then it is not kept."""
    changed = set(captured.changed)
    try:
        carried = WORKLOAD.files(captured.use)
        return digest(
            [
                [
                    each.guest,
                    each.mode,
                    each.link,
                    "" if each.directory or each.link else digest_of_file(each.host),
                ]
                for each in carried
                if str(each.host) not in changed and each.guest not in changed
            ]
        )
    except (OSError, WorkloadError):
        return ""
