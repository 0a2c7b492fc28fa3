"""Controlled trials for Linux kernels: whether a change matters, by how much, and why.

    import ktrial

    with ktrial.open_store() as store:
        print(store.result("quick").to_markdown())

The names in `__all__` are the public interface; `ktrial.plugins` has the protocols of extensions. All other
modules are ktrial's own, and change without notice. Importing ktrial costs next to nothing: what a name needs
is loaded when the name is used first.
"""

from importlib import import_module

from ktrial.installation import VERSION

TYPE_CHECKING = False
"""As `typing` has it, without what it costs to load that."""

if TYPE_CHECKING:
    from ktrial import plugins
    from ktrial.api import (
        Store,
        compare,
        explain,
        load_measurements,
        load_study,
        open_bundle,
        open_store,
        replicate,
        run,
        tree,
    )
    from ktrial.api.replicated import ReplicatedStudy
    from ktrial.api.result import StudyResult, Tree
    from ktrial.errors import KtrialError
    from ktrial.model.attribution import Attribution
    from ktrial.model.comparison import Comparison, Verdict
    from ktrial.model.design import Factor
    from ktrial.model.study import MachineSettings as Machine
    from ktrial.model.study import Study
    from ktrial.model.trial import Outcome, Trial
    from ktrial.model.workload import Sample
    from ktrial.model.workload import WorkloadUse as Workload

__version__ = VERSION

__all__ = [
    "Attribution",
    "Comparison",
    "Factor",
    "KtrialError",
    "Machine",
    "Outcome",
    "ReplicatedStudy",
    "Sample",
    "Store",
    "Study",
    "StudyResult",
    "Tree",
    "Trial",
    "Verdict",
    "Workload",
    "__version__",
    "compare",
    "explain",
    "load_measurements",
    "load_study",
    "open_bundle",
    "open_store",
    "plugins",
    "replicate",
    "run",
    "tree",
]

_FROM = {
    "Attribution": "ktrial.model.attribution:Attribution",
    "Comparison": "ktrial.model.comparison:Comparison",
    "Factor": "ktrial.model.design:Factor",
    "KtrialError": "ktrial.errors:KtrialError",
    "Machine": "ktrial.model.study:MachineSettings",
    "Outcome": "ktrial.model.trial:Outcome",
    "ReplicatedStudy": "ktrial.api.replicated:ReplicatedStudy",
    "Sample": "ktrial.model.workload:Sample",
    "Study": "ktrial.model.study:Study",
    "StudyResult": "ktrial.api.result:StudyResult",
    "Tree": "ktrial.api.result:Tree",
    "Trial": "ktrial.model.trial:Trial",
    "Verdict": "ktrial.model.comparison:Verdict",
    "Workload": "ktrial.model.workload:WorkloadUse",
}
"""Name → module and name there; all others of `__all__` are in `ktrial.api`."""


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'ktrial' has no attribute {name!r}; it has {', '.join(__all__)}")
        if name == "plugins":
            return import_module("ktrial.plugins")
        module, _, there = _FROM.get(name, f"ktrial.api:{name}").partition(":")
        return globals().setdefault(name, getattr(import_module(module), there))


def __dir__() -> list[str]:
    return sorted(__all__)
