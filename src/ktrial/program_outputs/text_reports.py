"""Numbers in reports for people: each is there once, or it is not read."""

import re

from ktrial.program_outputs.errors import OutputDamaged


def only(pattern: str, text: str, format: str) -> str | None:
    """What the pattern's group finds; None where nothing matches. Raises OutputDamaged: it matches twice."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) > 1:
        problem = f"it is there {len(matches)} times: which of them counts, nobody can tell"
        raise OutputDamaged(format=format, where=_words(pattern), problem=problem)
    return str(matches[0]) if matches else None


def the_only(pattern: str, text: str, format: str) -> str:
    """The same; something has to match. Raises OutputDamaged."""
    value = only(pattern, text, format)
    if value is None:
        raise OutputDamaged(format=format, where=_words(pattern), problem="it is not there")
    return value


def _words(pattern: str) -> str:
    """The pattern's text, for people: without what is the pattern's own."""
    return " ".join(re.sub(r"\(\?:|\\[sSdbw][*+?]?|[\^$()*+?\\|]|\[.*?\]", " ", pattern).split()) or pattern
