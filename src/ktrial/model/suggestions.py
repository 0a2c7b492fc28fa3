"""Name what was probably meant."""

import difflib
from collections.abc import Iterable


def nearest(wanted: str, known: Iterable[str], count: int = 3) -> str:
    """Return ` (did you mean a, b or c?)`, or an empty string where nothing is near."""
    *first, last = difflib.get_close_matches(wanted, list(known), n=count) or [""]
    if not last:
        return ""
    return f" (did you mean {' or '.join(filter(None, [', '.join(first), last]))}?)"
