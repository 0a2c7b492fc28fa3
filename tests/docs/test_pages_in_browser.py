"""Pages of other commands in a real browser: nothing reaches beyond the page, and what scrolls has its cue.

All of them in one run of the browser: three seconds.
"""

import html
from typing import Any

import pytest
from tests.support.browser import found_in, needs_a_browser
from tests.support.report_records import FIVE, VALUES, a_record
from tests.support.tuning import a_result, a_study
from tests.unit.analysis.test_fidelity import COUNTED, LIKE_IT, measured

from ktrial.analysis.fidelity import fidelity
from ktrial.analysis.replication import compared
from ktrial.model.replication import Circumstance, KernelHad
from ktrial.report import fidelity as fidelity_page
from ktrial.report import replication as replication_page
from ktrial.report.tuning import tuning_page

pytestmark = needs_a_browser

PHONE, DESK = 390, 1280
STATE = """
function measured(frame) {
  const page = frame.contentDocument, view = page.documentElement.clientWidth;
  const wide = [...page.querySelectorAll('body *')].filter(
    one => !one.closest('svg, .hidden, .skip, thead') && !one.parentElement.closest('.scroll, pre')
      && one.getBoundingClientRect().right > view + 1);
  const scrolls = [...page.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1);
  return {
    name: frame.title, width: frame.width, scroll: page.documentElement.scrollWidth,
    wide: wide.map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 40)),
    scrolls: scrolls.map(box => box.getAttribute('aria-label')),
    cues: scrolls.map(box => frame.contentWindow.getComputedStyle(box).backgroundAttachment),
  };
}
addEventListener('load', () => {
  const answer = document.createElement('pre');
  answer.id = 'measured';
  answer.textContent = JSON.stringify([...document.querySelectorAll('iframe')].map(measured));
  document.body.replaceChildren(answer);
});
"""


def a_replication() -> str:
    """Of five kernels, with numbers that differ by some digits."""
    before = a_record(FIVE, tuple(VALUES))
    now = before.model_copy(
        update={
            "trials": tuple(
                one.model_copy(
                    update={
                        "samples": tuple(
                            sample.model_copy(update={"value": sample.value * 1.0123456789})
                            for sample in one.samples
                        )
                    }
                )
                for one in before.trials
            )
        }
    )
    had = tuple(KernelHad(asked=name, digest="ab" * 32, how="the cache", release="6.12.117+deb13-cloud-amd64")
                for name in FIVE)  # fmt: skip
    comparisons = compared(before, now, had)
    differs = Circumstance(what="guest program lockstep", before="3afd59290f8d", now="b24281e21b5f")
    return replication_page.replication_page(
        comparisons.model_copy(update={"circumstances": (differs,)}), before, now
    )


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], dict[str, Any]]:
    """By page and width."""
    tuned = a_result()
    pages = {
        "replication": a_replication(),
        "tuning": tuning_page(a_study(tuned), tuned),
        "fidelity": fidelity_page.fidelity_page(
            fidelity([(measured("exact", COUNTED, cycles=True), measured("host", LIKE_IT, 0.003))]), "two"
        ),
    }
    frames = "".join(
        f'<iframe title="{name}" width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
        for name, page in pages.items()
        for width in (PHONE, DESK)
    )
    directory = tmp_path_factory.mktemp("pages")
    around = directory / "frames.html"
    around.write_text(f"<!DOCTYPE html><meta charset=utf-8><script>{STATE}</script><body>{frames}")
    return {(one["name"], int(one["width"])): one for one in found_in(around, directory)}


@pytest.mark.parametrize("name", ["replication", "tuning", "fidelity"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_reaches_beyond_the_page(
    name: str, width: int, states: dict[tuple[str, int], dict[str, Any]]
) -> None:
    one = states[name, width]
    assert one["scroll"] == width, "the page scrolls sideways"
    assert one["wide"] == []
    assert width < DESK or one["scrolls"] == [], "a desk shows every column"


def test_a_box_that_scrolls_says_so_without_a_script(states: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Shadows below a paper that goes along: https://lea.verou.me/blog/2012/04/background-attachment-local."""
    cues = [cue for (_, width), one in states.items() if width == PHONE for cue in one["cues"]]
    assert len(cues) >= 3
    assert set(cues) == {"local, scroll"}
