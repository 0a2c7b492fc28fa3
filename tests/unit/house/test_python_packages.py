"""Which Python packages ktrial is set up with: the same ones everywhere, and told while they come."""

import os
import re
import tomllib
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.places import ROOT

CONSTRAINTS = ROOT / "setup" / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def script(name: str) -> ModuleType:
    """One of setup/, which nobody imports otherwise."""
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "setup" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def constraints() -> list[Requirement]:
    lines = CONSTRAINTS.read_text().replace("\\\n", " ").splitlines()
    return [Requirement(line.partition(" --hash=")[0]) for line in lines if not line.startswith("#")]


def versions(name: str, python: str) -> list[str]:
    """Those that the constraints allow of a package there."""
    return [
        str(one.specifier).removeprefix("==")
        for one in constraints()
        if canonicalize_name(one.name) == canonicalize_name(name)
        and (one.marker is None or one.marker.evaluate({"python_version": python}))
    ]


def named_dependencies() -> Iterator[Requirement]:
    """All that pyproject.toml names: for building, for use, of every extra."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = named["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    yield from map(Requirement, (*named["build-system"]["requires"], *project["dependencies"], *extras))


def test_every_dependency_has_one_version_on_every_python_and_it_is_allowed() -> None:
    for dependency in named_dependencies():
        for python in PYTHONS:
            (version,) = versions(dependency.name, python) or [""]
            assert dependency.specifier.contains(version), (
                f"{dependency} on {python}: setup/write-constraints"
            )


def test_constraints_name_versions_and_no_registry() -> None:
    text = CONSTRAINTS.read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-", text, re.MULTILINE), "no option of pip's: it is set up where it runs"
    assert all(re.fullmatch(r"==[^,*]+", str(one.specifier)) and not one.url for one in constraints())


def test_versions_that_pythons_do_not_share_get_markers_that_leave_no_gap() -> None:
    writer = script("write-constraints")
    shared = {"numpy": "2.4"}
    resolved = {
        "3.11": {"scipy": "1.17", **shared},
        "3.13": {"scipy": "1.18", **shared},
        "3.14": {"scipy": "1.18"},
    }
    assert list(writer.merged(resolved)) == [
        "numpy==2.4",
        'scipy==1.17 ; python_version < "3.13"',
        'scipy==1.18 ; python_version >= "3.13"',
    ]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "lib" / "python3.13" / "site-packages"


def installed(packages: Path, name: str, when: float) -> None:
    record = packages / f"{name}-1.0.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.touch()
    os.utime(record, (when, when))


def test_what_comes_is_told_and_how_much_of_it_is_installed(packages: Path) -> None:
    said: list[str] = []
    now = 1000.0
    installed(packages, "before", 999.0)
    teller = script("python-environment").Teller(packages, said.append, lambda: now)
    for seconds, line in (
        (1, "Collecting numpy>=2.0 (from ktrial==0.1.0)"),
        (6, "Collecting scipy>=1.14 (from ktrial==0.1.0)"),
        (7, "  Downloading scipy-1.17.1-cp311-cp311-manylinux_2_27_x86_64.whl (35.3 MB)"),
        (9, "Installing collected packages: numpy, scipy, ktrial"),
        (10, ""),
        (14, ""),
        (15, ""),
        (20, ""),
        (21, "Successfully installed ktrial-0.1.0 numpy-2.4.6 scipy-1.17.1"),
    ):
        now = 1000.0 + seconds
        if seconds == 15:
            installed(packages, "numpy", now)
        teller.hear(line)
    assert said == [
        "setup:   looking what is needed, 6 s so far",
        "setup:   scipy-1.17.1-cp311-cp311-manylinux_2_27_x86_64.whl (35.3 MB)",
        "setup: installing 3 packages",
        "setup:   0 of 3 packages are installed, 14 s so far",
        "setup:   1 of 3 packages are installed, 20 s so far",
        "setup: installed after 21 s",
    ]


def test_who_installs_the_newest_is_held_to_no_constraint() -> None:
    maker = script("python-environment")
    pinned, free = maker.environment(newest=False), maker.environment(newest=True)
    assert pinned["PIP_CONSTRAINT"] == pinned["PIP_BUILD_CONSTRAINT"] == "setup/constraints.txt"
    assert free.get("PIP_CONSTRAINT") == os.environ.get("PIP_CONSTRAINT")
    assert "--upgrade" in maker.pip_command(Path("pip"), [".[dev]"], newest=True)
    assert "--upgrade" not in maker.pip_command(Path("pip"), [".[dev]"], newest=False)
