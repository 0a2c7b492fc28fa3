"""Kernels in the order of their versions."""

import re

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[-~]?rc(\d+))?")
_NO_RC = 10**6

Order = tuple[int, int, int, int, str]


def version_order(text: str) -> Order:
    """A key to sort by: 6.1 before 6.12, 6.12-rc3 before 6.12, 6.12 before 6.12.5.

    `text` is what `uname -r` says, or a kernel's name; what holds no version comes last.
    """
    match = _RELEASE.search(text)
    if match is None:
        return (_NO_RC, 0, 0, 0, text)
    major, minor, patch, rc = match.groups()
    return (int(major), int(minor), int(patch or 0), int(rc) if rc else _NO_RC, text)


def series(text: str) -> tuple[int, int] | None:
    """`6.12` of a release or a name, as numbers; None where it holds none."""
    match = _RELEASE.search(text)
    return (int(match[1]), int(match[2])) if match else None
