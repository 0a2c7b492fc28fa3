"""The page on which two kernels are chosen and compared."""

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import printable, shortened
from ktrial.model.history import KernelPairs, PairLine, PairVerdict
from ktrial.model.workload import short_labels
from ktrial.report.html.history import Crumbs, site_environment, style
from ktrial.report.html.scripts import page_script

_NOT_JUDGED = {"name": "inconclusive", "symbol": "–", "word": "not judged here"}
_LONGEST_NAME = 120


def kernel_pairs_page(
    pairs: KernelPairs,
    histories: Mapping[str, str] | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    made: Environment | None = None,
) -> str:
    """The page as text. `histories`: workload → its page; `sheet`: where the style sheet lies."""
    environment = made or site_environment()
    template = environment.get_template("kernel_pairs.html.j2")
    facts: dict[str, Any] = {
        "title": "Two kernels",
        "eyebrow": "ktrial",
        "question": "",
        "pairs": pairs,
        "unit": _usual_unit(pairs),
        "data": _embedded(_data(pairs, histories or {})),
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "script": page_script(kernel_pairs=True, live=bool(environment.globals["served"])),
        "json": "compare.json",
        "foot": number_format.counted(len(pairs.kernels), "kernel"),
    }
    return template.render(**facts)


def _embedded(data: Any) -> Markup:
    """JSON inside a page: no text in it ends the element that holds it, or begins another one."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # no sign of markup is left


def _data(pairs: KernelPairs, histories: Mapping[str, str]) -> dict[str, Any]:
    """What the script needs. Names of files and guests lose their control characters, as in every page."""
    short = short_labels(line.workload for line in pairs.lines)
    return {
        "unit": shortened(_usual_unit(pairs), _LONGEST_NAME),
        "kernels": [{"name": printable(one.name)} for one in pairs.kernels],
        "lines": [_line(line, short[line.workload], histories) for line in pairs.lines],
        "words": {letter.value: _words(letter) for letter in PairVerdict if letter in _SHOWN},
    }


def _usual_unit(pairs: KernelPairs) -> str:
    """The unit of the first line: lines with another one say theirs."""
    return pairs.lines[0].unit if pairs.lines else ""


_SHOWN = frozenset(PairVerdict) - {PairVerdict.NO_NUMBER}


def _line(line: PairLine, short: str, histories: Mapping[str, str]) -> dict[str, Any]:
    return {
        "short": shortened(short, _LONGEST_NAME),
        "page": histories.get(line.workload, ""),
        "unit": shortened(line.unit, _LONGEST_NAME),
        "alone": line.alone,
        "settings": printable(line.settings),
        "values": line.values,
        "verdicts": line.verdicts,
    }


def _words(letter: PairVerdict) -> dict[str, str]:
    if letter.verdict is None:
        return _NOT_JUDGED
    label = VERDICTS[letter.verdict]
    return {"name": letter.verdict.value, "symbol": label.symbol, "word": label.word}
