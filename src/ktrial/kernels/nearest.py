"""Name what was probably meant."""

import difflib
from collections.abc import Iterable


def nearest(wanted: str, known: Iterable[str], count: int = 3) -> str:
    """Return ` (did you mean a, b?)`, or an empty string where nothing is near."""
    matches = difflib.get_close_matches(wanted, list(known), n=count, cutoff=0.6)
    return f" (did you mean {', '.join(matches)}?)" if matches else ""
