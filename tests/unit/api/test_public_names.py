"""`import ktrial` has these names, and no others; every name that another room may use says what it is."""

import ast
import importlib
import pkgutil
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import ktrial

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ktrial.__path__, "ktrial.")
    if not module.name.startswith("ktrial._")
)


PUBLIC = {
    *("Study", "Factor", "Workload", "Machine", "load_study"),
    *("run", "compare", "explain", "StudyResult", "Attribution"),
    *("open_store", "Store", "Comparison", "Verdict", "Trial", "Sample", "Outcome"),
    *("open_bundle", "replicate", "ReplicatedStudy", "tree", "Tree"),
    *("load_measurements", "KtrialError", "plugins", "__version__"),
}
METHODS = {
    "StudyResult": {
        *("name", "study", "answer", "comparisons", "trials", "warnings", "complete"),
        *("to_html", "to_markdown", "to_csv", "to_frame", "to_parquet", "chart", "bundle"),
    },
    "ReplicatedStudy": {"replication", "identical", "to_html"},
    "Tree": {"parts"},
    "Store": {"result", "studies", "close"},
    "Factor": {"of"},
    "KtrialError": {"text", "advice", "hint", "exit_code"},
}
PLUGINS = {
    "Workload",
    "Machine",
    "Monitor",
    "OutputFormat",
    "KernelProvider",
    "Importer",
    "Knob",
    "ProfileExport",
}


def test_the_public_names_are_these() -> None:
    assert set(ktrial.__all__) == set(dir(ktrial)) == PUBLIC
    assert set(ktrial.plugins.__all__) == set(dir(ktrial.plugins)) == PLUGINS
    for name in PUBLIC | {f"plugins.{entry}" for entry in PLUGINS}:
        assert attrgetter(name)(ktrial) is not None


@pytest.mark.parametrize("name", METHODS)
def test_what_ktrial_adds_to_a_class_is_this(name: str) -> None:
    own = {entry for entry in vars(getattr(ktrial, name)) if not entry.startswith(("_", "model_"))}
    assert own == METHODS[name]


@pytest.mark.parametrize("name", ["Studdy", "runner", "load", "__wrapped__"])
def test_any_other_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}'; it has Attribution, Comparison, Factor"):
        getattr(ktrial, name)


def defined_names(module: ModuleType) -> set[str]:
    """Its own: not what it imports."""
    names: set[str] = set()
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_every_class_and_function_says_what_it_is(name: str) -> None:
    """With words of its own: neither inherited nor a dataclass's signature; an error has its text."""
    module = importlib.import_module(name)
    objects = {name: getattr(module, name) for name in defined_names(module)}
    said = {
        name: str(entry.__doc__ or getattr(entry, "text", ""))
        for name, entry in objects.items()
        if isinstance(entry, type | FunctionType)
    }
    assert [name for name, text in said.items() if not text or text.startswith(f"{name}(")] == []


@pytest.mark.parametrize("name", MODULES)
def test_what_a_package_exports_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert [entry for entry in getattr(module, "__all__", ()) if not hasattr(module, entry)] == []
