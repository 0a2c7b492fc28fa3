"""Bundles that somebody, or some disk, has changed: bytes of the archive, and what stands in its files."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support import bundles

_TEXTS = (
    *("", "\0", "../../etc/passwd", "<script>alert(1)</script>", "\x1b[2J", "\u202etxt.exe", "A" * 5000),
    *("NaN", "-Infinity", "9" * 5000, "${jndi:x}", "'; drop table trials; --", "{{ 7*7 }}", "%s%n", "\ud800"),
)
_NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**300,
    -(10**30),
    0.0,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
)
_OTHERS: tuple[Any, ...] = (None, True, [], {}, [[[[[]]]]], {"a": {"b": {}}})


def damaged(archive: bytes, draw: random.Random) -> bytes:
    """The archive with bytes changed, cut out, doubled, or moved."""
    made = bytearray(archive)
    for _ in range(draw.choice((1, 1, 1, 2, 5, 50))):
        if not made:
            break
        at, length = draw.randrange(len(made)), draw.choice((1, 1, 2, 4, 30, 1000))
        match draw.randrange(6):
            case 0:
                made[at] ^= 1 << draw.randrange(8)
            case 1:
                made[at : at + length] = draw.randbytes(length)
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = made[at : at + length]
            case 4:
                made[at : at + 4] = draw.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"PK\1\2", b"PK\5\6"))
            case _ if draw.random() < 0.3:
                del made[at:]
            case _:
                moved = made[at : at + length]
                del made[at : at + length]
                to = draw.randrange(len(made) + 1)
                made[to:to] = moved
    return bytes(made)


def forged(files: Mapping[str, bytes], draw: random.Random) -> bytes:
    """An archive whose digests are right, and in whose files values, keys or whole parts are others."""
    made = dict(files)
    for _ in range(draw.choice((1, 1, 2, 4))):
        name = draw.choice(sorted(made))
        if name.endswith(".json"):
            made[name] = json.dumps(_changed(json.loads(made[name]), draw)).encode("utf-8", "surrogatepass")
        elif draw.random() < 0.5:
            made[name] = damaged(made[name], draw)
        else:
            del made[name]
    return bundles.packed(bundles.relisted(made))


def _changed(data: Any, draw: random.Random) -> Any:
    """The JSON with one value, somewhere, replaced."""
    places = list(_places(data))
    if not places:
        return draw.choice(_OTHERS)
    holder, key = draw.choice(places)
    if isinstance(holder, dict) and draw.random() < 0.15:
        holder[draw.choice(_TEXTS)] = holder.pop(key)
    elif isinstance(holder, dict) and draw.random() < 0.15:
        del holder[key]
    else:
        holder[key] = draw.choice((*_TEXTS, *_NUMBERS, *_OTHERS))
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield data, key
        yield from _places(value)
