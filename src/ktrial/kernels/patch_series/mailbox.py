"""A series out of a mailbox, as `git format-patch --stdout` and `b4 am` write them.

Mails are split as git mailsplit does it, at `From ` lines with a date, and decoded (base64,
quoted-printable). The numbers in `[PATCH v3 02/12]` say the order, not the mailbox: each has to be
there once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from ktrial.kernels.build.errors import BadPatch
from ktrial.kernels.build.patch_reader import series_in
from ktrial.kernels.patch_series.errors import BadMailbox
from ktrial.kernels.patch_series.kept_patches import kept
from ktrial.model.kernel import PatchSeries, SeriesKind, SeriesPatch

_FROM = re.compile(
    rb"^From \S+(?: at \S+)? +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .*\d\d:\d\d(?::\d\d)? .*\d{4}\b.*\n"
    rb"(?=>?[A-Za-z-]+: )",
    re.MULTILINE,
)
"""The line between two mails, stricter than git mailsplit's is_from_line: a header has to follow."""
_TAG = re.compile(
    r"(?P<others>(?:\s*\[(?![^\]]*\bPATCH\b)[^\]]*\])*)\s*\[(?P<inside>[^\]]*\bPATCH\b[^\]]*)\]\s*",
    re.IGNORECASE,
)
"""At a subject's beginning, where other tags may stand before it: behind words it is another mail's, to which
this one is an answer (`What of ABI? (Re: [PATCH 01/32] pidfs…)`).
"""
_NUMBER = re.compile(r"(?<![\w/])(?P<number>\d{1,4})/(?P<of>\d{1,4})(?![\w/])")
_VERSION = re.compile(r"\bv(\d+)\b", re.IGNORECASE)
_REPLY = re.compile(r"^(?:re|aw|fwd?|antw):", re.IGNORECASE)
_DIFF = re.compile(r"^(?:diff --git |--- .*\n\+\+\+ .*\n@@ |GIT binary patch$)", re.MULTILINE)
_MOST_BYTES = 256 << 20
_WRITE_IT = (
    "git format-patch --cover-letter --stdout BASE..TIP writes one, and b4 am -o - MESSAGE-ID fetches one"
)


@dataclass(frozen=True)
class Mail:
    """One mail of a series."""

    place: int
    """In the mailbox, from 1."""
    subject: str
    """Without its tags."""
    number: int | None
    """In the series; 0: the cover letter; None: it says none."""
    of: int
    version: str
    message_id: str
    author: str
    content: bytes
    """The text, decoded, its lines ending with LF."""

    @property
    def has_diff(self) -> bool:
        """Whether it changes a file."""
        return bool(_DIFF.search(self.content.decode("utf-8", "surrogateescape")))

    @property
    def shown(self) -> str:
        """For messages: `mail 3 ([PATCH 2/12] mm: slub: count)`."""
        number = f"[PATCH {self.number}/{self.of}] " if self.number is not None else ""
        return f"mail {self.place} ({number}{self.subject[:60]})"


def series_in_mailbox(path: Path, base: str) -> PatchSeries:
    """The series in a mailbox, its patches kept as files. `base`: what it applies to, as a Build names it.

    Raises BadMailbox, and BadPatch, which names mail, file and hunk.
    """
    place = path.expanduser().absolute()
    mails, notes = _of_the_series(place, list(mails_in(place, _content(place))))
    cover = next((one for one in mails if one.number == 0), None)
    patches = tuple(_patch(place, number, one) for number, one in enumerate(_ordered(place, mails), start=1))
    title = cover.subject if cover else patches[0].subject if len(patches) == 1 else ""
    return PatchSeries(
        kind=SeriesKind.MAILBOX,
        origin=str(place),
        base=base,
        title=title,
        version=mails[0].version,
        cover_id=cover.message_id if cover else "",
        patches=patches,
        notes=notes,
    )


def mails_in(path: Path, content: bytes) -> Iterator[Mail]:
    """Each mail. Raises BadMailbox where there is none."""
    begins = [match for match in _FROM.finditer(content) if _is_between(content, match.start())]
    if not begins:
        if not re.match(rb"[A-Za-z-]+: ", content):
            raise _bad(path, "there is no mail in it", _WRITE_IT)
        yield _mail(1, content)
        return
    ends = [*(match.start() for match in begins[1:]), len(content)]
    for place, (match, end) in enumerate(zip(begins, ends, strict=True), start=1):
        yield _mail(place, content[match.end() : end])


def _content(path: Path) -> bytes:
    try:
        if not path.is_file() and not path.is_dir() and path.exists():
            # A pipe or a device may never end.
            raise _bad(path, "it is no file", _WRITE_IT)
        if path.stat().st_size > _MOST_BYTES:
            raise _bad(
                path, f"it is larger than {_MOST_BYTES >> 20} MiB", "give the mails of one series only"
            )
        content = path.read_bytes()
    except OSError as error:
        raise _bad(path, f"it cannot be read: {error.strerror}", _WRITE_IT) from None
    if not content.strip():
        raise _bad(path, "it is empty", _WRITE_IT)
    return content.replace(b"\r\n", b"\n") if content.count(b"\n") == content.count(b"\r\n") else content


def _is_between(content: bytes, at: int) -> bool:
    """Whether a `From ` line stands at the start, or behind an empty line."""
    return at == 0 or content[max(0, at - 2) : at] == b"\n\n"


def _mail(place: int, raw: bytes) -> Mail:
    mail = message_from_bytes(raw, policy=policy.default.clone(raise_on_defect=False))
    assert isinstance(mail, EmailMessage), "the policy says so"
    whole = " ".join(_header(mail, "Subject").split())
    tag = _TAG.match(whole)
    inside = tag["inside"] if tag and not _REPLY.match(whole) else ""
    number, version = _NUMBER.search(inside), _VERSION.search(inside)
    return Mail(
        place=place,
        subject=f"{tag['others']} {whole[tag.end() :]}".strip() if tag and inside else whole,
        number=int(number["number"]) if number else None,
        of=int(number["of"]) if number else 0,
        version=f"v{int(version[1])}" if version and int(version[1]) > 1 else "",
        message_id=_header(mail, "Message-Id").strip().strip("<>"),
        author=_header(mail, "From").strip(),
        content=_text(mail),
    )


def _header(mail: EmailMessage, name: str) -> str:
    """A header, as far as it can be read."""
    try:
        return str(mail.get(name, ""))
    except (ValueError, IndexError, AttributeError, LookupError):  # the parser's own stumbles over bad ones
        return ""


def _text(mail: EmailMessage) -> bytes:
    """All plain text and attached patches of a mail, its lines ending with LF."""
    parts = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    plain = [part for part in parts if part.get_content_subtype() != "html"]
    decoded = (part.get_payload(decode=True) for part in plain)
    return b"\n".join(one for one in decoded if isinstance(one, bytes)).replace(b"\r\n", b"\n")


def _of_the_series(path: Path, mails: Sequence[Mail]) -> tuple[list[Mail], tuple[str, ...]]:
    """The mails that belong to it: without replies and talk. Raises BadMailbox for several series."""
    replies = [one for one in mails if one.number is None and not one.has_diff]
    with_diff = [one for one in mails if one.number is None and one.has_diff]
    numbered = [one for one in mails if one.number is not None]
    if numbered and with_diff:
        # A patch in an answer is a proposal: b4 leaves those out as well.
        replies += with_diff
    chosen = numbered or with_diff
    if not any(one.has_diff and one.number != 0 for one in chosen):
        raise _bad(path, "no mail in it changes a file", _WRITE_IT)
    if len(series := {(one.version, one.of) for one in chosen}) > 1:
        names = sorted(f"{version or 'v1'} of {of}" for version, of in series)
        raise _bad(
            path, f"there are several series in it: {', '.join(names)}", "b4 am -v N takes one of them"
        )
    left_out = len(replies)
    words = "1 mail is no patch of the series" if left_out == 1 else f"{left_out} mails are no patches of it"
    return chosen, (f"{words}, and left out",) if left_out else ()


def _ordered(path: Path, mails: Sequence[Mail]) -> list[Mail]:
    """The patches in order. Raises BadMailbox where a number is missing or repeated."""
    if mails[0].number is None:
        return list(mails)
    of, by_number = mails[0].of, dict[int, Mail]()
    for one in mails:
        number = one.number or 0
        before = by_number.setdefault(number, one)
        if before.content != one.content:
            problem = f"number {number}/{of} is there twice: {before.shown} and {one.shown}"
            raise _bad(path, problem, "leave one of the two out")
    # A patch that was forgotten is sent behind the others: `[PATCH 7/6]`.
    last = max(of, *by_number)
    if missing := [number for number in range(1, last + 1) if number not in by_number]:
        shown = ", ".join(f"{number}/{of}" for number in missing[:12])
        more = f" and {len(missing) - 12} more" if len(missing) > 12 else ""
        raise _bad(path, f"patches are missing: {shown}{more}", "b4 am fetches a whole series")
    if empty := next((one for number, one in by_number.items() if number and not one.has_diff), None):
        raise _bad(path, f"{empty.shown} changes no file", _WRITE_IT)
    return [by_number[number] for number in range(1, last + 1)]


def _patch(path: Path, number: int, mail: Mail) -> SeriesPatch:
    """The mail's patch, read and kept. Raises BadPatch."""
    text = mail.content.decode("utf-8", "surrogateescape")
    try:
        changes = [change for part in series_in(f"{path}, {mail.shown}", text) for change in part]
    except BadPatch as error:
        advice = f"{error.facts['advice']}; in {mail.shown}"
        raise BadPatch(**{**error.facts, "advice": advice}) from None
    patch = kept(number, mail.subject, mail.content)
    return SeriesPatch(
        number=number,
        subject=mail.subject,
        name=Path(patch.path).name,
        message_id=mail.message_id,
        author=mail.author,
        patch=patch,
        paths=tuple(dict.fromkeys(name for change in changes for name in change.paths)),
    )


def _bad(path: Path, problem: str, advice: str) -> BadMailbox:
    return BadMailbox(name=path, path=path, problem=problem, advice=advice)
