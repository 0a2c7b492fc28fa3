"""The pages of a site, each made when it is asked for: `ktrial site` writes all, `ktrial serve` shows one."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from jinja2 import Environment
from pydantic_core import to_json

from ktrial.analysis.brief_results import BriefResults, brief_of, brief_results
from ktrial.analysis.errors import NoMatrix
from ktrial.analysis.history.machine_agreement import on_several_machines
from ktrial.analysis.history.series import history, kernel_pairs
from ktrial.analysis.history.stored_numbers import StoredNumbers
from ktrial.analysis.result import pair_record, record_of
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES, VERDICTS, metric_name
from ktrial.model.base import digest
from ktrial.model.comparison import BriefResult, Matrix, Verdict
from ktrial.model.design import told_apart
from ktrial.model.history import History, KernelPairs
from ktrial.model.study import Study, StudyRecord, baseline, treatment_count, treatments
from ktrial.model.workload import short_labels
from ktrial.report.csv_and_json import record_as_json
from ktrial.report.history import Crumbs, history_page, kernel_pairs_page, site_environment, style
from ktrial.report.matrix import matrix, matrix_page
from ktrial.report.site.front_page import (
    NAMES,
    SHEET,
    Front,
    NamedResult,
    ResultLists,
    StudyRow,
    crumbs,
    index,
    json_text,
    names_page,
    notice_page,
    result_list,
    result_page,
)
from ktrial.report.site.page_cache import PageCache, ResultPage
from ktrial.report.study_page import study_facts
from ktrial.store.study_rows import StoredStudy

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


_PAGE = re.compile(r"(?P<page>.*)\.(?P<form>html|json)")


_RESULT = re.compile(r"results/([1-9][0-9]{0,17})")


Tell = Callable[[str], None]


_MOST_KEPT = 200
"""Pages in memory: each up to some 100 KB."""


Step = tuple[int, str, str]
"""A study's number, a workload, and a treatment that is compared with the baseline."""


_NO_MATRIX = "No study compares anything yet."


class Pages:
    """All pages of a store's studies. Every method raises StoreError."""

    def __init__(
        self,
        numbers: StoredNumbers,
        studies: Sequence[StoredStudy],
        cache: PageCache,
        *,
        reasons: bool = True,
        served: bool = False,
        unexplained: Collection[int] = (),
        answers: dict[int, str] | None = None,
        tell: Tell = lambda _text: None,
    ) -> None:
        """`studies`: all those that are in `numbers`. `reasons`: say what changes are made of, from the
        profiles in the store: seconds for a new result, once; but for the studies `unexplained`. `served`:
        for `ktrial serve`, whose pages show what runs now, and lead to whole reports. `answers`: of studies,
        by number, as far as known; others are added.
        """
        self._store, self._numbers = numbers.store, numbers
        self._cache, self._reasons, self._served = cache, reasons, served
        self._tell = tell
        self._studies = {one.id: one for one in studies if one.finished}
        self._results: dict[int, ResultPage] = {}
        self._unexplained = unexplained
        self._answers = {} if answers is None else answers
        self.rendered = 0
        """Results that were rendered now, and not found in the cache."""
        self.in_brief: frozenset[int] = frozenset()
        """Results whose pages are in brief."""

    @property
    def places(self) -> tuple[str, ...]:
        """Where all pages are, relative to the site; the numbers of each lie beside it as JSON."""
        comparing = ("matrix.html", "compare.html") if self._studies else ()
        results = (f"results/{number}.html" for number in self._studies)
        return (*results, *self._histories.values(), *comparing, *self._lists.places, "index.html")

    def text(self, place: str) -> str | None:
        """The page, its numbers or the style sheet; None where there is nothing of this name."""
        if place == SHEET:
            return str(style())
        parts = _PAGE.fullmatch(place)
        made = self.both(parts["page"]) if parts else None
        return made and made[parts["form"] == "json"] if parts else None

    def result(self, number: int) -> ResultPage:
        """Of a study that has trials. Raises KeyError."""
        if number not in self._results:
            page = self._rendered(self._studies[number])
            if len(self._results) >= _MOST_KEPT:
                self._results.clear()
            self._results[number] = page
        return self._results[number]

    def both(self, page: str) -> tuple[str, str] | None:
        """The page and its numbers as JSON, by its place without an ending; None where there is none."""
        if (number := self.number(f"{page}.html")) is not None:
            if number in self.in_brief:
                return self._in_brief(self._studies[number])
            made = self.result(number)
            return made.text, made.data
        for past in self._past.values():
            if self._histories[past.workload] == f"{page}.html":
                return self._history(past), json_text(past.model_dump(mode="json"))
        if page == "index":
            return index(self._front, self._made)
        if f"{page}.html" in self._lists.places:
            return self._names() if page == NAMES else self._listed(page)
        comparing = {"matrix": self._matrix, "compare": self._compare} if self._studies else {}
        return comparing[page]() if page in comparing else None

    def pair(self, number: int, before: str | None, after: str | None) -> tuple[str, str] | None:
        """The page on which any two treatments of a study are compared, and its numbers as JSON; what an
        address says chooses them (`pair_of`). None where there are no such two.
        """
        one = self._studies.get(number)
        chosen = pair_of(one.study, before, after) if one else None
        if one is None or chosen is None:
            return None
        two = [treatments(one.study)[place] for place in chosen]
        trials = self._store.trials(number, counted=False)
        record = None if two[0] == two[1] else pair_record(self._store, one, trials, two[0], two[1])
        page = treatment_pair_page(one.study, chosen, record, crumbs("../"), f"../{SHEET}", self._made)
        return page, json_text(pair_as_json(record, self._store.name))

    def number(self, place: str) -> int | None:
        """The study whose result's page this is; None for other pages."""
        of_result = _RESULT.fullmatch(place.removesuffix(".html"))
        return int(of_result[1]) if of_result and int(of_result[1]) in self._studies else None

    def key(self, number: int, *, brief: bool = False) -> str:
        """What the page of this study is made from, the whole one or the one in brief. Raises KeyError."""
        one, state = self._studies[number], self._numbers.states[number]
        form = "brief" if brief else "served" if self._served else "site"
        return self._cache.key(self._store.name, one, state, reasons=self._explains(number), form=form)

    def key_at(self, place: str) -> str:
        """What a page is made from, by its place; empty where that is not told by less than making it."""
        if (number := self.number(place)) is not None:
            return self.key(number, brief=number in self.in_brief)
        page = place.removesuffix(".html")
        if page == NAMES:
            return self._cache.key_of([page, *self._by_name])
        listed = self._lists.studies(page)
        facts = ([*map(str, self._row(one))] for one in listed)
        return self._cache.key_of([self._lists.around(page), *facts]) if listed else ""

    @property
    def lists(self) -> int:
        """How many pages list results, where the front page has the newest alone."""
        return len(self._lists.pages)

    @property
    def whole_first(self) -> list[int]:
        """All results in the order in which they are made whole: that of the matrix, whose cells lead to its
        reasons, then the newest.
        """
        first = self._largest.study_id if self._largest else None
        return sorted(self._studies, key=lambda number: (number == first, number), reverse=True)

    def _rendered(self, one: StoredStudy) -> ResultPage:
        key = self.key(one.id)
        page = self._cache.get(key)
        if page is None:
            self._tell(f"result {self.rendered + 1}: {one.study.name}")
            page = result_page(self._store, self._record(one), self._made, reasons=self._explains(one.id))
            self._cache.put(key, page)
            self.rendered += 1
        self._answers[one.id] = page.answer
        return page

    def _in_brief(self, one: StoredStudy) -> tuple[str, str]:
        brief = self._brief(one)
        self._answers[one.id] = brief.answer
        histories = {label: f"../{place}" for label, place in self._histories.items()}
        page = brief_page(one, brief, histories, crumbs("../"), f"../{SHEET}", self._made)
        return page, brief_as_json(one, brief, self._store.name)

    def _brief(self, one: StoredStudy) -> BriefResult:
        known = one.id in self._briefs.content
        return self._briefs.of(one.id) if known else brief_of(self._record(one))

    @cached_property
    def _briefs(self) -> BriefResults:
        """Of all results that are in brief, or whose answer is not known otherwise."""
        wanted = [
            one
            for one in self._studies.values()
            if one.id in self.in_brief
            or not (one.id in self._answers or one.id in self._results or self._cache.has(self.key(one.id)))
        ]
        return brief_results(self._store, wanted, self._numbers.states, self._tell)

    def _record(self, one: StoredStudy) -> StudyRecord:
        return record_of(self._store, one, self._store.trials(one.id, counted=False))

    def _explains(self, number: int) -> bool:
        return self._reasons and number not in self._unexplained

    def _answer(self, one: StoredStudy) -> str:
        """Without rendering a page that nobody asks for."""
        if one.id not in self._answers:
            known = self._results.get(one.id) or self._cache.get(self.key(one.id))
            self._answers[one.id] = known.answer if known else self._brief(one).answer
        return self._answers[one.id]

    @cached_property
    def _made(self) -> Environment:
        return site_environment(served=self._served)

    @cached_property
    def _past(self) -> dict[str, History]:
        """Workload → its history, where it has any number."""
        uses = (use.label for one in self._studies.values() for use in one.study.workloads)
        every = (history(self._numbers, label) for label in dict.fromkeys(uses))
        return {past.workload: past for past in every if past.lines}

    @cached_property
    def _histories(self) -> dict[str, str]:
        """Workload → where its history is."""
        return {label: f"history/{_file_name(label)}.html" for label in self._past}

    @cached_property
    def _pairs(self) -> KernelPairs:
        return kernel_pairs(list(self._past.values()))

    @cached_property
    def _baselines(self) -> dict[int, str]:
        return {number: baseline(one.study).label for number, one in self._studies.items()}

    @cached_property
    def _proved(self) -> frozenset[int]:
        return self._store.proved()

    def _history(self, past: History) -> str:
        numbers = {point.study_id for line in past.lines for point in line.points}
        return history_page(
            past,
            {number: f"../results/{number}.html" for number in self._studies},
            crumbs("../"),
            f"../{SHEET}",
            f"{_file_name(past.workload)}.json",
            self._made,
            self._baselines,
            _Reasons(self),
            {number: self._store.proofs(number) for number in numbers & self._proved},
        )

    def _compare(self) -> tuple[str, str]:
        page = kernel_pairs_page(self._pairs, self._histories, crumbs()[:2], SHEET, self._made)
        return page, json_text(self._pairs.model_dump(mode="json"))

    def _matrix(self) -> tuple[str, str]:
        chosen = self._largest
        links = (*crumbs()[:1], *crumbs()[2:])
        if chosen is None:
            return notice_page("Matrix", _NO_MATRIX, links, SHEET, "matrix.json", self._made), json_text(None)
        page, in_brief = f"results/{chosen.study_id}.html", chosen.study_id in self.in_brief
        places = {
            (one.workload, one.treatment): page if in_brief else f"{page}#comparisons"
            for row in chosen.rows
            for one in (cell.comparison for cell in row.cells)
            if one is not None
        }
        for one in () if in_brief else self.result(chosen.study_id).reasons:
            places[one.workload, one.treatment] = f"{page}#why-{one.place}"
        text = matrix_page(
            chosen,
            histories=self._histories,
            result=page,
            why_places=places,
            crumbs=links,
            sheet=SHEET,
            made=self._made,
        )
        return text, json_text(chosen.model_dump(mode="json"))

    @cached_property
    def _largest(self) -> Matrix | None:
        """Of the study with the most treatments and workloads; of several the newest."""
        studies = self._studies.values()
        for one in sorted(studies, key=lambda one: (_cells(one), one.id), reverse=True):
            with suppress(NoMatrix):
                return matrix(self._record(one))
        return None

    @property
    def _front(self) -> Front:
        past = list(self._past.values())
        return Front(
            self._store.name,
            [self._row(one) for one in self._lists.newest],
            past,
            self._histories,
            on_several_machines(self._numbers, past),
            self._pairs,
            self._lists.pages,
            every=len(self._studies),
            in_brief=len(self.in_brief),
        )

    @cached_property
    def _lists(self) -> ResultLists:
        return ResultLists(list(self._studies.values()))

    def _listed(self, page: str) -> tuple[str, str]:
        rows = [self._row(one, "../") for one in self._lists.studies(page)]
        around = self._lists.around(page)
        text, shown = result_list(rows, around, crumbs("../"), f"../{SHEET}", self._made)
        return text, json_text({"results": shown.data()})

    def _names(self) -> tuple[str, str]:
        text = names_page(self._by_name, crumbs("../"), f"../{SHEET}", self._made)
        return text, json_text({one.number: one.study for one in self._by_name})

    @cached_property
    def _by_name(self) -> list[NamedResult]:
        every = ((one.study.name, one.id) for one in self._studies.values())
        return [NamedResult(name, number, f"../results/{number}.html") for name, number in sorted(every)]

    def _row(self, one: StoredStudy, up: str = "") -> StudyRow:
        page, brief = f"{up}results/{one.id}.html", one.id in self.in_brief
        return StudyRow(one.study.name, one.id, one.created, self._answer(one), page, brief)


class _Reasons(Mapping[Step, int]):
    """Where the reasons of a step stand on its result's page, which is made when that is asked."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def __getitem__(self, step: Step) -> int:
        number, workload, treatment = step
        if number in self._pages.in_brief:
            raise KeyError(step)
        for one in self._pages.result(number).reasons:
            if (one.workload, one.treatment) == (workload, treatment):
                return one.place
        raise KeyError(step)

    def __iter__(self) -> Iterator[Step]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _file_name(label: str) -> str:
    """Of a workload's label: what every file system takes, and no two labels share."""
    plain = _UNSAFE.sub("_", label)[:80].strip(".")
    return plain if plain == label else f"{plain}-{digest(label)[:8]}"


def _cells(stored: StoredStudy) -> int:
    return (treatment_count(stored.study) - 1) * len(stored.study.workloads)


# The page on which two treatments of a study are chosen and compared. Its address says which.


class TreatmentPair(NamedTuple):
    """Two treatments, by their places among the study's, from 0."""

    before: int
    after: int


FIRST = TreatmentPair(0, 1)
"""What is compared where nobody has chosen."""


def pair_of(study: Study, before: str | None, after: str | None) -> TreatmentPair | None:
    """What an address says: places from 1, as in the study's plan; None where the study has no such two."""
    asked = zip((before, after), FIRST, strict=True)
    chosen = [usual if text is None else _place(text) for text, usual in asked]
    count = len(treatments(study))
    return TreatmentPair(*chosen) if all(0 <= one < count for one in chosen) else None


def _place(text: str) -> int:
    return int(text) - 1 if text.isascii() and text.isdigit() and len(text) < 10 else -1


def treatment_pair_page(
    study: Study,
    pair: TreatmentPair,
    record: StudyRecord | None,
    crumbs: Crumbs,
    sheet: str,
    made: Environment,
) -> str:
    """The page as text. `study`: the whole one; `record`: of the two, None where both are the same."""
    known = study_facts(record) if record else {}
    said: dict[str, Any] = {
        "title": study.name,
        "eyebrow": "ktrial: two treatments",
        "question": study.question,
        "names": [one.label for one in treatments(study)],
        "pair": pair,
        "forms": True,
        "crumbs": crumbs,
        "sheet": sheet,
        "json": "",
        "foot": "The address of this page says what is compared: a link to it shows the same.",
    }
    return made.get_template("treatment_pair.html.j2").render(**known, **said)


def pair_as_json(record: StudyRecord | None, store: str) -> dict[str, Any] | None:
    """The numbers of the page."""
    if record is None:
        return None
    return {
        key: value
        for key, value in record_as_json(record, store).items()
        if key in {"study", "question", "answer", "comparisons", "warnings", "store", "id"}
    }


# A result's page in brief: from what the store keeps of it, without reading its trials.
#
# It costs a thousandth of a second where the whole page takes a tenth, so that a site of ten thousand
# results can be built at once.

_MOST_CHANGES, _MOST_HISTORIES = 12, 40


class _Change(NamedTuple):
    workload: str
    metric: str
    treatment: str
    change: str
    interval: str
    verdict: str
    symbol: str


def brief_page(
    stored: StoredStudy,
    brief: BriefResult,
    histories: Mapping[str, str],
    crumbs: Crumbs,
    sheet: str,
    made: Environment,
) -> str:
    """The page as text. `histories`: workload → the page of its history, as seen from this one."""
    study = stored.study
    labels = [use.label for use in study.workloads]
    short = short_labels(labels)
    counts, measured = brief.verdicts, brief.measured
    changed = counts[Verdict.BETTER] + counts[Verdict.WORSE]
    return made.get_template("brief_result.html.j2").render(
        title=study.name,
        eyebrow="ktrial result, in brief",
        question=study.question,
        crumbs=crumbs,
        sheet=sheet,
        json=f"{stored.id}.json",
        foot=f"Study {stored.id}, digest {stored.digest[:16]}",
        script=None,
        number=stored.id,
        brief=brief,
        verdicts=[(one, label, counts[one]) for one, label in VERDICTS.items() if counts[one]],
        modes=[MODE_NAMES[mode] for mode in brief.modes],
        margin=number_format.percentage(study.margin),
        started=datetime.fromisoformat(brief.started) if brief.started else None,
        changes=[_change(one) for one in brief.largest(_MOST_CHANGES)],
        more=max(0, changed - _MOST_CHANGES),
        histories=[(short[one], histories[one]) for one in labels if one in measured][:_MOST_HISTORIES],
    )


def _change(one: Mapping[str, Any]) -> _Change:
    verdict = Verdict(one["verdict"])
    return _Change(
        one["workload"],
        metric_name(one["metric"], one["unit"]),
        told_apart(one["treatment"], one["baseline"]),
        number_format.step(one["ratio"], one["value"]),
        number_format.interval(one["low"], one["high"]),
        verdict.value,
        VERDICTS[verdict].symbol,
    )


def brief_as_json(stored: StoredStudy, brief: BriefResult, store: str) -> str:
    """The numbers of the page: of what `ktrial show --json` prints the part that is known without trials."""
    said = {
        "study": stored.study.name,
        "question": stored.study.question,
        "answer": brief.answer,
        "in_brief": True,
        "comparisons": brief.comparisons,
        "warnings": [one.first.model_dump(mode="json") for one in brief.warnings],
        "planned": brief.planned,
        "completed": brief.completed,
        "created": stored.created.isoformat(),
        "store": store,
        "id": stored.id,
    }
    return to_json(said, inf_nan_mode="null").decode() + "\n"
