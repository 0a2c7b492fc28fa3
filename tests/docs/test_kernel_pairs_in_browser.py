"""The site's page of two kernels in a real browser: what it says of them is what Python says."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.browser import assert_fits, measured_frames, needs_a_browser
from tests.support.report_records import FIVE, a_hostile_record, a_record, a_study_with_gaps
from tests.support.stored_results import a_store

from ktrial.analysis.history.series import history, kernel_pairs
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.model.history import KernelPairs
from ktrial.model.workload import short_labels
from ktrial.report.site.site import build
from ktrial.store.store import open_store

pytestmark = needs_a_browser

_READ = """
function text(one) { return one.textContent.trim(); }
function read(page) {
  const rows = [...page.querySelectorAll('table.pairs tbody tr, section tbody tr, .changes > li')];
  return {
    answer: page.getElementById('chosen') ? text(page.getElementById('chosen')) : '',
    rows: rows.filter(row => row.getClientRects().length).map(row => [...row.cells || []].map(
      cell => [...cell.childNodes].filter(one => one.className !== 'remark').map(text).join(' ').trim())),
    chosen: [...page.querySelectorAll('#chooser select')].map(one => one.value),
    address: page.location.hash,
  };
}
const KEYS = %s;
function measured(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  for (const key of KEYS) page.body.dispatchEvent(new view.KeyboardEvent('keydown', {key, bubbles: true}));
  return read(page);
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    records = (a_record(FIVE), a_study_with_gaps(), a_hostile_record())
    with open_store(str(a_store(directory / "store", *records))) as store:
        build(store, directory / "pages", notes=directory / "cache")
        numbers = stored_numbers(store)
        labels = dict.fromkeys(use.label for study in numbers.studies for use in study.workloads)
        histories = [history(numbers, label) for label in labels]
    kept = kernel_pairs([past for past in histories if past.lines])
    (directory / "expected.json").write_text(kept.model_dump_json())
    return directory / "pages"


def shown(tmp_path: Path, addresses: list[str], keys: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    frames = [f'width="1200" src="{address}"' for address in addresses]
    return measured_frames(frames, tmp_path, _READ % json.dumps(keys))


def page(site: Path, name: str = "compare.html", **chosen: str) -> str:
    return f"{(site / name).as_uri()}#?{urlencode(chosen)}"


def expected_rows(pairs: KernelPairs, i: int, j: int) -> list[list[str]]:
    short = short_labels(line.workload for line in pairs.lines)
    rows = []
    for line in pairs.lines:
        before, after = line.values[i], line.values[j]
        if before is None or after is None:
            continue
        ratio = 1.0 if before == after else after / before if before > 0 else None
        verdict = line.verdict(i, j).verdict
        said = f"{VERDICTS[verdict].symbol} {VERDICTS[verdict].word}" if verdict else "– not judged here"
        numbers = (number_format.number(before), number_format.number(after))
        rows.append([short[line.workload], number_format.step(ratio, after), said, *numbers])
    return rows


def test_every_two_kernels_are_shown_as_python_compares_them(site: Path, tmp_path: Path) -> None:
    pairs = KernelPairs.model_validate_json((site.parent / "expected.json").read_text())
    names = [kernel.name for kernel in pairs.kernels]
    both = [(i, j) for i in range(len(names)) for j in range(len(names)) if i != j]
    pages = shown(tmp_path, [page(site, **{"from": names[i], "to": names[j]}) for i, j in both])
    verdicts = set()
    for (i, j), shown_page in zip(both, pages, strict=True):
        expected = expected_rows(pairs, i, j)
        assert shown_page["rows"] == expected, f"{names[i]} → {names[j]}"
        verdicts |= {row[2] for row in expected}
    assert len(verdicts) > 2


def test_what_is_chosen_filtered_and_sorted_stands_in_the_address(site: Path, tmp_path: Path) -> None:
    two = {"from": "debian:6.1", "to": "debian:7.2"}
    every = page(site, **two)
    only = page(site, **two, changed="only")
    ordered = page(site, **two, **{"pairs.sort": "Change descending", "pairs.filter": "pipe"})
    whole, changed, filtered = shown(tmp_path, [every, only, ordered])
    assert 0 < len(changed["rows"]) < len(whole["rows"])
    assert all("equivalent" not in row[2] for row in changed["rows"])
    assert [row[0] for row in filtered["rows"]] == ["pipe"]
    (falling,) = shown(tmp_path, [page(site, **two, **{"pairs.sort": "Change descending"})])
    sizes = [float(row[1].split("\u00a0")[0].replace("\u2212", "-")) for row in falling["rows"]]
    assert sizes == sorted(sizes, reverse=True) != [row[1] for row in whole["rows"]]
    (swapped,) = shown(tmp_path, [every], keys=("x",))
    assert swapped["chosen"] == ["debian:7.2", "debian:6.1"]
    assert swapped["address"] == "#?from=debian%3A7.2&to=debian%3A6.1"
    (missing,) = shown(tmp_path, [page(site, **{"from": "debian:4.19", "to": "debian:7.2"})])
    assert str(missing["answer"]).startswith("Not on this page: debian:4.19.")


def test_the_search_of_the_front_page_finds_kernels_and_workloads(site: Path, tmp_path: Path) -> None:
    words = ("", "6.12", "no such word")
    whole, kernel, nothing = shown(tmp_path, [page(site, "index.html", search=word) for word in words])
    assert nothing["rows"] == []
    first = [row[0] for row in kernel["rows"] if row]
    assert "debian:6.12" in first
    assert 0 < len(first) < len(whole["rows"])


def test_it_fits_a_phone(site: Path, tmp_path: Path) -> None:
    assert_fits((site / "compare.html").as_uri(), tmp_path)


def test_the_numbers_beside_the_page_are_those_of_the_page(site: Path) -> None:
    assert json.loads((site / "compare.json").read_text()) == json.loads(
        (site.parent / "expected.json").read_text()
    )
    for name in ("index", "matrix", "results/1"):
        assert json.loads((site / f"{name}.json").read_text())
        assert "as JSON</a>" in (site / f"{name}.html").read_text()
