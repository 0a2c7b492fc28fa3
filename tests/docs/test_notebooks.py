"""The notebooks of the documentation run from their first cell to their last, and show what they say."""

import ast
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SHOWN = {
    "from-a-bundle-to-a-chart": ["StudyResult", "LayerChart", "DataFrame", "Tree"],
    "trials-as-data": ["DataFrame", "Chart", "int", "PosixPath", "PosixPath"],
}


def cells(notebook: Path) -> list[str]:
    data = json.loads(notebook.read_text(encoding="utf-8"))
    assert (data["nbformat"], data["nbformat_minor"]) == (4, 5)
    assert all(not cell.get("outputs") for cell in data["cells"]), "what it shows is not kept in the file"
    return ["".join(cell["source"]) for cell in data["cells"] if cell["cell_type"] == "code"]


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line is, which a notebook shows."""
    body = ast.parse(cell)
    last = body.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(body, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(body.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if notebook.stem == "trials-as-data" and "pyarrow" not in sys.modules:
        pytest.importorskip("polars")
    shutil.copy(notebook.with_name("quick.zip"), tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    results = [shown(cell, names) for cell in cells(notebook)]
    visible = [result for result in results if result is not None]
    assert [type(result).__name__ for result in visible] == SHOWN[notebook.stem]
    for result in visible:
        if hasattr(result, "_repr_html_"):
            assert "<" in result._repr_html_()
        elif hasattr(result, "to_dict"):
            assert result.to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_a_chart_takes_no_more_than_ten_lines() -> None:
    to_chart = cells(NOTEBOOKS[0])[:2]
    assert "chart()" in to_chart[1]
    assert sum(len(cell.splitlines()) for cell in to_chart) <= 10


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(SHOWN)
