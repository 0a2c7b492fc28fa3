"""The wheel: two builds are identical, it installs into an environment of its own, programs can use it."""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.support.places import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def ran(*command: object, cwd: Path = ROOT) -> str:
    ended = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def built(where: Path, what: str = "--wheel") -> Path:
    ran(sys.executable, "-m", "build", what, "--outdir", where)
    (built,) = where.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def installed(wheel: Path, large_shared_path: Path) -> Path:
    """The directory of programs of an environment that has the wheel, and tools to look at it with."""
    where = large_shared_path / "environment"
    venv.create(where, with_pip=True)
    constraints = ("--constraint", ROOT / "setup/constraints.txt")
    ran(where / "bin/pip", "install", "--quiet", *constraints, wheel, "mypy", "twine")
    return where / "bin"


def test_two_builds_are_identical(wheel: Path, tmp_path: Path) -> None:
    again = built(tmp_path)
    assert again.name == wheel.name
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (wheel, again)]
    assert digests[0] == digests[1]


def test_it_brings_guests_studies_pages_and_the_licence(installed: Path, tmp_path: Path) -> None:
    assert ran(installed / "ktrial", "--version", cwd=tmp_path).startswith("ktrial ")
    assert "quick" in ran(installed / "ktrial", "run", "--list", cwd=tmp_path)
    assert "Bundles" in ran(installed / "ktrial", "help", "bundles", cwd=tmp_path)
    code = (
        "from ktrial.bundle import writing; built = writing.published_guests();"
        "assert len(built.revision) == 40 and len(built.programs) > 5, built;"
        "assert b'GNU GENERAL PUBLIC LICENSE' in writing.licence_text()"
    )
    ran(installed / "python", "-c", code, cwd=tmp_path)


def test_it_shows_a_bundle(installed: Path, tmp_path: Path) -> None:
    shown = ran(installed / "ktrial", "show", ROOT / "docs/notebooks/quick.zip", cwd=tmp_path)
    assert "fork               100,281      115,122  +14.80 %" in shown


def test_twine_has_nothing_to_say(installed: Path, wheel: Path) -> None:
    assert "PASSED" in ran(installed / "twine", "check", "--strict", wheel)


def test_a_program_that_uses_it_is_typed_strictly(installed: Path, tmp_path: Path) -> None:
    example = Path(__file__).with_name("example_of_use.py")
    (tmp_path / "example.py").write_text(example.read_text())
    ran(installed / "mypy", "--strict", "example.py", cwd=tmp_path)


def test_the_sdist_builds_the_same_program(tmp_path: Path) -> None:
    assert built(tmp_path, "--sdist").name.endswith(".tar.gz")
