"""docs/fidelity.md: how far counted changes agree with those in real time, by what is kept of both."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf, log, sqrt
from typing import Any

from docs.measured.declaration import Block
from docs.measured.fidelity_result import kept
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, percent, prose, table

_PAGE = "docs/fidelity.md"
_NOTHING = "CHANGE=nothing"
_DECIDED = ("better", "worse")
_COSTS = {
    "instruction": "instructions",
    "string_bytes": "string bytes",
    "l2": "lines from L2",
    "llc": "lines from L3",
    "memory": "lines from memory",
    "stlb": "translations from the second level",
    "walk": "page walks",
    "misprediction": "mispredictions",
    "classes": "dear instructions",
}


def _decided(measuring: Measuring) -> str:
    """Of each study, how many pairs real time decides."""
    del measuring
    pairs = kept()["pairs"]
    studies = dict.fromkeys(one["study"] for one in pairs)
    rows = [_decided_row(name, [one for one in pairs if one["study"] == name]) for name in studies]
    rows.append(_decided_row("all", pairs))
    decided = ("in time", "by instructions", "by both", "in time, where nothing was changed")
    heads = ("study", "pairs", *(f"decided {each}" for each in decided))
    return table(heads, rows, right=True)


def _decided_row(name: str, pairs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    timed = [one for one in pairs if is_decided(one["time"])]
    counted = [one for one in pairs if is_decided(one["exact"]["instructions"])]
    same = [one for one in pairs if one["treatment"] == _NOTHING]
    both = [one for one in timed if one in counted]
    false = sum(is_decided(one["time"]) for one in same)
    nothing = f"{false} of {len(same)}" if same else "no such pair"
    return (name, *(str(len(each)) for each in (pairs, timed, counted, both)), nothing)


_VERDICTS = ("better", "worse", "equivalent", "inconclusive")


def _verdicts(measuring: Measuring) -> str:
    """Every pair by both verdicts: what is right, what is missed, what is claimed and not there."""
    del measuring
    pairs = kept()["pairs"]

    def count(timed: str, counted: str) -> str:
        both = [
            one for one in pairs if one["time"][3] == timed and one["exact"]["instructions"][3] == counted
        ]
        return str(len(both))

    heads = ("in time", *(f"by instructions: {_said(counted)}" for counted in _VERDICTS))
    rows = ((_said(timed), *(count(timed, counted) for counted in _VERDICTS)) for timed in _VERDICTS)
    return table(heads, rows, right=True)


def _said(verdict: str) -> str:
    return "undecided" if verdict == "inconclusive" else verdict


_VERDICTS_IN_SHORT = """
Both sides decided {both} of {pairs} pairs at a margin of {margin}: the sign agreed in {same}. Of those
pairs {large} differ by more than 10 %. Of the {timed} that time decided, instructions called {missed}
equivalent or left them undecided. Of the {counted} that instructions decided, time confirmed {same},
contradicted {other}, called {equivalent} equivalent, and left {open} undecided. All of that is one machine.
"""


def _verdicts_in_short(measuring: Measuring) -> str:
    del measuring
    pairs = kept()["pairs"]
    timed = [one for one in pairs if is_decided(one["time"])]
    counted = [one for one in pairs if is_decided(one["exact"]["instructions"])]
    both = [one for one in counted if is_decided(one["time"])]
    same = [one for one in both if one["time"][3] == one["exact"]["instructions"][3]]
    counts = {
        "both": both,
        "pairs": pairs,
        "same": same,
        "large": [one for one in both if _size(one["exact"]["instructions"]) > 1.1],
        "timed": timed,
        "missed": [one for one in timed if one not in both],
        "counted": counted,
        "other": [one for one in both if one not in same],
        "equivalent": [one for one in counted if one["time"][3] == "equivalent"],
        "open": [one for one in counted if one["time"][3] == "inconclusive"],
    }
    return prose(_VERDICTS_IN_SHORT, margin="3 %", **{name: str(len(each)) for name, each in counts.items()})


def is_decided(change: Sequence[Any]) -> bool:
    """Whether a change is better or worse beyond the margin."""
    return change[3] in _DECIDED


def _figures(measuring: Measuring) -> str:
    """Signs, ranks and errors of each count."""
    del measuring
    told = kept()
    heads = ("count", "treatments", "same sign", "Spearman", "Pearson", "RMS error of log ratios", "slope")
    halves = (("all", told["all"]), ("the half held out", told["held_out"]))
    return table(heads, (figures_row(one, half) for half, each in halves for one in each), right=True)


def figures_row(one: dict[str, Any], half: str) -> tuple[str, ...]:
    """A count's row: signs, ranks, error and slope."""
    if not one["decided"]:
        return (one["count"], half, "0 of 0", *["unknown"] * 4)
    signs = f"{one['same_sign']} of {one['decided']} ({one['same_sign'] / one['decided']:.0%})"
    ranks = (_interval(one[name]) for name in ("spearman", "pearson"))
    return (one["count"], half, signs, *ranks, decimal(one["rms_error"], 2), decimal(one["slope"], 2))


def _interval(one: dict[str, Any]) -> str:
    if one["value"] is None:
        return "unknown"
    ends = "" if one["low"] is None else f" ({decimal(one['low'], 2)} to {decimal(one['high'], 2)})"
    return f"{decimal(one['value'], 2)}{ends}"


def _sizes(measuring: Measuring) -> str:
    """By the size of the counted change: how often the sign was right, and the error of what both decided."""
    del measuring
    told = kept()
    heads = ("counted change", *(f"{one['count']}: sign, error" for one in told["all"]))
    bands = zip(*(one["bands"] for one in told["all"]), strict=True)
    counts = [one["count"] for one in told["all"]]
    return table(heads, (_size_row(each, counts, told["pairs"]) for each in bands), right=True)


def _size_row(
    bands: Sequence[dict[str, Any]], counts: Sequence[str], pairs: Sequence[dict[str, Any]]
) -> tuple[str, ...]:
    low, high = bands[0]["low"], bands[0]["high"]
    size = f"more than {low:.1f} times" if high is None else f"{low:.1f} to {high:.1f} times"
    cells = []
    for band, count in zip(bands, counts, strict=True):
        both = [one for one in pairs if is_decided(one["time"]) and is_decided(one["exact"][count])]
        inside = [one for one in both if low <= _size(one["exact"][count]) < (high or inf)]
        cells.append(f"{band['same_sign']} of {band['decided']}, {decimal(_error(inside, count), 2)}")
    return (size, *cells)


def _size(change: Sequence[Any]) -> float:
    return max(float(change[0]), 1 / float(change[0]))


def _groups(measuring: Measuring) -> str:
    """Where the counts err, study by study: both figures over the same pairs, those that all have decided."""
    del measuring
    told = kept()
    counts = [one["count"] for one in told["all"]]
    studies = dict.fromkeys(one["study"] for one in told["pairs"])
    heads = ("study", "pairs", *(f"RMS error, {count}" for count in counts))
    return table(heads, _group_rows(told["pairs"], tuple(studies), counts), right=True)


def _group_rows(
    pairs: Sequence[dict[str, Any]], studies: Sequence[str], counts: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    whole = [one for one in pairs if all(map(is_decided, (one["time"], *one["exact"].values())))]
    for name in (*studies, "all"):
        some = [one for one in whole if name in (one["study"], "all")]
        if some:
            yield (name, str(len(some)), *(decimal(_error(some, count), 2) for count in counts))


def _error(pairs: Iterable[dict[str, Any]], count: str) -> float:
    squares = [log(one["time"][0] / one["exact"][count][0]) ** 2 for one in pairs]
    return sqrt(sum(squares) / len(squares))


def _disagreements(measuring: Measuring) -> str:
    """Each pair of which a count has another sign than time."""
    del measuring
    told = kept()
    counts = [one["count"] for one in told["all"]]
    wrong = {tuple(each) for one in told["all"] for each in one["disagreements"]}
    heads = ("change", "operation", "in time, %", *(f"{one}, %" for one in counts), "what moved")
    of = (one for one in told["pairs"] if (one["study"], one["workload"], one["treatment"]) in wrong)
    return table(heads, (_wrong_row(one, counts) for one in of))


def _wrong_row(one: dict[str, Any], counts: Sequence[str]) -> tuple[str, ...]:
    name = f"`{one['treatment'].partition('=')[2]}`"
    changes = (_change(one["exact"][count]) for count in counts)
    return (name, one["workload"].removeprefix("batch-"), _change(one["time"]), *changes, _moved(one))


def _change(change: Sequence[Any]) -> str:
    mark = {"equivalent": "≈ ", "inconclusive": "? "}.get(change[3], "")
    return f"{mark}{percent(change[0])}"


def _moved(one: dict[str, Any]) -> str:
    moved = sorted(one["costs"].items(), key=lambda each: -abs(each[1]))
    told = (f"{_COSTS[name]} {percent(1 + share, 0)} %" for name, share in moved)
    return ", ".join(told) or "nothing that is modelled"


def _fit(measuring: Measuring) -> str:
    """Constants fitted to half of the treatments, before and after, and the other half by them."""
    del measuring
    fit = kept()["fitted"]
    rows = [(_COSTS[name], _price(was), _price(fit["after"][name])) for name, was in fit["before"].items()]
    constants = table(("cost", f"`{fit['like']}`", "fitted"), rows, right=True)
    halves = (("as the model was", fit["held_out_before"]), ("fitted", fit["held_out"]))
    heads = ("the half held out", "same sign", "Spearman", "Pearson", "RMS error of log ratios", "slope")
    other = table(heads, ((name, *figures_row(each, "")[2:]) for name, each in halves), right=True)
    return f"{constants}\n{other}"


_IN_SHORT = """
Over {pairs} pairs of a change and an operation on a running system ([fidelity](fidelity.md)), of those that
real time and the count have both decided: instructions had the sign of time in {signs}, with a rank
correlation of {spearman} and an error (root mean square of log ratios) of {error}; modelled cycles in
{cycle_signs}, {cycle_spearman} and {cycle_error}. With constants fitted to one half of the changes, modelled
cycles foretell the other half with an error of {fitted_error}, instructions with {half_error}.
"""


def _in_short(measuring: Measuring) -> str:
    """For the page about exact mode: what may be said of counts and time."""
    del measuring
    told = kept()
    (instructions, cycles), half = _two(told["all"]), _two(told["held_out"])
    values = {
        "pairs": str(len(told["pairs"])),
        "signs": f"{instructions['same_sign']} of {instructions['decided']}",
        "spearman": decimal(instructions["spearman"]["value"], 2),
        "error": decimal(instructions["rms_error"], 2),
        "cycle_signs": f"{cycles['same_sign']} of {cycles['decided']}",
        "cycle_spearman": decimal(cycles["spearman"]["value"], 2),
        "cycle_error": decimal(cycles["rms_error"], 2),
        "fitted_error": decimal(told["fitted"]["held_out"]["rms_error"], 2),
        "half_error": decimal(half[0]["rms_error"], 2),
    }
    return prose(_IN_SHORT, **values)


def _two(figures: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of instructions and of modelled cycles."""
    by_count = {one["count"]: one for one in figures}
    return by_count["instructions"], by_count["modelled-cycles"]


def _price(value: float) -> str:
    return f"{value:.3g}"


BLOCKS = (
    Block("fidelity-in-short", _PAGE, _verdicts_in_short, simulated=True),
    Block("fidelity-verdicts", _PAGE, _verdicts, simulated=True),
    *(
        Block(f"fidelity-{name}", _PAGE, text, simulated=True)
        for name, text in (
            ("decided", _decided),
            ("figures", _figures),
            ("sizes", _sizes),
            ("groups", _groups),
            ("disagreements", _disagreements),
            ("fit", _fit),
        )
    ),
    Block("counts-and-time", "docs/exact-mode.md", _in_short, simulated=True),
)
