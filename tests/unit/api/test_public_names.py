"""Every name that another room may use says what it is."""

import ast
import importlib
import pkgutil
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import ktrial

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ktrial.__path__, "ktrial.")
    if not module.name.startswith("ktrial._")
)


def defined_names(module: ModuleType) -> set[str]:
    """Its own: not what it imports."""
    names: set[str] = set()
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_every_class_and_function_says_what_it_is(name: str) -> None:
    """With words of its own: neither inherited nor the signature that a dataclass gets."""
    module = importlib.import_module(name)
    objects = {name: getattr(module, name) for name in defined_names(module)}
    said = {
        name: str(each.__doc__ or "")
        for name, each in objects.items()
        if isinstance(each, type | FunctionType)
    }
    assert [name for name, text in said.items() if not text or text.startswith(f"{name}(")] == []


@pytest.mark.parametrize("name", MODULES)
def test_what_a_package_exports_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert [each for each in getattr(module, "__all__", ()) if not hasattr(module, each)] == []
