"""Templates are compiled once: what is kept of them is used, and never instead of another template's."""

import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader

from ktrial.report.compiled_templates import CompiledTemplates


@pytest.fixture(autouse=True)
def bytecode_beside_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python does it where no variable says otherwise."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


class Counting(Environment):
    """Templates of a directory; how many were compiled."""

    def __init__(self, directory: Path, settings: str = "") -> None:
        super().__init__(
            loader=FileSystemLoader(directory), bytecode_cache=CompiledTemplates(directory, settings)
        )
        self.compiled = 0

    def compile(self, *arguments: Any, **options: Any) -> Any:
        """Count it."""
        self.compiled += 1
        return super().compile(*arguments, **options)


def rendered(directory: Path, settings: str = "") -> tuple[str, int]:
    """What the template says, and how many were compiled for it."""
    templates = Counting(directory, settings)
    return templates.get_template("page.j2").render(name="6.12"), templates.compiled


def test_a_template_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text("kernel {{ name }}")
    assert rendered(tmp_path) == ("kernel 6.12", 1)
    assert rendered(tmp_path) == ("kernel 6.12", 0)


@pytest.mark.parametrize("change", ["template", "settings", "damage"])
def test_what_no_longer_holds_is_compiled_anew(tmp_path: Path, change: str) -> None:
    page, settings, text = tmp_path / "page.j2", "", "kernel 6.12"
    page.write_text("kernel {{ name }}")
    rendered(tmp_path)
    if change == "template":
        page.write_text("Linux {{ name }}")
        text = "Linux 6.12"
    elif change == "settings":
        settings = "others"
    else:
        (kept,) = (tmp_path / "__pycache__").iterdir()
        kept.write_bytes(kept.read_bytes()[:-9] + b"otherwise")
    assert rendered(tmp_path, settings) == (text, 1)
    assert rendered(tmp_path, settings) == (text, 0)


def test_where_nothing_can_be_kept_the_page_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text("kernel {{ name }}")
    (tmp_path / "__pycache__").write_text("a file in its place")
    assert rendered(tmp_path) == ("kernel 6.12", 1)
    assert rendered(tmp_path) == ("kernel 6.12", 1)


def test_nothing_is_kept_where_python_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "page.j2").write_text("kernel {{ name }}")
    assert rendered(tmp_path) == ("kernel 6.12", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["page.j2"]
