"""A search as GitHub-flavoured Markdown: the answer, its settings, the confirmation; the rest folded."""

from collections.abc import Iterator

from ktrial.format import labels, number_format
from ktrial.model.study import Study
from ktrial.model.tuning import Tuned
from ktrial.optimize.deployment_files import Answer, texts
from ktrial.optimize.search_space import search_of
from ktrial.report.markdown.markup import block, code, folded, grid, prose
from ktrial.report.tables import tuning as tables
from ktrial.report.text.tuning import configuration_text, revalidating, two_estimates, wanted

_MOST_FAILURES = 10
_NOT_SHOWN = ("answer.json", "undo.sh", "tuned/")


def text(study: Study, tuned: Tuned, answer: Answer | None = None, number: int | None = None) -> str:
    """The answer of a search, with a line feed at its end. `answer`: with its settings as read back;
    `number`: in its store."""
    parts = [
        *_head(study, tuned, number),
        *_confirmation(tuned),
        *_settings(tuned, answer),
        *_taken_back(tuned),
        *_front(tuned),
        *_what_mattered(tuned),
        *_failed(tuned),
        *_searched(study, tuned),
        *_files(answer),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(study: Study, tuned: Tuned, number: int | None) -> Iterator[str]:
    yield f"### ktrial tune: {prose(study.name)}"
    yield prose(f"{tuned.goal.workload} on the machine {study.machine.kind}: {wanted(tuned.goal)}")
    yield f"**{prose(tuned.answer)}**"
    if tuned.undecided:
        settings, again = code(configuration_text(tuned.undecided)), code(revalidating(study, number))
        yield f"Undecided: {settings}. In more fresh blocks: {again}"
    noise = f"noise of one run {number_format.percentage(tuned.noise)}" if tuned.noise else "no noise"
    facts = (
        number_format.counted(len(tuned.observations), "run"),
        number_format.duration(tuned.seconds),
        noise,
        f"gains from {number_format.percentage(tuned.smallest_effect)} can be shown",
        labels.MODE_NAMES[tuned.mode],
    )
    yield " · ".join(facts)
    yield "\n".join(f"> ℹ {prose(one.text)} → {prose(one.advice)}<br>" for one in tuned.warnings)


def _confirmation(tuned: Tuned) -> Iterator[str]:
    yield grid(tables.confirmation(tuned.comparisons)) if tuned.comparisons else ""
    if len(tuned.finalists) > 1:
        yield folded(f"Confirmed beside each other: {len(tuned.finalists)}", grid(tables.finalists(tuned)))
    yield two_estimates(tuned)
    if tuned.seen is not None and tuned.comparisons and tuned.noise:
        seen = number_format.change(tuned.seen)
        yield f"The best single run of the search showed {seen}: chance is in that."


def _settings(tuned: Tuned, answer: Answer | None) -> Iterator[str]:
    if tuned.confirmed:
        yield grid(tables.settings(tuned, answer.in_force if answer else {}))


def _taken_back(tuned: Tuned) -> Iterator[str]:
    if tuned.dropped:
        yield folded(f"Taken back: {len(tuned.dropped)}", grid(tables.taken_back(tuned.dropped)))


def _front(tuned: Tuned) -> Iterator[str]:
    if tuned.front:
        yield grid(tables.front(tuned))


def _what_mattered(tuned: Tuned) -> Iterator[str]:
    """By the search's model: importance, and what two knobs do together."""
    if tuned.importance:
        yield folded("What mattered in the search", grid(tables.importance(tuned.importance)))
    if tuned.interactions:
        yield folded(
            f"Interactions: {len(tuned.interactions)}", grid(tables.interactions(tuned.interactions))
        )


def _failed(tuned: Tuned) -> Iterator[str]:
    failed = [one for one in tuned.observations if one.failure]
    lines = [
        f"- run {one.order + 1}, {code(configuration_text(one.configuration))}: {prose(one.failure)}"
        for one in failed[:_MOST_FAILURES]
    ]
    left = len(failed) - len(lines)
    lines += [f"- and {left} more"] if left else []
    yield folded(number_format.counted(len(failed), "failed run"), "\n".join(lines)) if failed else ""


def _searched(study: Study, tuned: Tuned) -> Iterator[str]:
    dimensions = tuned.space.dimensions
    left_out = search_of(study)[0].left_out
    lines = "\n".join(f"- left out: {code(one.name)}: {prose(one.reason)}" for one in left_out)
    yield folded(
        f"What was searched: {number_format.counted(len(dimensions), 'knob')}",
        f"{grid(tables.space(dimensions))}\n\n{lines}".rstrip(),
    )


def _files(answer: Answer | None) -> Iterator[str]:
    """What is installed, as far as it is short."""
    if answer:
        files = {name: text for name, text in texts(answer).items() if not name.startswith(_NOT_SHOWN)}
        body = "\n\n".join(f"{code(name)}:\n\n{block(text)}" for name, text in files.items())
        yield folded("To install it", body) if files else ""
