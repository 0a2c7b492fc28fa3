"""The README's picture is drawn from numbers that are kept, by the chart of the report."""

import json
from types import ModuleType

import pytest
from docs.measured.pages import written
from tests.support.places import ROOT

DIRECTORY = ROOT / "docs" / "pictures"


@pytest.fixture
def draw_pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DIRECTORY)
    import draw_pictures

    return draw_pictures


def test_the_picture_is_drawn_from_what_is_kept(draw_pictures: ModuleType) -> None:
    drawn = draw_pictures.drawing(json.loads(draw_pictures.KEPT.read_text(encoding="utf-8")))
    committed = draw_pictures.PICTURE.read_text(encoding="utf-8")
    assert drawn == committed, "draw it anew: .venv/bin/python docs/pictures/draw_pictures.py"


def test_the_readme_says_in_words_what_it_shows(draw_pictures: ModuleType) -> None:
    numbers = json.loads(draw_pictures.KEPT.read_text(encoding="utf-8"))
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    words = text.partition("![")[2].partition("](docs/pictures/quick.svg)")[0]
    beyond = [one for one in numbers["comparisons"] if one["verdict"] != "equivalent"]
    assert len(beyond) >= 2
    for one in beyond:
        change = f"{(one['ratio'] - 1) * 100:+.2f} %".replace("-", "−")
        assert f"{one['workload']} {change}" in words


def test_one_upgrade_has_one_number_in_readme_picture_and_exact_mode(draw_pictures: ModuleType) -> None:
    numbers = json.loads(draw_pictures.KEPT.read_text(encoding="utf-8"))["comparisons"]
    by_workload = {one["workload"]: f"{(one['ratio'] - 1) * 100:+.2f}".replace("-", "−") for one in numbers}
    readme = rows(written(ROOT / "README.md", "upgrade"))
    assert {cells[0]: cells[3].removesuffix(" %") for cells in readme} == {
        **by_workload,
        "nqueens": "0.00",
    }
    by_plugin = rows(written(ROOT / "docs/exact-mode.md", "counted-by-plugin-and-clock"))
    shared = {cells[0]: cells[3].removesuffix(" %") for cells in by_plugin if cells[0] in by_workload}
    assert len(shared) == 3
    assert shared == {workload: by_workload[workload] for workload in shared}


def rows(table: str) -> list[list[str]]:
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
