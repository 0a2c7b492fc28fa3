"""Kernels built by content: what is built once, what is built again, what is kept. No compiler runs."""

from pathlib import Path

import pytest
from tests.unit.source_trees import a_source_tree

from ktrial import kernels
from ktrial.kernels.source import build, cached, requested
from ktrial.model.build import Build


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.source.builds.check_tools", lambda *_, **__: None)
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_source_tree(tmp_path / "linux")


def asked(source: Path | str, **parts: object) -> Build:
    return requested(str(source), directory=Path("/"), **parts)  # type: ignore[arg-type]


def test_a_build_is_in_the_cache_under_its_name(source: Path) -> None:
    wanted = asked(source, options=["HZ_1000=y"])
    assert cached(wanted) is None
    kernel = build(wanted)
    assert kernel.name == wanted.name
    assert kernel.origin.build == wanted
    assert kernel.origin.compiler.startswith("gcc")
    assert kernels.config_of(kernel)["CONFIG_HZ_1000"] == "y"
    assert cached(wanted) == kernel
    assert kernels.get(wanted.name).digest == kernel.digest
