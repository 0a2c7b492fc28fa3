"""Units of benchmark results: what they are units of, how they convert, and which way is better.

One grammar for all that names a unit: endings of column names (`throughput_mbit_s`), brackets (`Time (ms)`),
cells of a unit column, tools' own fields, `--unit`. What is not understood has no unit: none is guessed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

from ktrial.model.workload import Direction

_HIGHER, _LOWER = Direction.HIGHER, Direction.LOWER


@dataclass(frozen=True)
class Unit:
    """A unit that is understood."""

    symbol: str
    """`Mbit/s`."""
    quantity: str
    """`bytes/s`: values in units of one quantity convert into each other."""
    factor: Fraction
    """In the quantity's own unit: seconds, bytes, operations a second…"""
    direction: Direction | None
    """None where the unit does not tell, as of bytes."""
    ambiguous: bool = False
    """Whether people write it for two units (`mb/s`): it is compared with itself only."""

    def converts_to(self, other: "Unit") -> bool:
        """Whether values in one can be told in the other."""
        return self == other or (self.quantity == other.quantity and not (self.ambiguous or other.ambiguous))


# --- The table. Factors are exact.

_NANO, _MICRO, _MILLI = Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 1000)
_TIMES = {
    "ns": (_NANO, "ns nsec nsecs nanosecond nanoseconds"),
    "us": (_MICRO, "us µs usec usecs µsec microsec microsecond microseconds"),
    "ms": (_MILLI, "ms msec msecs millis millisec millisecond milliseconds"),
    "s": (Fraction(1), "s sec secs second seconds"),
    "min": (Fraction(60), "min mins minute minutes"),
    "h": (Fraction(3600), "h hr hour hours"),
}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NOUNS = {
    "operations": "op ops operation", "transactions": "tx txn txns trans transaction", "loops": "loop",
    "requests": "req reqs request", "packets": "pkt pkts packet", "messages": "msg msgs message",
    "IO": "io ios i/o i/os", "queries": "query", "events": "event", "frames": "frame", "calls": "call",
    "iterations": "iter iters iteration", "connections": "conn conns connection", "rows": "row",
    "records": "record", "items": "item", "jobs": "job", "tasks": "task", "files": "file", "pages": "page",
    "lookups": "lookup", "inserts": "insert", "updates": "update", "reads": "read", "writes": "write",
    "switches": "switch ctxsw", "syscalls": "syscall", "nodes": "node", "samples": "sample",
    "tokens": "token", "images": "image", "steps": "step", "keys": "key", "hashes": "hash",
    "commits": "commit", "wakeups": "wakeup", "cycles": "cycle", "instructions": "instruction insn insns",
    "sessions": "session", "elements": "element elem elems", "blocks": "block", "forks": "fork",
    "processes": "process", "threads": "thread", "signals": "signal", "allocations": "alloc allocs",
    "bogo ops": "bogo-ops", "FLOP": "flop", "faults": "fault", "errors": "error",
    "failures": "failure", "misses": "miss", "drops": "drop", "retries": "retry",
    "retransmits": "retransmit retr", "timeouts": "timeout", "watts": "", "joules": "",
}  # fmt: skip
_UNWANTED = {"faults", "errors", "failures", "misses", "drops", "retries", "retransmits", "timeouts"}
"""Fewer a second are better."""
_COSTS = {"cycles", "instructions", "joules", "allocations", *_UNWANTED}
"""Fewer of them for the same work are better."""
_RATE_WORDS = {
    "tps": "transactions", "qps": "queries", "rps": "requests", "iops": "IO", "fps": "frames",
    "pps": "packets", "lps": "loops", "flops": "FLOP", "ops/s": "operations",
}  # fmt: skip
_PLAIN = {
    "lpm": Unit("lpm", "loops/s", Fraction(1, 60), _HIGHER),
    "mwips": Unit("MWIPS", "MWIPS", Fraction(1), _HIGHER),
    "mips": Unit("MIPS", "MIPS", Fraction(1), _HIGHER),
    "index": Unit("index", "index", Fraction(1), _HIGHER),
    "score": Unit("index", "index", Fraction(1), _HIGHER),
    "points": Unit("points", "points", Fraction(1), _HIGHER),
    "ipc": Unit("instructions/cycle", "instructions/cycle", Fraction(1), _HIGHER),
    "joules": Unit("J", "energy", Fraction(1), _LOWER),
    "watts": Unit("W", "power", Fraction(1), _LOWER),
    "j": Unit("J", "energy", Fraction(1), _LOWER),
    "w": Unit("W", "power", Fraction(1), _LOWER),
    "%": Unit("%", "%", Fraction(1), None),
    "percent": Unit("%", "%", Fraction(1), None),
}

_BY_SPELLING = {word: symbol for symbol, (_, words) in _TIMES.items() for word in words.split()}
_NOUN_OF = {word: noun for noun, words in _NOUNS.items() for word in (noun.lower(), *words.split())}
_SIZE = re.compile(r"([kmgtp]?)(i?)(bytes?|bits?|b|byte/s|bit/s)", re.IGNORECASE)
_COUNT = re.compile(r"(kilo|mega|giga|million|thousand|k|m|g|t)?[ -]?(.+)", re.IGNORECASE)
_COUNT_POWERS = {**_POWERS, "kilo": 1, "mega": 2, "giga": 3, "thousand": 1, "million": 2}
_LONGEST = 60


# --- Text of a unit, as a cell or a bracket has it.


@cache
def unit_named(text: str) -> Unit | None:
    """`MB/s`, `Requests Per Second`, `usecs/op`; None where it is not understood."""
    plain = " ".join(text.replace("\u03bc", "µ").split()).strip(" .")
    if not plain or len(plain) > _LONGEST or plain in ("1", "K", "k", "M", "G"):
        return None
    if (known := _PLAIN.get(plain.lower())) is not None:
        return known
    above, below = _parts(plain)
    if below:
        return _quotient(above, below)
    return _time(plain) or _rate_word(plain) or _size(plain) or _count(plain)


def _parts(text: str) -> tuple[str, str]:
    """What stands above the stroke and below it; `per` is a stroke."""
    words = re.split(r"\s*/\s*(?!o\b|os\b)|[\s_]+per[\s_]+", text, flags=re.IGNORECASE)
    return (words[0], words[1]) if len(words) == 2 and words[1] else (text, "")


def _time(text: str) -> Unit | None:
    symbol = _BY_SPELLING.get(text if text in ("M", "H") else text.lower())
    return Unit(symbol, "s", _TIMES[symbol][0], _LOWER) if symbol else None


def _size(text: str) -> Unit | None:
    """Bytes and bits: `KiB` is 1024 bytes, `kB` 1000. `mb` is written for both, and `B` for bytes only."""
    match = _SIZE.fullmatch(text.replace(" ", ""))
    if not match:
        return None
    prefix, binary, name = match[1].lower(), match[2], match[3]
    bits = name.lower().startswith("bit") or (name == "b" and match[1].isupper() and not binary)
    base = 1024 if binary else 1000
    factor = Fraction(base ** _POWERS[prefix], 8 if bits else 1)
    shown = (prefix if bits and prefix == "k" else prefix.upper()) + ("i" if binary else "")
    symbol = f"{shown}{'bit' if bits else 'B'}"
    return Unit(
        symbol, "bytes", factor, None, ambiguous=name == "b" and not bits and bool(prefix) and not binary
    )


def _rate_word(text: str) -> Unit | None:
    """`tps`, `kiops`, `Mbps`: so much a second, in one word. `mbps` is bits where it is told apart at all."""
    word = text.lower()
    for rate, noun in _RATE_WORDS.items():
        if word.endswith(rate) and (power := _COUNT_POWERS.get(word.removesuffix(rate))) is not None:
            shown = word.removesuffix(rate) + rate.upper() if rate == "iops" else text
            return Unit(shown, f"{noun}/s", Fraction(1000**power), _HIGHER)
    match = re.fullmatch(r"([kmgt]i?)(b|bit|bits)ps", text, re.IGNORECASE)
    if not match:
        return None
    bits = match[2] != "B"
    size = _size(f"{match[1]}{'bit' if bits else 'B'}")
    ambiguous = text == word and match[2] == "b"
    return _per_second(size, ambiguous) if size else None


def _per_second(size: Unit, ambiguous: bool) -> Unit:
    return replace(
        size, symbol=f"{size.symbol}/s", quantity="bytes/s", direction=_HIGHER, ambiguous=ambiguous
    )


def _count(text: str) -> Unit | None:
    """A number of things that have a name here; `K` and `M` alone are so many of what is told elsewhere."""
    if text in ("1", "", "K", "k", "M", "G"):
        return Unit(text, "", Fraction(1000 ** _POWERS.get(text.lower(), 0)), None)
    prefix, name = "", text
    noun = _NOUN_OF.get(text.lower())
    match = _COUNT.fullmatch(text)
    if noun is None and match and match[1]:
        prefix, name = match[1].lower(), match[2]
        noun = _NOUN_OF.get(name.lower())
    if noun is None:
        return None
    factor = Fraction(1000 ** _COUNT_POWERS[prefix])
    return Unit(text, noun, factor, _LOWER if noun in _COSTS else None)


def _quotient(above: str, below: str) -> Unit | None:
    """So much a time, or so much for each thing; the thing needs no name here, the time does."""
    over = _time(below)
    if over is not None:
        # iostat's `w/s` are writes a second.
        power = _PLAIN.get(above.lower()) if above in ("W", "J", "watts", "joules") else None
        what = power or _size(above) or _count(above) or Unit(above, above.lower(), Fraction(1), None)
        return Unit(
            symbol=f"{what.symbol}/{over.symbol}",
            quantity=f"{what.quantity}/s",
            factor=what.factor / over.factor,
            direction=_LOWER if what.quantity in (*_UNWANTED, "power", "energy") else _HIGHER,
            ambiguous=what.ambiguous,
        )
    top, bottom = _time(above) or _size(above) or _count(above) or _PLAIN.get(above.lower()), _count(below)
    if top is None:
        return None
    for_each = bottom.quantity if bottom else below.lower()
    higher = (top.quantity, for_each) == ("instructions", "cycles") or for_each in ("watts", "joules")
    costs = top.quantity in ("s", "bytes", "energy", *_COSTS)
    return Unit(
        symbol=f"{top.symbol}/{below}",
        quantity=f"{top.quantity}/{for_each}",
        factor=top.factor / (bottom.factor if bottom else 1),
        direction=_HIGHER if higher else _LOWER if costs else None,
        ambiguous=top.ambiguous,
    )


def direction_of(unit: str) -> Direction | None:
    """Which way is better, told by the unit; None where that tells nothing."""
    known = unit_named(unit)
    return known.direction if known else None


def is_by_clock(unit: str) -> bool:
    """Whether it is a unit of time, or of so much a time."""
    known = unit_named(unit)
    return known is not None and (
        known.quantity in ("s", "MWIPS", "MIPS") or known.quantity.endswith("/s") or unit == "lpm"
    )


def is_count(unit: str) -> bool:
    """Whether it counts single things, bytes among them, also for each operation: `B`, `allocs/op`."""
    known = unit_named(unit)
    if known is None or known.factor != 1 or is_by_clock(unit):
        return False
    above = known.quantity.partition("/")[0]
    return above == "bytes" or (above in _NOUNS and above not in ("watts", "joules", "FLOP"))


def converts(unit: str, target: str) -> bool:
    """Whether values in the one can be told in the other: of two texts that are understood."""
    known, other = unit_named(unit), unit_named(target)
    return known is not None and other is not None and known.converts_to(other)


def converted(value: float, unit: str, target: str) -> float:
    """A value in another unit: 1.5 ms is 1500 us. Raises ValueError where `converts` says no."""
    known, other = unit_named(unit), unit_named(target)
    if known is None or other is None or not known.converts_to(other):
        raise ValueError(f"{unit} is no {target}")
    return scaled(value, known, other)


def scaled(value: float, unit: Unit, target: Unit) -> float:
    """The same for units: whole factors multiply or divide, so that no digit is lost."""
    scale = unit.factor / target.factor
    return value * scale.numerator / scale.denominator


# --- Names of columns: what stands in brackets, behind a comma, or at the end.

_LASTING = frozenset(
    (
        "time", "latency", "elapsed", "duration", "wall", "real", "user", "sys", "system", "cpu",
        "runtime", "lat", "delay", "wait", "response", "rt", "total", "mean", "median", "avg", "average",
        "max", "min", "maximum", "minimum", "std", "stddev", "sd", "p50", "p90", "p95", "p99", "p999",
        "jitter", "interval", "period", "clat", "slat", "lag", "build", "boot", "execution", "turnaround",
        "completion", "service", "setup", "startup", "pause", "gc", "warmup", "walltime",
    )
)  # fmt: skip
"""Words before `_s` that leave no doubt that it is seconds."""
_MORE = {"throughput": _HIGHER, "bandwidth": _HIGHER, "goodput": _HIGHER, "speed": _HIGHER}
_LESS = {"latency": _LOWER, "elapsed": _LOWER, "duration": _LOWER, "runtime": _LOWER, "time": _LOWER}
_SECOND = {"s", "sec", "secs"}
_SHORT = {"op", "tx", "txn", "trans", "req", "pkt", "msg", "io", "conn", "iter", "insn"}
"""Of things: `op_s` is so many a second; `query_s` may be seconds."""
_NOT_ENDINGS = {"min", "h", "b", "m", "w", "j", "t", "hour", "minute", "second"}
"""Words that are something else than a unit at the end of a name: the smallest, a letter."""
_BRACKET = re.compile(r"^(.*?)\s*[(\[{]([^()\[\]{}]{1,40})[)\]}]\s*$")


@dataclass(frozen=True)
class NamedUnit:
    """What the name of a column says of its unit."""

    unit: Unit | None = None
    direction: Direction | None = None
    """What the name says besides: `higher is better`, `throughput`."""
    doubt: str = ""
    """The ending, where it may be a unit and is not understood."""
    meanings: tuple[str, ...] = ()
    """What it may mean, as `--unit` takes it."""


@dataclass(frozen=True)
class Units:
    """The grammar, with what the user said about names (`--unit NAME=UNIT`)."""

    said: Mapping[str, Unit] = field(default_factory=dict)

    def of_text(self, text: str) -> Unit | None:
        """A cell's unit, or a field's."""
        return self.said.get(text.strip()) or unit_named(text)

    def of_column(self, name: str) -> NamedUnit:
        """A column's unit, told by its name."""
        plain = name.strip()
        for ending, unit in self.said.items():
            if plain == ending or re.search(rf"[\s_.\-(\[,]{re.escape(ending)}[)\]]?$", plain):
                return NamedUnit(unit)
        return _in_brackets(plain) or _at_the_end(plain)


def _in_brackets(name: str) -> NamedUnit | None:
    match = _BRACKET.match(name)
    before, inner = (match[1], match[2]) if match else _behind_comma(name)
    if not inner:
        return None
    words = inner.lower()
    if "is better" in words or "=better" in words.replace(" ", ""):
        rest = Units().of_column(before)
        way = _HIGHER if re.search("high|more|larg", words) else _LOWER
        return NamedUnit(replace(rest.unit, direction=way) if rest.unit else None, way)
    if inner == "s" and name.endswith(f"{before}(s)") and not _lasts(before):
        # `Core(s)` are cores, and `Time(s)` are seconds.
        return NamedUnit(None, _told_by(before), name, (f"{name}=s",))
    if (unit := unit_named(inner)) is not None:
        return NamedUnit(unit, _told_by(before))
    rest = _at_the_end(before)
    return rest if rest.unit or "/" not in inner else NamedUnit(doubt=inner, meanings=(f"{inner}:higher",))


def _lasts(words: str) -> bool:
    """Whether the last word is of something that takes time."""
    last = re.split(r"[^a-z]+", _camel(words).lower())[-1]
    return last in _LASTING or last in _LESS or not last


def _behind_comma(name: str) -> tuple[str, str]:
    before, _, behind = name.rpartition(",")
    return (before, behind) if before and unit_named(behind) else ("", "")


def _told_by(name: str) -> Direction | None:
    words = re.split(r"[^a-z]+", _camel(name).lower())
    if any(word in _UNWANTED or word in ("error", "miss", "loss") for word in words):
        return None
    return next(({**_MORE, **_LESS}[word] for word in words if word in _MORE or word in _LESS), None)


def _at_the_end(name: str) -> NamedUnit:
    """The longest ending that is a unit; `_s` behind a word that may be counted is in doubt."""
    direction = _told_by(name)
    whole = None if "_" in name or name.lower() in _NOT_ENDINGS or _is_noun(name) else unit_named(name)
    if whole is not None:
        return NamedUnit(whole, direction)
    words = [word for word in re.split(r"[\s_\-.:]+", _camel(name)) if word]
    if "/" in name and words and (unit := unit_named(words[-1])):
        return NamedUnit(unit, direction)
    if len(words) > 2 and words[-2].lower() == "per":
        return NamedUnit(_quotient(_counted(words[:-2]), words[-1]), direction)
    if words[-2:-1] and words[-2].isdigit() and "per" in map(str.lower, words):
        # `messages_per_10_seconds` is no time.
        return NamedUnit(None, direction, name, (f"{name}={name}:higher", f"{name}={name}:lower"))
    # `tx_s` is so many a second, and `malloc_ms` and `miss_ns` are times.
    if len(words) > 1 and words[-1].lower() in _SECOND and (size := _per(words)) is not None:
        # `time_to_first_byte_ms` is a time.
        return NamedUnit(unit_named(words[-1]) if direction is _LOWER else size, direction)
    last = words[-1].lower() if words else ""
    if last in _SECOND and len(words) > 1 and words[-2].lower() not in _LASTING:
        ending = f"{words[-2]}_{words[-1]}"
        return NamedUnit(None, direction, ending, (f"{ending}=s", f"{ending}={words[-2]}/s"))
    if last in _NOT_ENDINGS or (unit := unit_named(words[-1] if words else "")) is None or _is_noun(last):
        return NamedUnit(None, direction)
    return NamedUnit(unit, direction)


def _is_noun(word: str) -> bool:
    """Whether it only says what is counted: `rows` is no unit of a column."""
    return word.lower() in _NOUN_OF and word.lower() not in _PLAIN


def _counted(words: list[str]) -> str:
    """What is so much a time, in `rate_per_sec` and `ops_per_s`: the last word, if it can be counted."""
    last = words[-1]
    return last if _size(last) or _count(last) or _time(last) else "1"


def _per(words: list[str]) -> Unit | None:
    """A size or things that have a name, a time: `mbit_s`, `tx_s`, `kib_sec`."""
    above = words[-2]
    if _size(above) is not None and above.lower() not in ("b", "t", "m"):
        return _quotient(above, words[-1])
    if above.lower() in _NOUN_OF and (above.lower() in _SHORT or above.lower().endswith("s")):
        return _quotient(above, words[-1])
    return _quotient(above, words[-1]) if _COUNT.fullmatch(above) and _prefixed(above) else None


def _prefixed(word: str) -> bool:
    known = _count(word)
    return known is not None and known.factor > 1


def _camel(name: str) -> str:
    """`opsPerSec` and `latencyUs` in words; `readKiB` as `read KiB`."""
    return re.sub(r"(?<=[a-z])(?=[KMGT]i?[Bb](?:it)?(?:ps)?$|[A-Z][a-z]+)", " ", name)


def units_said(texts: Iterable[str]) -> Units:
    """What `--unit NAME=UNIT` says; UNIT may end in `:higher` or `:lower`. Raises ValueError."""
    said = {}
    for text in texts:
        name, equals, wish = text.rpartition("=")
        unit, _, way = wish.partition(":")
        if not equals or not name.strip() or not unit.strip() or way not in ("", "higher", "lower"):
            raise ValueError(f"{text!r} is not NAME=UNIT")
        known = unit_named(unit)
        if known is None and not way:
            raise ValueError(
                f"the unit {unit} is not known: say which way is better, {unit}:higher or :lower"
            )
        known = known or Unit(unit.strip(), unit.strip(), Fraction(1), None)
        known = replace(known, symbol=unit.strip(), ambiguous=False)
        said[name.strip()] = replace(known, direction=Direction(way)) if way else known
    return Units(said)
