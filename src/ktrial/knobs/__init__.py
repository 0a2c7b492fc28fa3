"""Knobs: what a kernel can be told, where, and how it is changed and put back.

    with changing(target, "my study", say=print) as changes:
        changes.apply(("vm.swappiness", "10"), ("queue/scheduler@vda", "none"))
        ...

The catalogue is in `ktrial.knobs.catalogue`, one file a subsystem.

Importing this package costs next to nothing: every command asks where the journal is. What a name needs is
loaded when the name is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.knobs.journal.apply import Applied, Changes, KnobSetting, apply, changing
    from ktrial.knobs.journal.journal import Entry, Journal, Owner, Stage
    from ktrial.knobs.journal.location import is_anything_to_undo, journal_directory
    from ktrial.knobs.journal.restore import LEFT, RestoreOutcome, Undone, abandoned, restore, tell
    from ktrial.knobs.lookup import KnobInstance, find, instances
    from ktrial.knobs.names import lenient_reference, reference
    from ktrial.knobs.system import Lister, System

__all__ = [
    "LEFT",
    "Applied",
    "Changes",
    "Entry",
    "Journal",
    "KnobInstance",
    "KnobSetting",
    "Lister",
    "Owner",
    "RestoreOutcome",
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

_FROM = {
    "Applied": "ktrial.knobs.journal.apply",
    "Changes": "ktrial.knobs.journal.apply",
    "RestoreOutcome": "ktrial.knobs.journal.restore",
    "Entry": "ktrial.knobs.journal.journal",
    "KnobInstance": "ktrial.knobs.lookup",
    "Journal": "ktrial.knobs.journal.journal",
    "LEFT": "ktrial.knobs.journal.restore",
    "Lister": "ktrial.knobs.system",
    "Owner": "ktrial.knobs.journal.journal",
    "KnobSetting": "ktrial.knobs.journal.apply",
    "Stage": "ktrial.knobs.journal.journal",
    "System": "ktrial.knobs.system",
    "Undone": "ktrial.knobs.journal.restore",
    "abandoned": "ktrial.knobs.journal.restore",
    "apply": "ktrial.knobs.journal.apply",
    "changing": "ktrial.knobs.journal.apply",
    "find": "ktrial.knobs.lookup",
    "instances": "ktrial.knobs.lookup",
    "is_anything_to_undo": "ktrial.knobs.journal.location",
    "journal_directory": "ktrial.knobs.journal.location",
    "lenient_reference": "ktrial.knobs.names",
    "reference": "ktrial.knobs.names",
    "restore": "ktrial.knobs.journal.restore",
    "tell": "ktrial.knobs.journal.restore",
}
"""Name → the module that has it."""


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in _FROM:
            raise AttributeError(f"module 'ktrial.knobs' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_FROM[name]), name))
