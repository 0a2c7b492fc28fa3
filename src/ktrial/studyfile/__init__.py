"""Study files: TOML in, a checked Study out, and every mistake with its line, its key and what is allowed.

Importing this package costs next to nothing: what a name needs is loaded when the name is used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.references import resolved
    from ktrial.studyfile.registry import Registry
    from ktrial.studyfile.study_reader import load, study_from
    from ktrial.studyfile.workloads import workload_from_file

__all__ = ["Registry", "StudySource", "load", "resolved", "study_from", "workload_from_file"]

_FROM = {
    "Registry": "ktrial.studyfile.registry",
    "StudySource": "ktrial.studyfile.diagnostics",
    "load": "ktrial.studyfile.study_reader",
    "resolved": "ktrial.studyfile.references",
    "study_from": "ktrial.studyfile.study_reader",
    "workload_from_file": "ktrial.studyfile.workloads",
}
"""Name → the module that has it."""


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in _FROM:
            raise AttributeError(f"module 'ktrial.studyfile' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_FROM[name]), name))
