"""Where snapshots are kept, and how much room they may take."""

import os
import re
from pathlib import Path

import platformdirs

from ktrial.machines.errors import BadSetting

CACHE = "KTRIAL_CACHE"
LIMIT = "KTRIAL_SNAPSHOT_LIMIT"
DEFAULT_LIMIT = 10 << 30

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def snapshots_directory() -> Path:
    """`snapshots` below KTRIAL_CACHE, which is the user's cache directory where it is not set."""
    named = os.environ.get(CACHE)
    return Path(named or platformdirs.user_cache_dir("ktrial")).absolute() / "snapshots"


def snapshots_limit() -> int:
    """Bytes that all snapshots together may take, from KTRIAL_SNAPSHOT_LIMIT. Raises BadSetting."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"(\d{1,15}) ?([KMGT]?)(iB|B)?", text)
    if not match:
        raise BadSetting(
            variable=LIMIT, value=text, problem="allowed is a size in bytes, or with K, M, G or T: 10G"
        )
    return int(match[1]) * _UNITS[match[2]]
