"""Where the journal of changes is. Imported by every command: nothing else is, here."""

import os
from pathlib import Path

VARIABLE = "KTRIAL_JOURNAL"
CHANGES = "changes"
"""The directory of the entries; it is there only while something is to be undone."""
_OF_ROOT = Path("/var/lib/ktrial/journal")


def journal_directory() -> Path:
    """`KTRIAL_JOURNAL`; else /var/lib/ktrial/journal for root, and the user's state directory for others."""
    if named := os.environ.get(VARIABLE, ""):
        return Path(named).expanduser().absolute()
    if os.geteuid() == 0:
        return _OF_ROOT
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG base directory specification: a path that is not absolute is ignored.
    top = Path(state) if Path(state).is_absolute() else Path.home() / ".local/state"
    return top / "ktrial" / "journal"


def is_anything_to_undo() -> bool:
    """One stat: whether there are entries at all."""
    try:
        return (journal_directory() / CHANGES).exists()
    except PermissionError:
        return False  # whoever may not look there has changed nothing from there
