"""What installs the libraries of an optional part, by how this ktrial was installed."""

import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from ktrial.installation import how_to_add, how_to_install, package_directory


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that is called ktrial, without anything in it."""
    place = tmp_path / "ktrial"
    place.mkdir()
    monkeypatch.setattr(sys, "prefix", str(place))
    monkeypatch.setattr(sys, "executable", str(place / "bin/python"))
    return place


def test_in_an_environment_pip_installs_the_libraries_by_their_names(prefix: Path) -> None:
    command = shlex.split(how_to_add("serve"))
    assert command[:4] == [f"{prefix}/bin/python", "-m", "pip", "install"]
    assert [requirement.partition(">")[0] for requirement in command[4:]] == ["starlette", "uvicorn"]


@pytest.mark.parametrize(
    ("marker", "command"),
    [("pipx_metadata.json", "pipx inject ktrial fsspec"), ("uv-receipt.toml", "uv pip install --python ")],
)
def test_pipx_and_uv_have_commands_of_their_own(prefix: Path, marker: str, command: str) -> None:
    (prefix / marker).touch()
    assert how_to_install("fsspec").startswith(command)


def test_an_environment_without_pip_is_uvs(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert how_to_install("fsspec") == f"uv pip install --python {prefix}/bin/python fsspec"


def test_beside_a_system_package_they_go_where_it_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert f"--target {package_directory().parent} fsspec" in how_to_install("fsspec")


def test_without_metadata_the_checkout_is_named(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", unknown)
    assert how_to_add("serve").endswith(shlex.quote(f"{package_directory().parents[1]}[serve]"))
