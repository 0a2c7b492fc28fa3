"""Where snapshots are kept, and how much room they may take."""

import os
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.machines.errors import BadSetting
from ktrial.model.quantities import size_bytes

LIMIT = "KTRIAL_SNAPSHOT_LIMIT"
DEFAULT_LIMIT = 10 << 30


def snapshots_directory() -> Path:
    """`snapshots` below KTRIAL_CACHE, which is the user's cache directory where it is not set."""
    return cache_directory() / "snapshots"


def snapshots_limit() -> int:
    """Bytes that all snapshots together may take, from KTRIAL_SNAPSHOT_LIMIT. Raises BadSetting."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    try:
        return size_bytes(text, bare=True)
    except ValueError:
        problem = "allowed is a size in bytes, or with K, M, G or T: 10G"
        raise BadSetting(variable=LIMIT, value=text, problem=problem) from None
