"""Pages on paper, in a real browser: headings of tables on each sheet, nothing that only a screen can use."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.browser import WIDTHS, measured_at_widths, needs_a_browser, sheets
from tests.support.report_records import a_counted_record, a_matrix, whys_for
from tests.support.tuning import a_result, a_study

from ktrial import report
from ktrial.model.kernel import KernelDifference, KernelSide, OptionChange, Respect
from ktrial.report.tuning import tuning_page

pytestmark = needs_a_browser

PAPER = 680
"""Pixels of CSS that a sheet of A4 is wide between its margins."""
STATE = """
function shown(element) { return element && element.getBoundingClientRect().width > 0; }
function lines(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].filter(box => box.width).map(box => Math.round(box.top))).size;
}
function measured(frame) {
  const page = frame.contentDocument, view = page.documentElement.clientWidth;
  const headings = [...page.querySelectorAll('.scroll thead th')].filter(shown);
  const wide = [...page.querySelectorAll('main *')].filter(
    one => !one.closest('svg, .hidden') && one.getBoundingClientRect().right > view + 1);
  return {
    split: headings.filter(one => !one.textContent.trim().includes(' ') && lines(one) > 1)
      .map(one => one.textContent),
    wide: wide.map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 40)),
    links: [...page.querySelectorAll('.to-why, .crumbs, .tools, nav')].filter(shown).length,
  };
}
addEventListener('load', () => {
  const answer = document.createElement('pre');
  answer.id = 'measured';
  answer.textContent = JSON.stringify([...document.querySelectorAll('iframe')].map(measured));
  document.body.replaceChildren(answer);
});
"""


def a_long_table(page: str) -> str:
    """The page with nothing but its first table, of a hundred rows that have no word in common."""
    before, rest = page.split("<tbody>", 1)
    after = rest[rest.index("</main>") :]
    rows = "".join(f"<tr><th>{at * 7919:x}q</th><td>{at * 104729:x}z</td></tr>" for at in range(1, 101))
    return f"{before}<tbody>{rows}</tbody></table></div></section>{after}"


def repeated(page: str, directory: Path) -> set[bytes]:
    """The pieces of text that stand on each sheet but the first and the last."""
    _, *inner, _ = sheets(page, directory)
    assert len(inner) > 1
    return set.intersection(*inner)


def test_a_table_s_headings_stand_on_each_sheet(tmp_path: Path) -> None:
    assert repeated(a_long_table(report.study_html(a_matrix())), tmp_path)


def test_the_sheets_tell_when_headings_do_not_stand_on_each(tmp_path: Path) -> None:
    page = a_long_table(report.study_html(a_matrix()))
    assert not repeated(re.sub(r"display: (contents|table-header-group)", "display: block", page), tmp_path)


def on_paper(page: str, directory: Path) -> dict[str, Any]:
    """What the browser makes of the page's rules for paper, on a screen as wide as a sheet."""
    page = page.replace("@media print", "@media all").replace("@media screen", "@media not all")
    (measured,) = measured_at_widths(f'srcdoc="{html.escape(page)}"', directory, (PAPER,), STATE)
    return dict(measured)


def a_kernel_difference() -> KernelDifference:
    """Two kernels with long names, and more options than a sheet has lines."""
    sides = (
        KernelSide(
            name=name,
            release=f"{name[7:]}.0-46-cloud-amd64",
            compiler=f"x86_64-linux-gnu-gcc-{at}",
            digest="a" * 64,
        )
        for at, name in ((10, "debian:5.10"), (14, "debian:6.12"))
    )
    options = tuple(
        OptionChange(option=f"CONFIG_AN_OPTION_OF_A_DRIVER_{at:03}", before="m", after="y", menu=("Drivers",))
        for at in range(120)
    )
    before, after = sides
    return KernelDifference(before=before, after=after, respects=(Respect.OPTIONS,), options=options)


def pages() -> dict[str, str]:
    record, tuned = a_counted_record(), a_result()
    return {
        "matrix": report.study_html(a_matrix()),
        "functions": report.study_html(record, whys_for(record)),
        "kernel-diff": report.kernel_difference_html(a_kernel_difference()),
        "tuning": tuning_page(a_study(tuned), tuned),
    }


@pytest.mark.parametrize("name", ["matrix", "functions", "kernel-diff", "tuning"])
def test_no_heading_is_split_and_nothing_is_wider_than_the_sheet(name: str, tmp_path: Path) -> None:
    assert on_paper(pages()[name], tmp_path) == {"split": [], "wide": [], "links": 0}


@pytest.mark.parametrize("name", ["kernel-diff", "tuning"])
def test_nothing_is_cut_off_at_any_width(name: str, tmp_path: Path) -> None:
    source = f'srcdoc="{html.escape(pages()[name])}"'
    for one, width in zip(measured_at_widths(source, tmp_path), WIDTHS, strict=True):
        assert one["scroll"] == width, "the page scrolls sideways"
        assert one["wide"] == [], f"wider than {width} pixels"
        assert one["cut"] == [], f"text outside its chart at {width} pixels"
        assert one["overlapping"] == [], f"text over text at {width} pixels"
