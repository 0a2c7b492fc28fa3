"""A search as GitHub-flavoured Markdown: the answer, its settings, the confirmation; the rest folded."""

from collections.abc import Iterator

from ktrial.format import labels, number_format
from ktrial.model.study import Study
from ktrial.model.tuning import Effect, Tuned
from ktrial.optimize.deployment_files import Answer, texts
from ktrial.optimize.search_space import search_of
from ktrial.report.markdown.markup import block, code, folded, prose
from ktrial.report.tuning_labels import configuration_text, values_text, wanted

_MOST_FAILURES = 10
_NOT_SHOWN = ("answer.json", "undo.sh", "tuned/")


def text(study: Study, tuned: Tuned, answer: Answer | None = None) -> str:
    """The answer of a search, with a line feed at its end. `answer`: with its settings as read back."""
    parts = [
        *_head(study, tuned),
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


def _head(study: Study, tuned: Tuned) -> Iterator[str]:
    yield f"### ktrial tune: {prose(study.name)}"
    yield prose(f"{tuned.goal.workload} on the machine {study.machine.kind}: {wanted(tuned.goal)}")
    yield f"**{prose(tuned.answer)}**"
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
    header = ["Confirmed on fresh runs", "Verdict", "Before", "After", "Change", "Interval in %"]
    rows = [
        [
            code(f"{one.metric}, {one.unit}" if one.unit else one.metric),
            f"{labels.VERDICTS[one.verdict].symbol} {labels.VERDICTS[one.verdict].word}",
            number_format.number(one.baseline_value),
            number_format.number(one.value),
            number_format.change(one.ratio),
            number_format.interval(one.low, one.high),
        ]
        for one in tuned.comparisons
    ]
    yield grid(header, rows, left=2) if rows else ""
    if tuned.seen is not None and rows and tuned.noise:
        seen = number_format.change(tuned.seen)
        yield f"The best single run of the search showed {seen}: chance is in that."


def _settings(tuned: Tuned, answer: Answer | None) -> Iterator[str]:
    if not tuned.confirmed:
        return
    own = {name: effect for effect in tuned.kept for name in effect.names}
    in_force = answer.in_force if answer else {}
    rows = [
        [
            code(name),
            code(tuned.space[name].default) or number_format.NONE,
            code(in_force.get(name, value)) or number_format.NONE,
            *_effect(own.get(name)),
        ]
        for name, value in tuned.confirmed.items()
    ]
    yield grid(["Setting", "Was", "Now", "Its own effect", "Interval in %"], rows, left=3)


def _effect(effect: Effect | None) -> list[str]:
    if effect is None:
        return [number_format.NONE, ""]
    return [number_format.change(effect.ratio), number_format.interval(effect.low, effect.high)]


def _taken_back(tuned: Tuned) -> Iterator[str]:
    rows = [
        [
            ", ".join(map(code, one.names)),
            ", ".join(code(value) or number_format.NONE for value in one.values),
            prose(one.reason),
            *_effect(one),
        ]
        for one in tuned.dropped
    ]
    if rows:
        table = grid(["Setting", "Value", "Why", "Effect", "Interval in %"], rows, left=3)
        yield folded(f"Taken back: {len(rows)}", table)


def _front(tuned: Tuned) -> Iterator[str]:
    rows = [
        [code(configuration_text(one.configuration)), *map(number_format.change, one.ratios), str(one.runs)]
        for one in tuned.front
    ]
    if rows:
        names = [code(one.metric) for one in tuned.goal.objectives]
        yield grid(["None of these is better in both", *names, "Runs"], rows, left=1)


def _what_mattered(tuned: Tuned) -> Iterator[str]:
    """By the search's model: importance, and what two knobs do together."""
    shares = [
        [
            code(one.name),
            number_format.share(one.share),
            f"{number_format.share(one.low)} … {number_format.share(one.high)}",
        ]
        for one in tuned.importance
    ]
    together = [
        [
            code(f"{one.first}={one.first_values[1]}"),
            code(f"{one.second}={one.second_values[1]}"),
            number_format.change(one.ratio),
            number_format.interval(one.low, one.high),
        ]
        for one in tuned.interactions
    ]
    if shares:
        table = grid(["Knob", "Share in %", "Interval in %"], shares, left=1)
        yield folded("What mattered in the search", table)
    if together:
        header = ["One", "Other", "Together, beside what each does alone", "Interval in %"]
        yield folded(f"Interactions: {len(together)}", grid(header, together, left=2))


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
    rows = [
        [code(one.name), code(one.default) or number_format.NONE, code(values_text(one)), prose(one.summary)]
        for one in tuned.space.dimensions
    ]
    table = grid(["Knob", "Was", "Searched", "What it does"], rows, left=4)
    left_out = search_of(study)[0].left_out
    lines = "\n".join(f"- left out: {code(one.name)}: {prose(one.reason)}" for one in left_out)
    yield folded(
        f"What was searched: {number_format.counted(len(rows), 'knob')}", f"{table}\n\n{lines}".rstrip()
    )


def _files(answer: Answer | None) -> Iterator[str]:
    """What is installed, as far as it is short."""
    if answer:
        found = {name: text for name, text in texts(answer).items() if not name.startswith(_NOT_SHOWN)}
        body = "\n\n".join(f"{code(name)}:\n\n{block(text)}" for name, text in found.items())
        yield folded("To install it", body) if found else ""


def grid(header: list[str], rows: list[list[str]], *, left: int) -> str:
    """A table whose first `left` columns are set flush left, and the others flush right."""
    line = ["---"] * left + ["--:"] * (len(header) - left)
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in (header, line, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)
