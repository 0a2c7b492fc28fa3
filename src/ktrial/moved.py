"""What other packages imported before ktrial's modules were ordered anew: each says where it is now.

Outside ktrial only `ktrial` and `ktrial.plugins` are to be imported. Whoever imports one of these modules is
told by the error which one replaced it.
"""

from ktrial.installation import package_directory

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MOVED = {
    "ktrial.extensions": "ktrial.plugin_discovery",
    "ktrial.faults": "ktrial.fault_points",
    "ktrial.kernels.catalogue": "ktrial.kernels.registry",
    "ktrial.kernels.provider": "ktrial.plugins",
    "ktrial.kernels.source": "ktrial.kernels.build",
    "ktrial.knobs.declare": "ktrial.knobs.catalogue.declare",
    "ktrial.machines.catalogue": "ktrial.machines.registry",
    "ktrial.model.advice": "ktrial.model.warnings",
    "ktrial.model.record": "ktrial.model.study_record",
    "ktrial.monitors.sampled": "ktrial.monitors.time_series",
    "ktrial.report.as_csv": "ktrial.report.csv",
    "ktrial.report.as_html": "ktrial.report.html.study",
    "ktrial.report.as_markdown": "ktrial.report.markdown.study",
    "ktrial.report.figures": "ktrial.format.number_format",
    "ktrial.report.why": "ktrial.report.text.attribution",
    "ktrial.report.words": "ktrial.format.labels",
    "ktrial.runner": "ktrial.experiment, ktrial.analysis, ktrial.studyfile",
    "ktrial.search": "ktrial.bisect, ktrial.optimize",
    "ktrial.stats.deterministic": "ktrial.stats.exact_comparison",
    "ktrial.stats.timed": "ktrial.stats.sequential",
    "ktrial.stats.unblocked": "ktrial.stats.independent",
    "ktrial.target.plan": "ktrial.target.guest_plan",
    "ktrial.workloads.carrying": "ktrial.workloads.host_files",
    "ktrial.workloads.extraction": "ktrial.workloads.command",
    "ktrial.workloads.finding": "ktrial.workloads.registry",
    "ktrial.workloads.installed": "ktrial.workloads.adapter",
    "ktrial.workloads.marked": "ktrial.workloads.marked_region",
    "ktrial.workloads.runs": "ktrial.workloads.program_runs",
}
"""Module → the module, or the several, that hold its contents now."""


class MovedModules:
    """A finder that is asked after all others, and tells where a module is that is no longer there."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Nothing is ever found. Raises ModuleNotFoundError for a module that was moved."""
        if name in MOVED:
            # Without the error's `name`: `from ktrial import runner` would drop an error that has it.
            raise ModuleNotFoundError(
                f"{name} is {MOVED[name]} now; other packages had better use ktrial and ktrial.plugins"
            )
        return None


def moved_error(name: str) -> type[Exception]:
    """The error of this name, which `ktrial.errors` had once; each room has its own now.

    Warns (DeprecationWarning). Raises AttributeError where there is none.
    """
    import warnings
    from importlib import import_module
    from pkgutil import walk_packages

    for module in walk_packages([str(package_directory())], "ktrial."):
        room, _, last = module.name.rpartition(".")
        if last.endswith("errors") and room != "ktrial":
            error = getattr(import_module(module.name), name, None)
            if isinstance(error, type) and issubclass(error, Exception):
                text = f"{name} is {error.__module__}.{name} now"
                warnings.warn(text, DeprecationWarning, stacklevel=3)
                return error
    raise AttributeError(f"module 'ktrial.errors' has no attribute {name!r}")
