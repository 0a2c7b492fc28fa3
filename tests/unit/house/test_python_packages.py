"""Which Python packages ktrial is set up with: the same ones everywhere, and told while they come."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from importlib.metadata import PackageNotFoundError, requires
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


@cache
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
        "3.12": {"scipy": "1.17", **shared},
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
        (27, ""),
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
        "setup:   building ktrial, 27 s so far",
    ]


def test_who_installs_the_newest_is_held_to_no_constraint() -> None:
    maker = script("python-environment")
    pinned, free = maker.environment(pinned=True), maker.environment(pinned=False)
    assert pinned["PIP_CONSTRAINT"] == pinned["PIP_BUILD_CONSTRAINT"] == "setup/constraints.txt"
    assert free.get("PIP_CONSTRAINT") == os.environ.get("PIP_CONSTRAINT")
    assert "--upgrade" in maker.pip_command(Path("pip"), [".[dev]"], newest=True)
    assert "--upgrade" not in maker.pip_command(Path("pip"), [".[dev]"], newest=False)


DIGESTS = ROOT / "setup" / "digests"
SETS = sorted(file.stem for file in DIGESTS.glob("*.txt"))


def with_digests(of: str) -> Iterator[tuple[Requirement, list[str]]]:
    """What a set has, with what it contains: each package's version, and the digests of its files."""
    for line in (DIGESTS / f"{of}.txt").read_text().replace("\\\n", " ").splitlines():
        if line.startswith("-r "):
            yield from with_digests(line.removeprefix("-r ").removesuffix(".txt"))
        elif not line.startswith("#"):
            requirement, *digests = line.split(" --hash=sha256:")
            yield Requirement(requirement), [digest.strip() for digest in digests]


def versions_with_digests(of: str, python: str) -> dict[str, str]:
    there = [
        (canonicalize_name(one.name), str(one.specifier).removeprefix("=="))
        for one, _ in with_digests(of)
        if one.marker is None or one.marker.evaluate({"python_version": python})
    ]
    assert len(dict(there)) == len(there), "pip refuses a package that is named twice"
    return dict(there)


@pytest.mark.parametrize("of", SETS)
def test_every_version_that_is_installed_has_digests_and_is_that_of_the_constraints(of: str) -> None:
    for requirement, digests in with_digests(of):
        assert digests, requirement
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests), requirement
    for python in PYTHONS:
        for name, version in versions_with_digests(of, python).items():
            assert versions(name, python) == [version], f"{name} on {python}: setup/write-constraints --keep"


def test_digests_name_no_registry() -> None:
    lines = [line for file in DIGESTS.glob("*.txt") for line in file.read_text().splitlines()]
    assert "://" not in "".join(lines)
    text = "\n".join(line for line in lines if not line.startswith("#"))
    assert set(re.findall(r"^-\S*|--\w[\w-]*", text, re.MULTILINE)) == {"-r", "--hash"}


@pytest.mark.parametrize(
    ("requirement", "extras"), [(".", ()), (".[dev]", ("dev",)), (".[dev,mutation]", ("dev", "mutation"))]
)
def test_a_set_has_all_that_pyproject_names_for_it_and_what_builds_ktrial(
    requirement: str, extras: tuple[str, ...]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in extras:
        named += project["project"]["optional-dependencies"][extra]
    for python in PYTHONS:
        there = versions_with_digests(script("python-environment").SETS[requirement], python)
        for one in map(Requirement, (*named, "editables")):
            if one.marker is None or one.marker.evaluate({"python_version": python}):
                assert one.specifier.contains(there[canonicalize_name(one.name)]), f"{one} on {python}"


def test_what_is_installed_here_needs_nothing_that_has_no_digest() -> None:
    """By what the packages say themselves: with a hole pip would end, and not before it has fetched a lot."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    there = versions_with_digests("dev", python)
    for name in there:
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue  # what builds ktrial may be elsewhere
        for one in map(Requirement, needs):
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                assert canonicalize_name(one.name) in there, f"{name} needs {one}"


def test_both_scripts_are_for_the_same_pythons() -> None:
    assert script("python-environment").PYTHONS == script("write-constraints").PYTHONS == PYTHONS
    assert sorted(set(script("python-environment").SETS.values())) == SETS


def a_wheel(directory: Path, name: str, text: str = "") -> str:
    """Writes one, and returns its digest."""
    file = directory / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr(f"{name}.py", text)
        wheel.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return sha256(file.read_bytes()).hexdigest()


def test_a_file_with_another_digest_is_not_installed(tmp_path: Path) -> None:
    maker = script("python-environment")
    (tmp_path / "setup/digests").mkdir(parents=True)
    digest = a_wheel(tmp_path, "harmless")
    (tmp_path / "setup/digests/docs.txt").write_text(f"harmless==1.0 --hash=sha256:{digest}\n")
    (command,) = maker.compared_commands(Path("pip"), ["mkdocs-material"])

    def installs(where: str) -> "subprocess.CompletedProcess[str]":
        words = [
            sys.executable,
            "-m",
            *command,
            "--no-index",
            "--find-links",
            tmp_path,
            "--target",
            tmp_path / where,
        ]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    ended = installs("first")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "first/harmless.py").exists()
    a_wheel(tmp_path, "harmless", "print('what somebody put there')")
    ended = installs("second")
    assert ended.returncode != 0
    assert "DO NOT MATCH THE HASHES" in ended.stderr
    assert not (tmp_path / "second/harmless.py").exists()


def test_ktrial_itself_is_built_by_what_was_compared_and_fetches_nothing() -> None:
    compared, own = script("python-environment").compared_commands(Path("pip"), [".[dev]"])
    assert {"--require-hashes", "setup/digests/dev.txt"} <= {*compared}
    assert {"--no-index", "--no-deps", "--no-build-isolation", "--editable", "."} <= {*own}
