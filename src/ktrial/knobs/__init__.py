"""Knobs: what a kernel can be told, where, and how it is changed and put back.

    with changing(target, "my study", say=print) as changes:
        changes.apply(("vm.swappiness", "10"), ("queue/scheduler@vda", "none"))
        ...

The catalogue is in `ktrial.knobs.catalogue`, one file a subsystem.
"""

from ktrial.knobs.journal.apply import Applied, Changes, Setting, apply, changing
from ktrial.knobs.journal.journal import Entry, Journal, Owner, Stage
from ktrial.knobs.journal.location import is_anything_to_undo, journal_directory
from ktrial.knobs.journal.restore import LEFT, Ending, Undone, abandoned, restore, tell
from ktrial.knobs.lookup import Found, find, instances
from ktrial.knobs.names import lenient_reference, reference
from ktrial.knobs.system import Lister, System

__all__ = [
    "LEFT",
    "Applied",
    "Changes",
    "Ending",
    "Entry",
    "Found",
    "Journal",
    "Lister",
    "Owner",
    "Setting",
    "Stage",
    "System",
    "Undone",
    "abandoned",
    "apply",
    "changing",
    "find",
    "instances",
    "is_anything_to_undo",
    "journal_directory",
    "lenient_reference",
    "reference",
    "restore",
    "tell",
]
