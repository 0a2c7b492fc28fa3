"""Large pages: what is closed is packed, nothing is lost by it, and small pages stay as they are."""

import base64
import re
import zlib

import pytest
from tests.support.report_records import a_counted_matrix, a_record, whys_for

from ktrial import report
from ktrial.report import study_page

_LATER = re.compile(r'<noscript class="later">(.*?)</noscript>', re.DOTALL)
_PLACE = re.compile(r'<span class="later" data-part="(\d+)"></span>')


def unpacked(page: str) -> list[str]:
    """The parts that the page's script makes, by their numbers."""
    (data,) = re.findall(r'<script type="application/zlib" id="parts">([^<]*)</script>', page)
    return lengthened(*zlib.decompress(base64.b64decode(data)).decode().split("\0"))


def lengthened(listed: str, *parts: str) -> list[str]:
    """What the page's script makes of words and parts."""
    words = listed.split("\1")
    return [re.sub("[\ue000-\uf8ff]", lambda match: words[ord(match[0]) - 0xE000], part) for part in parts]


@pytest.fixture(scope="module")
def plain() -> str:
    record = a_counted_matrix()
    return report.study_html(record, whys_for(record))


@pytest.mark.nightly
def test_a_packed_page_holds_each_closed_part_once_and_in_its_place(
    plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_page, "LARGE", 1000)
    page = study_page.packed(plain.replace("</nav>", "</nav><!-- parts -->", 1))
    assert unpacked(page) == _LATER.findall(plain)
    assert [int(number) for number in _PLACE.findall(page)] == list(range(len(unpacked(page))))
    assert len(page) < len(plain) / 2
    assert "ktrial report --whole" in page


def test_words_that_come_again_are_listed_once() -> None:
    parts = ["<td>do_sys_poll</td>", "<td>do_sys_poll</td>", "<b>do_sys_poll</b> once_only"]
    listed, *short = study_page.words_and_parts(parts)
    assert listed == "do_sys_poll"
    assert short[0] == "<td>\ue000</td>"
    assert lengthened(listed, *short) == parts


@pytest.mark.parametrize("parts", [["again again again \ue000"], [""], ["no word three times"]])
def test_without_a_word_to_list_or_a_character_to_spare_parts_stay_as_they_are(parts: list[str]) -> None:
    assert study_page.words_and_parts(parts) == ("", *parts)


def test_a_small_page_shows_what_is_closed_without_its_script() -> None:
    page = report.study_html(a_record())
    assert 'id="parts"' not in page
    assert "<!-- parts -->" not in page


@pytest.mark.nightly
def test_a_large_page_has_few_elements_before_anything_is_opened(plain: str) -> None:
    opened = _LATER.sub("", plain)
    assert len(_LATER.findall(plain)) > 80
    assert len(re.findall(r"<[a-z]", opened)) < 10_000
    assert "<table" in opened, "all treatments at once stay in sight"
