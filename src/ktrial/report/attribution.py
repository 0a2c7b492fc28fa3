"""Why workloads have changed: the functions that a study's differences are made of."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Row,
    RowKind,
    Table,
    number,
    own,
    table,
)
from ktrial.model.attribution import (
    Attribution,
    Count,
    Differences,
    Explanation,
    FunctionDifference,
    Match,
    OptionDifference,
    ProfileSide,
    Proof,
    ValueDifference,
    rests_on_locks,
)
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report import study_summary as summary
from ktrial.report.call_tree import (
    CallTree,
    NetPart,
    cancel_almost,
    laid_stacks,
    net_parts,
    tree_of_stacks,
)
from ktrial.report.flame_graph import Frames, frames_of
from ktrial.report.kernel_diff import followers_of, option_change
from ktrial.store.store import Store

Explain = Callable[[Store, StudyRecord, Sequence[Comparison]], Iterable[Attribution | None]]
"""Explains comparisons of a stored study by its trials' profiles, one after another; None where that cannot
be told. `ktrial.experiment.explain.stored_explanations` is one: it looks into the kernels in the cache."""
TOP = 15
"""Functions that are shown by name."""
_MOST_SUBSYSTEMS = 8
_MOST_NAMED = 3
"""Places that a sentence names."""
_SMALLEST = 0.5
"""Instructions per operation: subsystems below are left out."""
_FRAMES_OF_A_PAGE = 8000
_FRAMES = (60, 400)
"""At least and at most so many frames in one flame graph of a page: some 300 bytes each."""
_CHANGED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.INCONCLUSIVE})


class DifferencePart(NamedTuple):
    """A function's part in a difference, or that of several. Numbers are instructions per operation."""

    name: str
    before: float | None
    """None where it did not run."""
    after: float | None
    difference: float
    share: float | None
    """Of the whole difference; None where there is none."""
    byte_difference: float = 0.0
    """By how much the bytes grew, per operation, that its string instructions worked on."""
    subsystem: str = ""
    match: Match = Match.SAME


class Section(NamedTuple):
    """What differs, of one kind."""

    title: str
    lines: tuple[str, ...]
    left_out: int
    """How many more there are."""


_PLACES = ("/proc/sys/", "/sys/")
_VALUE_COLUMNS = 32


def _setting(difference: ValueDifference) -> str:
    path = next(
        (difference.path.removeprefix(place) for place in _PLACES if difference.path.startswith(place)),
        difference.path,
    )
    return f"{path}: {_text(difference.before)} → {_text(difference.after)}"


def _text(value: str | None) -> str:
    return shortened(value or "", _VALUE_COLUMNS) or '""'


class Why(NamedTuple):
    """What one workload's difference between two treatments is made of."""

    workload: str
    baseline: str
    treatment: str
    comparisons: tuple[Comparison, ...]
    """Those that it explains: of instructions, of string bytes."""
    parts: tuple[DifferencePart, ...]
    """The heaviest, at most TOP."""
    remainder: DifferencePart
    total: DifferencePart
    subsystems: tuple[DifferencePart, ...]
    unexplained: float
    frames: Frames | None
    """The differential flame graph's; None where calls were not followed."""
    around: tuple[Section, ...] = ()
    """What else differs, and may be the cause."""
    causes: tuple[str, ...] = ()
    """Settings that differ, each with the metrics that it governs and that moved as it says; none that was
    measured."""
    tree: CallTree | None = None
    """The net differences along the tree of calls; None where calls were not followed."""
    proof: Proof | None = None
    """What of the difference was measured, by taking causes back."""
    notice: str = ""
    """That a kernel was missing in the cache, so that rows may be others than with it."""

    @property
    def rows(self) -> tuple[DifferencePart, ...]:
        """All that is shown: it ends with the sum, which the rows above it add up to."""
        return (*self.parts, self.remainder, self.total)

    @property
    def bytes(self) -> bool:
        """Whether string instructions worked on more or fewer bytes."""
        return any(part.byte_difference for part in (*self.parts, self.remainder))


def whys(
    store: Store, record: StudyRecord, explain: Explain, most: int | None = None, *, graphs: bool = True
) -> tuple[Why, ...]:
    """One for each comparison's workload that has changed, or may have, and of which the store has profiles.

    In the order of the report; `most`: only so many; `graphs=False`: without frames of flame graphs. Raises
    StoreError.
    """
    changed = list(_changed_workloads(record, store.profiled(record.id)))
    if not changed:
        return ()
    fewest, enough = _FRAMES
    room = max(fewest, min(enough, _FRAMES_OF_A_PAGE // len(changed))) if graphs else 0
    attributions = explain(store, record, [comparisons[0] for comparisons in changed])
    reasons = (
        explained(comparisons, attribution, room, record.proofs)
        for comparisons, attribution in zip(changed, attributions, strict=True)
        if attribution
    )
    return tuple(islice(reasons, most))


def explained(
    comparisons: Sequence[Comparison],
    attribution: Attribution,
    most_frames: int = _FRAMES[1],
    proofs: Sequence[Proof] = (),
) -> Why:
    """What the comparisons of one workload are made of. `proofs`: those that the study has."""
    explanation = attribution.explanation
    shown = list(islice(filter(explanation.weight, explanation.rows), TOP))
    names = {(row.function, row.module, row.match) for row in shown}
    unshown = [row for row in explanation.rows if (row.function, row.module, row.match) not in names]
    first = comparisons[0]
    key = (first.workload, first.baseline, first.treatment)
    proof = next((item for item in proofs if item.difference_key == key), None)
    profiles = (attribution.before, attribution.after)
    laid = laid_stacks(*profiles, explanation) if followed_calls(profiles) else None
    taken_back = {item.candidate.target for item in proof.tested} if proof else set()
    return Why(
        workload=first.workload,
        baseline=first.baseline,
        treatment=first.treatment,
        comparisons=tuple(comparisons),
        parts=tuple(part_of(explanation, row) for row in shown),
        remainder=sum_of(explanation, unshown, number_format.counted(len(unshown), "other row")),
        total=sum_of(explanation, explanation.rows, "the sum"),
        subsystems=tuple(
            DifferencePart(name, None, None, float(part), explanation.share(part))
            for name, part in list(explanation.subsystems.items())[:_MOST_SUBSYSTEMS]
            if abs(part) >= _SMALLEST
        ),
        unexplained=float(explanation.unexplained),
        frames=frames_of(laid, most=most_frames) if laid and most_frames else None,
        around=sections(attribution.differences, taken_back),
        causes=tuple(causes(attribution.differences, taken_back)),
        tree=tree_of_stacks(laid, explanation) if laid else None,
        proof=proof,
        notice=one_line(attribution.differences.fewer_functions),
    )


def why_heading(*, followed: bool) -> str:
    """What stands above net sentences: they add up to means of one trial, where verdicts compare medians.

    `followed`: whether the trials followed calls; else parts are functions by themselves.
    """
    parts = "each with what it calls" if followed else "own code"
    return f"why, in mean instructions under the first perturbation, {parts}:"


def net_sentence(why: Why) -> str:
    """`+14,103 (98,600 → 112,703): copy_page_range +6,200, exit_mmap +4,100, the rest +3,803`: no parts that
    cancel. Where calls were not followed, by subsystem.
    """
    subsystems = [NetPart(part.name, part.difference) for part in why.subsystems]
    functions = [NetPart(part.name, part.difference) for part in why.parts[:_MOST_NAMED]]
    means = (why.total.before or 0.0, why.total.after or 0.0)
    return _net_words(why.tree, subsystems, functions, why.total.difference, means)


def net_sentence_of(explanation: Explanation, tree: CallTree | None) -> str:
    """The same of an explanation, with its net differences along the tree of calls."""
    subsystems = [NetPart(name, float(part)) for name, part in explanation.subsystems.items()]
    functions = [
        NetPart(row.name, float(explanation.difference(row))) for row in explanation.rows[:_MOST_NAMED]
    ]
    means = (explanation.before.mean, explanation.after.mean)
    return _net_words(tree, subsystems, functions, float(explanation.total), means)


def net_sentence_of_profiles(explanation: Explanation, profiles: tuple[Profile, Profile]) -> str:
    """The same, along the tree of calls where these were followed."""
    tree = (
        tree_of_stacks(laid_stacks(*profiles, explanation), explanation) if followed_calls(profiles) else None
    )
    return net_sentence_of(explanation, tree)


def followed_calls(profiles: Iterable[Profile]) -> bool:
    """Whether all of them followed calls."""
    return all(profile.region.nodes is not None for profile in profiles)


def locking_sentence(share: float) -> str:
    """`41 % of this difference is in functions that lock memory: …`; empty where that is no third of it.

    On one CPU nobody else has the lock, or the line of the cache.
    """
    if not rests_on_locks(share):
        return ""
    return (
        f"{100 * share:.0f}{number_format.SPACE}% of this difference is in functions that lock memory: "
        "on several CPUs it may go the other way."
    )


def _net_words(
    tree: CallTree | None,
    subsystems: Sequence[NetPart],
    functions: Sequence[NetPart],
    total: float,
    means: tuple[float, float],
) -> str:
    if tree:
        parts = net_parts(tree, _MOST_NAMED)
    else:
        parts = _net_subsystems(subsystems, total) or (() if cancel_almost(functions) else tuple(functions))
    shown = [f"{part.name} {number_format.rounded(part.difference)}" for part in parts]
    rest = total - sum(part.difference for part in parts)
    if shown and abs(rest) >= _SMALLEST:
        shown.append(f"the rest {number_format.rounded(rest)}")
    named = ", ".join(shown) or "many small differences" if total else "no function differs"
    before, after = map(number_format.number, means)
    return f"{number_format.rounded(total)} ({before} → {after}): {named}"


def _net_subsystems(subsystems: Sequence[NetPart], total: float) -> tuple[NetPart, ...]:
    """The largest that have the total's sign and are most of it; none where they are not."""
    parts: list[NetPart] = []
    room = abs(total)
    for part in subsystems:
        if part.difference * total > 0 and abs(part.difference) <= room and len(parts) < _MOST_NAMED:
            parts.append(part)
            room -= abs(part.difference)
    return tuple(parts) if room <= abs(total) / 2 else ()


def _changed_workloads(record: StudyRecord, profiled: Container[str]) -> Iterator[tuple[Comparison, ...]]:
    """Comparisons by workload, of each pair of treatments: of workloads that have profiles."""
    for group in summary.groups(record):
        counted = [comparison for comparison in group.comparisons if comparison.mode is Mode.EXACT_PLUGIN]
        for workload in dict.fromkeys(comparison.workload for comparison in counted):
            its = tuple(comparison for comparison in counted if comparison.workload == workload)
            if workload in profiled and any(comparison.verdict in _CHANGED for comparison in its):
                yield its


def part_of(explanation: Explanation, row: FunctionDifference) -> DifferencePart:
    """One function's part."""
    difference = explanation.difference(row)
    return DifferencePart(
        name=row.name,
        before=_value(row.before, explanation.before),
        after=_value(row.after, explanation.after),
        difference=float(difference),
        share=explanation.share(difference),
        byte_difference=float(explanation.byte_difference(row)),
        subsystem=row.subsystem,
        match=row.match,
    )


def _value(count: Count, side: ProfileSide) -> float | None:
    return count.instructions / side.operations if count.names else None


def sum_of(explanation: Explanation, rows: Iterable[FunctionDifference], name: str) -> DifferencePart:
    """The part of several functions together."""
    summed = list(rows)
    difference = explanation.difference_of(summed)
    return DifferencePart(
        name=name,
        before=sum(row.before.instructions for row in summed) / explanation.before.operations,
        after=sum(row.after.instructions for row in summed) / explanation.after.operations,
        difference=float(difference),
        share=explanation.share(difference),
        byte_difference=float(explanation.byte_difference_of(summed)),
    )


# What differs around two profiles, as lines of a report: levels, options, settings, counters.

_MOST = 12
"""Lines of each kind; what is left is counted."""
CAUSES = "Suspected causes, not measured: settings whose metrics moved as they say (explain --prove measures)"


def sections(differences: Differences, measured: Container[str] = ()) -> tuple[Section, ...]:
    """The kinds in which something differs, and what could not be compared.

    `measured`: files of settings, options and boot parameters that were taken back: nothing suspects them.
    """
    owned = [
        _option(difference)
        for difference in differences.options
        if difference.owners and difference.option not in measured
    ]
    changed = [
        difference for difference in differences.values if None not in (difference.before, difference.after)
    ]
    kinds = (
        _section(CAUSES, causes(differences, measured)),
        _section(
            "Levels",
            [
                f"{difference.factor}: {difference.before} → {difference.after}"
                for difference in differences.levels
            ],
        ),
        _section("Boot parameters", list(_boot(differences))),
        _section(
            "Suspected, not measured: options of the configuration that own these functions by their names",
            owned,
        ),
        _section("Settings, as the kernels boot", [_setting(difference) for difference in changed]),
        _section(
            "Counters, per operation",
            [
                f"{counter.counter}: {number_format.number(counter.before)} → "
                f"{number_format.number(counter.after)}"
                for counter in differences.counters
            ],
        ),
        _section("Not compared", list(differences.unknown)),
    )
    return tuple(kind for kind in kinds if kind.lines)


def causes(differences: Differences, measured: Container[str] = ()) -> list[str]:
    """`block/nullb1/queue/read_ahead_kb: 128 → 8192: average read size 128 → 2,340.6`: one line a setting."""

    def governed(difference: ValueDifference) -> str:
        return ", ".join(
            f"{metric.metric} {number_format.number(metric.before)} → {number_format.number(metric.after)}"
            for metric in difference.governs
        )

    return [
        f"{_setting(difference)}: {governed(difference)}"
        for difference in differences.values
        if difference.governs and difference.path not in measured
    ]


def _section(title: str, lines: Sequence[str]) -> Section:
    return Section(title, tuple(map(one_line, lines[:_MOST])), max(0, len(lines) - _MOST))


def _boot(differences: Differences) -> Iterator[str]:
    yield from (f"{number_format.MINUS}{parameter}" for parameter in differences.boot_before)
    yield from (f"+{parameter}" for parameter in differences.boot_after)


def _option(difference: OptionDifference) -> str:
    owner = f" ({difference.owners[0]})" if difference.owners else ""
    return f"{option_change(difference)}{followers_of(difference)}{owner}"


# The tables of what a difference is made of: kernel functions, what is left of them, and the sum.

_MOST_IN_MARKDOWN = 8
_SIDE_COLUMNS = 24


def notices(whys: Iterable[Why]) -> tuple[str, ...]:
    """What there is to know of how functions were matched, once each."""
    return tuple(dict.fromkeys(why.notice for why in whys if why.notice))


def functions_of_page(why: Why) -> Table:
    """All functions that are shown by name, the others together, the sum."""
    return _table(why.rows, with_bytes=why.bytes)


def functions_of_document(why: Why) -> Table:
    """Fewer of them, for a pull request."""
    shown = why.parts[:_MOST_IN_MARKDOWN]
    return _table((*shown, _unshown(why), why.total), with_bytes=why.bytes)


def functions_table(
    explanation: Explanation, shown: Sequence[FunctionDifference], sides: tuple[str, str]
) -> Table:
    """The functions that are shown, the others, the sum. `sides`: what stands above their numbers."""
    places = {id(row) for row in shown}
    left = [row for row in explanation.rows if id(row) not in places]
    parts = (
        *(part_of(explanation, row) for row in shown),
        sum_of(explanation, left, number_format.counted(len(left), "other row")),
        sum_of(explanation, explanation.rows, "the sum"),
    )
    shown_table = _table(parts, with_bytes=bool(explanation.byte_rows))
    for key, heading in zip(("before", "after"), sides, strict=True):
        shown_table = shown_table.adapted(key, heading=heading, named=True, heading_columns=_SIDE_COLUMNS)
    return shown_table


def subsystems_table(explanation: Explanation, smallest: float) -> Table:
    """The same by subsystem, without those that are shown as 0."""
    parts = (
        DifferencePart(subsystem, None, None, float(difference), explanation.share(difference))
        for subsystem, difference in explanation.subsystems.items()
        if abs(difference) >= smallest
    )
    return table(
        (
            Field[DifferencePart](Column("subsystem", "subsystem"), lambda part: own(part.name)),
            Field(Column("difference", "difference", numeric=True), _difference),
            Field(Column("share", "share", "%", numeric=True), _share),
        ),
        parts,
    )


def _unshown(why: Why) -> DifferencePart:
    """What is below the rows that are shown: other functions as one row."""
    left = [*why.parts[_MOST_IN_MARKDOWN:], why.remainder]
    shares = [part.share for part in left if part.share is not None]
    return DifferencePart(
        name="all others",
        before=sum(part.before or 0 for part in left),
        after=sum(part.after or 0 for part in left),
        difference=sum(part.difference for part in left),
        share=sum(shares) if shares else None,
        byte_difference=sum(part.byte_difference for part in left),
    )


def _table(parts: Sequence[DifferencePart], *, with_bytes: bool) -> Table:
    """The last two rows are others together, and the sum."""
    shown_table = table(tuple(_fields(with_bytes=with_bytes)), parts, "functions")
    *named, remainder, total = shown_table.rows
    return replace(
        shown_table, rows=(*named, _in_words(remainder), replace(_in_words(total), kind=RowKind.SUM))
    )


def _in_words(row: Row) -> Row:
    first, *following = row.cells
    return replace(row, cells=(replace(first, kind=Kind.OWN), *following))


def _fields(*, with_bytes: bool) -> Iterator[Field[DifferencePart]]:
    yield Field(Column("function", "function", wraps=True), _function)
    yield Field(
        Column("before", "baseline", numeric=True, wide=True),
        lambda part: number(part.before),
    )
    yield Field(Column("after", "value", numeric=True, wide=True), lambda part: number(part.after))
    yield Field(Column("difference", "difference", numeric=True), _difference)
    yield Field(
        Column("share", "share", "%", numeric=True),
        _share,
    )
    if with_bytes:
        yield Field(Column("bytes", "bytes", numeric=True, wide=True), _bytes)
    yield Field(
        Column("subsystem", "subsystem", outputs=Output.HTML, wide=True),
        lambda part: own(part.subsystem, emphasis=Emphasis.MUTED),
    )


def _function(part: DifferencePart) -> Cell:
    values = f"{number_format.number(part.before)} → {number_format.number(part.after)}"
    moved = f"; {number_format.signed(part.byte_difference)} bytes" if part.byte_difference else ""
    return Cell(part.name, part.name, Kind.CODE, narrow=values + moved)


def _difference(part: DifferencePart) -> Cell:
    colour = Verdict.WORSE if part.difference > 0 else Verdict.BETTER
    return Cell(part.difference, number_format.signed(part.difference), verdict=colour)


def _share(part: DifferencePart) -> Cell:
    return Cell(part.share, number_format.share(part.share))


def _bytes(part: DifferencePart) -> Cell:
    text = number_format.signed(part.byte_difference) if part.byte_difference else ""
    return Cell(part.byte_difference, text)
