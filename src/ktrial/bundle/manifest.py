"""The list of a bundle's files with their digests: what is signed, and what `sha256sum -c` reads."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from ktrial.bundle.errors import BundleDamaged

NAME = "manifest-sha256.txt"
SIGNATURE = NAME + ".sig"
NOT_LISTED = frozenset({NAME, SIGNATURE})
MOST_BYTES = 32 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def text_of(digests: Mapping[str, str]) -> str:
    """Name → SHA-256, as the program sha256sum writes it."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def parsed(file: Path, text: str) -> dict[str, str]:
    """What `text_of` wrote. Raises BundleDamaged."""
    digests: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or match[2] in digests:
            raise BundleDamaged(file=file, problem=f"a line of {NAME} cannot be read")
        digests[match[2]] = match[1]
    return digests


def check_names(file: Path, digests: Mapping[str, str], there: set[str]) -> None:
    """Raise BundleDamaged where a file is missing, or one is there that is not listed."""
    if missing := sorted(digests.keys() - there):
        raise BundleDamaged(file=file, problem=f"{missing[0]} is missing")
    if more := sorted(there - digests.keys() - NOT_LISTED):
        raise BundleDamaged(file=file, problem=f"{more[0]} is not in {NAME}")


def check_content(file: Path, name: str, content: bytes, digests: Mapping[str, str]) -> None:
    """Raise BundleDamaged where the content is not what was listed."""
    if digests.get(name) != hashlib.sha256(content).hexdigest():
        raise BundleDamaged(file=file, problem=f"{name} is not what {NAME} says")
