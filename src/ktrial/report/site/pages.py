"""The pages of a site, each made when it is asked for: `ktrial site` writes all, `ktrial serve` shows one."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ktrial.analysis.brief_results import BriefResults, brief_of, brief_results
from ktrial.analysis.errors import NoMatrix
from ktrial.analysis.history.machine_agreement import on_several_machines
from ktrial.analysis.history.regressions import all_regressions
from ktrial.analysis.history.series import history, kernel_pairs
from ktrial.analysis.history.stored_numbers import StoredNumbers
from ktrial.analysis.result import make_record, pair_record
from ktrial.analysis.scaling import cpus_factor
from ktrial.installation import program_digest
from ktrial.model.base import digest
from ktrial.model.comparison import BriefResult, Matrix
from ktrial.model.history import History, KernelPairs
from ktrial.model.regression import TrackedRegression
from ktrial.model.study import StudyRecord, baseline, treatment_count, treatments
from ktrial.report import regressions
from ktrial.report.attribution import Explain
from ktrial.report.history import history_page, kernel_pairs_page, site_environment, style
from ktrial.report.matrix import matrix, matrix_page
from ktrial.report.site.front_page import (
    NAMES,
    SHEET,
    Front,
    NamedResult,
    ResultLists,
    StudyRow,
    crumbs,
    front_page,
    json_text,
    names_page,
    notice_page,
    result_list,
)
from ktrial.report.site.result_page import (
    Reason,
    ResultPage,
    brief_as_json,
    brief_page,
    pair_as_json,
    pair_of,
    result_page,
    treatment_pair_page,
)
from ktrial.store.study_rows import StoredStudy

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_PAGE = re.compile(r"(?P<page>.*)\.(?P<form>html|json)")
_RESULT = re.compile(r"results/([1-9][0-9]{0,17})")
_MOST_KEPT = 200
"""Pages in memory: each up to some 100 KB."""
_NO_MATRIX = "No study compares anything yet."
Tell = Callable[[str], None]
Step = tuple[int, str, str]
"""A study's number, a workload, and a treatment that is compared with the baseline."""


class KnownResult(NamedTuple):
    """What a result came to, as far as other pages tell of it."""

    answer: str
    reasons: tuple[Reason, ...] | None = None
    """None: its page is in brief."""


class Pages:
    """All pages of a store's studies. Every method raises StoreError."""

    def __init__(
        self,
        numbers: StoredNumbers,
        studies: Sequence[StoredStudy],
        *,
        explain: Explain | None = None,
        served: bool = False,
        unexplained: Collection[int] = (),
        outcomes: dict[int, KnownResult] | None = None,
        tell: Tell = lambda _text: None,
        url: str = "",
    ) -> None:
        """`studies`: all those that are in `numbers`; those of commands have no page of their own. `explain`:
        finds what changes are made of, from the profiles in the store: seconds for a result; but for the
        studies `unexplained`. `served`: for `ktrial serve`, whose pages show what runs now, and lead to whole
        reports. `outcomes`: what results came to, by the studies' numbers, as far as that is known; more are
        added. `url`: where the site will be, for its feed.
        """
        self._store, self._numbers = numbers.store, numbers
        self._explain, self._served = explain, served
        self._tell, self._url = tell, url
        self._studies = {study.id: study for study in studies if study.finished and not study.study.made_by}
        self._results: dict[int, ResultPage] = {}
        self._unexplained = unexplained
        self._outcomes = {} if outcomes is None else outcomes
        self._templates = site_environment(served=served)
        self.rendered = 0
        """Results that were rendered whole."""
        self.in_brief: frozenset[int] = frozenset()
        """Results whose pages are in brief."""

    @property
    def places(self) -> tuple[str, ...]:
        """Where all pages are, relative to the site; the numbers of each lie beside it as JSON."""
        comparing = ("matrix.html", "compare.html") if self._studies else ()
        results = (f"results/{number}.html" for number in self._studies)
        followed = (regressions.PAGE, *self._regression_places) if self._studies else ()
        return (
            *results,
            *self._history_places.values(),
            *comparing,
            *followed,
            *self._lists.places,
            "index.html",
        )

    def text(self, place: str) -> str | None:
        """The page, its numbers or the style sheet; None where there is nothing of this name."""
        if place == SHEET:
            return str(style())
        if place == regressions.FEED:
            return regressions.feed(
                self._regressions, f"Regressions of {Path(self._store.name).name}", self._url
            )
        parts = _PAGE.fullmatch(place)
        both = self.both(parts["page"]) if parts else None
        return both[parts["form"] == "json"] if both and parts else None

    def both(self, page: str) -> tuple[str, str] | None:
        """The page and its numbers as JSON, by its place without an ending; None where there is none."""
        if (number := self.number(f"{page}.html")) is not None:
            if number in self.in_brief:
                return self._in_brief(self._studies[number])
            result = self.result(number)
            return result.text, result.data
        for workload, place in self._history_places.items():
            if place == f"{page}.html":
                return self._history(self._histories[workload])
        if f"{page}.html" in self._regression_places:
            return self._regression(self._regression_places[f"{page}.html"])
        if f"{page}.html" == regressions.PAGE:
            text = regressions.list_page(self._regressions, crumbs(), SHEET, self._templates)
            return text, json_text(regressions.all_as_json(self._regressions))
        if page == "index":
            return front_page(self._front, self._templates)
        if f"{page}.html" in self._lists.places:
            return self._names() if page == NAMES else self._listed(page)
        if page == "matrix" and self._studies:
            return self._matrix()
        if page == "compare" and self._studies:
            text = kernel_pairs_page(self._pairs, self._history_places, crumbs()[:2], SHEET, self._templates)
            return text, json_text(self._pairs.model_dump(mode="json"))
        return None

    def result(self, number: int) -> ResultPage:
        """The whole page of a study that has trials. Raises KeyError."""
        if number not in self._results:
            study = self._studies[number]
            self._tell(f"result {self.rendered + 1}: {study.study.name}")
            explain = self._explain if self._explains(number) else None
            page = result_page(self._store, self._record(study), self._templates, explain)
            self.rendered += 1
            self._outcomes[number] = KnownResult(page.answer, page.reasons)
            if len(self._results) >= _MOST_KEPT:
                self._results.clear()
            self._results[number] = page
        return self._results[number]

    def pair(self, number: int, before: str | None, after: str | None) -> tuple[str, str] | None:
        """The page on which any two treatments of a study are compared, and its numbers as JSON; what an
        address says chooses them (`pair_of`). None where there are no such two.
        """
        stored = self._studies.get(number)
        places = pair_of(stored.study, before, after) if stored else None
        if stored is None or places is None:
            return None
        first, second = (treatments(stored.study)[place] for place in places)
        trials = self._store.trials(number, counted=False)
        record = None if first == second else pair_record(self._store, stored, trials, first, second)
        page = treatment_pair_page(stored.study, places, record, self._templates)
        return page, json_text(pair_as_json(record, self._store.name))

    def number(self, place: str) -> int | None:
        """The study whose result's page this is; None for other pages."""
        match = _RESULT.fullmatch(place.removesuffix(".html"))
        return int(match[1]) if match and int(match[1]) in self._studies else None

    def key(self, number: int, *, brief: bool = False) -> str:
        """What the page of this study is made from, the whole one or the one in brief. Raises KeyError."""
        study, state = self._studies[number], self._numbers.states[number]
        form = "brief" if brief else "whole"
        facts = (form, self._store.name, number, study.digest, state, self._explains(number))
        return digest([self._program, *facts])

    def key_at(self, place: str) -> str:
        """What a page is made from, by its place; empty where that is not told by less than making it."""
        if (number := self.number(place)) is not None:
            return self.key(number, brief=number in self.in_brief)
        page = place.removesuffix(".html")
        if page == NAMES:
            return digest([self._program, repr(self._by_name)])
        if listed := self._lists.studies(page):
            rows = [self._row(study) for study in listed]
            return digest([self._program, repr((self._lists.around(page), rows))])
        return ""

    @cached_property
    def _program(self) -> str:
        """A changed template, table or statistic makes new pages."""
        return program_digest()

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

    def _explains(self, number: int) -> bool:
        return self._explain is not None and number not in self._unexplained

    def reasons(self, number: int) -> tuple[Reason, ...]:
        """Where the result's page says what its changes are made of; none where that is in brief."""
        if number in self.in_brief:
            return ()
        outcome = self._outcomes.get(number)
        if outcome is None or outcome.reasons is None:
            return self.result(number).reasons
        return outcome.reasons

    def _record(self, stored: StoredStudy) -> StudyRecord:
        return make_record(self._store, stored, self._store.trials(stored.id, counted=False))

    def _in_brief(self, stored: StoredStudy) -> tuple[str, str]:
        brief = self._brief(stored)
        self._outcomes[stored.id] = KnownResult(brief.answer)
        histories = {label: f"../{place}" for label, place in self._history_places.items()}
        page = brief_page(stored, brief, histories, self._templates)
        return page, brief_as_json(stored, brief, self._store.name)

    def _brief(self, stored: StoredStudy) -> BriefResult:
        if stored.id in self._briefs.content:
            return self._briefs.of(stored.id)
        return brief_of(self._record(stored))

    @cached_property
    def _briefs(self) -> BriefResults:
        """Of all results that are in brief, or whose answer is not known otherwise."""
        unknown = [
            study
            for study in self._studies.values()
            if study.id in self.in_brief or study.id not in self._outcomes
        ]
        return brief_results(self._store, unknown, self._numbers.states, self._tell)

    def _answer(self, stored: StoredStudy) -> str:
        """Without rendering a page that nobody asks for."""
        outcome = self._outcomes.get(stored.id)
        return outcome.answer if outcome else self._brief(stored).answer

    def _row(self, stored: StoredStudy, up: str = "") -> StudyRow:
        page, brief = f"{up}results/{stored.id}.html", stored.id in self.in_brief
        return StudyRow(stored.study.name, stored.id, stored.created, self._answer(stored), page, brief)

    @cached_property
    def _histories(self) -> dict[str, History]:
        """Workload → its history, where it has any number."""
        uses = (use.label for study in self._numbers.studies for use in study.workloads)
        histories = (history(self._numbers, label) for label in dict.fromkeys(uses))
        return {past.workload: past for past in histories if past.lines}

    @cached_property
    def _history_places(self) -> dict[str, str]:
        """Workload → where its history is."""
        return {label: f"history/{_file_name(label)}.html" for label in self._histories}

    @cached_property
    def _regressions(self) -> list[TrackedRegression]:
        return all_regressions(self._numbers, self._histories.values())

    @cached_property
    def _regression_places(self) -> dict[str, TrackedRegression]:
        """Where each regression's page is."""
        return {regressions.page_of(item): item for item in self._regressions}

    def _regression(self, tracked: TrackedRegression) -> tuple[str, str]:
        workload, number = tracked.regression.workload, tracked.study_id
        links = {"its workload's history": f"../{self._history_places.get(workload, '')}"}
        if number in self._studies:
            links["the result that saw it first"] = f"../results/{number}.html"
        links = {text: page for text, page in links.items() if page != "../"}
        page = regressions.regression_page(tracked, links, crumbs("../"), f"../{SHEET}", self._templates)
        return page, json_text(regressions.as_json(tracked))

    def _history(self, past: History) -> tuple[str, str]:
        numbers = {point.study_id for line in past.lines for point in line.points}
        page = history_page(
            past,
            {number: f"../results/{number}.html" for number in self._studies},
            crumbs("../"),
            f"../{SHEET}",
            f"{_file_name(past.workload)}.json",
            self._templates,
            self._baselines,
            _Reasons(self),
            {number: self._store.proofs(number) for number in numbers & self._proved},
            self._regression_links(past.workload),
        )
        return page, json_text(past.model_dump(mode="json"))

    def _regression_links(self, workload: str) -> dict[tuple[str, str], str]:
        """A metric and the first kernel with a regression → its page, as seen from a history's."""
        return {
            (item.regression.metric, item.regression.version.name): f"../{regressions.page_of(item)}"
            for item in self._regressions
            if item.regression.workload == workload
        }

    @cached_property
    def _baselines(self) -> dict[int, str]:
        return {number: baseline(study.study).label for number, study in self._studies.items()}

    @cached_property
    def _proved(self) -> frozenset[int]:
        return self._store.proved()

    @cached_property
    def _pairs(self) -> KernelPairs:
        return kernel_pairs(list(self._histories.values()))

    def _matrix(self) -> tuple[str, str]:
        largest = self._largest
        links = (*crumbs()[:1], *crumbs()[2:])
        if largest is None:
            page = notice_page("Matrix", _NO_MATRIX, links, SHEET, "matrix.json", self._templates)
            return page, json_text(None)
        result, in_brief = f"results/{largest.study_id}.html", largest.study_id in self.in_brief
        places = {
            (cell.comparison.workload, cell.comparison.treatment): result
            if in_brief
            else f"{result}#comparisons"
            for row in largest.rows
            for cell in row.cells
            if cell.comparison
        }
        for reason in self.reasons(largest.study_id):
            places[reason.workload, reason.treatment] = f"{result}#why-{reason.place}"
        text = matrix_page(
            largest,
            histories=self._history_places,
            result=result,
            why_places=places,
            crumbs=links,
            sheet=SHEET,
            templates=self._templates,
        )
        return text, json_text(largest.model_dump(mode="json"))

    @cached_property
    def _largest(self) -> Matrix | None:
        """Of the study with the most treatments and workloads; of several the newest."""

        def size(stored: StoredStudy) -> tuple[int, int]:
            return (treatment_count(stored.study) - 1) * len(stored.study.workloads), stored.id

        # Numbers of CPUs and the settings of a search are no versions.
        comparing = [
            stored
            for stored in self._studies.values()
            if not (stored.study.search or cpus_factor(stored.study))
        ]
        for stored in sorted(comparing, key=size, reverse=True):
            with suppress(NoMatrix):
                return matrix(self._record(stored))
        return None

    @property
    def _front(self) -> Front:
        histories = list(self._histories.values())
        return Front(
            self._store.name,
            [self._row(study) for study in self._lists.newest],
            histories,
            self._history_places,
            on_several_machines(self._numbers, histories),
            self._pairs,
            self._lists.pages,
            result_count=len(self._studies),
            in_brief=len(self.in_brief),
            regressions=regressions.in_order(self._regressions),
        )

    @cached_property
    def _lists(self) -> ResultLists:
        return ResultLists(self._studies.values())

    def _listed(self, page: str) -> tuple[str, str]:
        rows = [self._row(study, "../") for study in self._lists.studies(page)]
        return result_list(rows, self._lists.around(page), self._templates)

    def _names(self) -> tuple[str, str]:
        return names_page(self._by_name, self._templates)

    @cached_property
    def _by_name(self) -> list[NamedResult]:
        names = sorted((study.study.name, study.id) for study in self._studies.values())
        return [NamedResult(name, number, f"../results/{number}.html") for name, number in names]


class _Reasons(Mapping[Step, int]):
    """Where the reasons of a step stand on its result's page, which is made when somebody looks that up."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def __getitem__(self, step: Step) -> int:
        number, workload, treatment = step
        for reason in self._pages.reasons(number):
            if (reason.workload, reason.treatment) == (workload, treatment):
                return reason.place
        raise KeyError(step)

    def __iter__(self) -> Iterator[Step]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _file_name(label: str) -> str:
    """Of a workload's label: what every file system takes, and no two labels share."""
    plain = _UNSAFE.sub("_", label)[:80].strip(".")
    return plain if plain == label else f"{plain}-{digest(label)[:8]}"
