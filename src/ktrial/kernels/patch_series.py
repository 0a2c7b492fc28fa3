"""Series of patches, read from a git tree, a mailbox, quilt's or a source package; nothing is built here."""

import gzip
import hashlib
import io
import re
import subprocess
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.debian_sources import debian_packaging
from ktrial.kernels.build.patches import FileDiff, bad, series_in
from ktrial.kernels.build.sources import git
from ktrial.kernels.errors import BadPatch, KernelUsageError, SourceUnusable
from ktrial.kernels.files import write_atomically
from ktrial.model.kernel import Patch, PatchSeries, SeriesKind, SeriesPatch
from ktrial.text_lines import lines_of

# A series out of a mailbox, as `git format-patch --stdout` and `b4 am` write them.
#
# Mails are split as git mailsplit does it, at `From ` lines with a date, and decoded (base64,
# quoted-printable). The numbers in `[PATCH v3 02/12]` say the order, not the mailbox: each has to be there
# once.

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
_BASE = re.compile(rb"^base-commit: ([0-9a-f]{40})$", re.MULTILINE)
_GZIP = b"\x1f\x8b"
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

    Raises KernelUsageError, and BadPatch, which names mail, file and hunk.
    """
    place = path.expanduser().absolute()
    mails, notes = _of_the_series(place, list(mails_in(place, _content(place))))
    cover = next((mail for mail in mails if mail.number == 0), None)
    patches = tuple(
        _patch(place, number, mail) for number, mail in enumerate(_ordered(place, mails), start=1)
    )
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


def base_commit(path: Path) -> str:
    """The commit that the mails say they apply to (`git format-patch --base`); empty where none does.

    Raises KernelUsageError.
    """
    match = _BASE.search(_content(path.expanduser().absolute()))
    return match[1].decode() if match else ""


def mails_in(path: Path, content: bytes) -> Iterator[Mail]:
    """Each mail; a file that is a diff alone is one. Raises KernelUsageError where there is none."""
    begins = [match for match in _FROM.finditer(content) if _is_between(content, match.start())]
    if not begins:
        if re.match(rb"[A-Za-z-]+: ", content):
            yield _mail(1, content)
        elif _DIFF.search(content.decode("utf-8", "surrogateescape")):
            yield Mail(1, path.stem, None, 0, "", "", "", content)  # as diff -u writes it
        else:
            raise _bad(path, "there is no mail in it, and no diff", _WRITE_IT)
        return
    ends = [*(match.start() for match in begins[1:]), len(content)]
    for place, (match, end) in enumerate(zip(begins, ends, strict=True), start=1):
        yield _mail(place, content[match.end() : end])


def _content(path: Path) -> bytes:
    try:
        if not path.is_file() and not path.is_dir() and path.exists():
            # A pipe or a device may never end.
            raise _bad(path, "it is not a file", _WRITE_IT)
        if path.stat().st_size > _MOST_BYTES:
            raise _bad(
                path, f"it is larger than {_MOST_BYTES >> 20} MiB", "give the mails of one series only"
            )
        content = path.read_bytes()
    except OSError as error:
        raise _bad(path, f"it cannot be read: {error.strerror}", _WRITE_IT) from None
    if content.startswith(_GZIP):
        content = _unpacked(path, content)
    if not content.strip():
        raise _bad(path, "it is empty", _WRITE_IT)
    return content.replace(b"\r\n", b"\n") if content.count(b"\n") == content.count(b"\r\n") else content


def _unpacked(path: Path, content: bytes) -> bytes:
    """What a gzip file holds, as lore.kernel.org gives threads."""
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            plain = packed.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(path, f"it is a damaged gzip file: {error}", "fetch it again") from None
    if len(plain) > _MOST_BYTES:
        raise _bad(path, f"it unpacks to more than {_MOST_BYTES >> 20} MiB", "give the mails of one series")
    return plain


def _is_between(content: bytes, at: int) -> bool:
    """Whether a `From ` line stands at the start, or behind an empty line."""
    return at == 0 or content[max(0, at - 2) : at] == b"\n\n"


def _mail(place: int, raw: bytes) -> Mail:
    mail = message_from_bytes(raw, policy=policy.default.clone(raise_on_defect=False))
    assert isinstance(mail, EmailMessage), "the policy says so"
    subject = " ".join(_header(mail, "Subject").split())
    tag = _TAG.match(subject)
    inside = tag["inside"] if tag and not _REPLY.match(subject) else ""
    number, version = _NUMBER.search(inside), _VERSION.search(inside)
    return Mail(
        place=place,
        subject=f"{tag['others']} {subject[tag.end() :]}".strip() if tag and inside else subject,
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
    return b"\n".join(payload for payload in decoded if isinstance(payload, bytes)).replace(b"\r\n", b"\n")


def _of_the_series(path: Path, mails: Sequence[Mail]) -> tuple[list[Mail], tuple[str, ...]]:
    """The mails that belong to it: without replies and talk. Raises KernelUsageError for several series."""
    replies = [mail for mail in mails if mail.number is None and not mail.has_diff]
    with_diff = [mail for mail in mails if mail.number is None and mail.has_diff]
    numbered = [mail for mail in mails if mail.number is not None]
    if numbered and with_diff:
        # A patch in an answer is a proposal: b4 leaves those out as well.
        replies += with_diff
    chosen = numbered or with_diff
    if not any(mail.has_diff and mail.number != 0 for mail in chosen):
        raise _bad(path, "no mail in it changes a file", _WRITE_IT)
    if len(series := {(mail.version, mail.of) for mail in chosen}) > 1:
        names = sorted(f"{version or 'v1'} of {of}" for version, of in series)
        raise _bad(
            path, f"there are several series in it: {', '.join(names)}", "b4 am -v N takes one of them"
        )
    left_out = len(replies)
    words = (
        "1 mail is not a patch of the series" if left_out == 1 else f"{left_out} mails are not patches of it"
    )
    return chosen, (f"{words}, and left out",) if left_out else ()


def _ordered(path: Path, mails: Sequence[Mail]) -> list[Mail]:
    """The patches in order. Raises KernelUsageError where a number is missing or repeated."""
    if mails[0].number is None:
        return list(mails)
    of, by_number = mails[0].of, dict[int, Mail]()
    for mail in mails:
        number = mail.number or 0
        before = by_number.setdefault(number, mail)
        if before.content != mail.content:
            problem = f"number {number}/{of} is there twice: {before.shown} and {mail.shown}"
            raise _bad(path, problem, "leave one of the two out")
    # A patch that was forgotten is sent behind the others: `[PATCH 7/6]`.
    last = max(of, *by_number)
    if missing := [number for number in range(1, last + 1) if number not in by_number]:
        shown = ", ".join(f"{number}/{of}" for number in missing[:12])
        more = f" and {len(missing) - 12} more" if len(missing) > 12 else ""
        raise _bad(path, f"patches are missing: {shown}{more}", "b4 am fetches a whole series")
    if empty := next((mail for number, mail in by_number.items() if number and not mail.has_diff), None):
        raise _bad(path, f"{empty.shown} changes no file", _WRITE_IT)
    return [by_number[number] for number in range(1, last + 1)]


def _patch(path: Path, number: int, mail: Mail) -> SeriesPatch:
    """The mail's patch, read and kept. Raises BadPatch."""
    text = mail.content.decode("utf-8", "surrogateescape")
    try:
        changes = [change for part in series_in(f"{path}, {mail.shown}", text) for change in part]
    except BadPatch as error:
        raise BadPatch(**{**error.facts, "advice": f"{error.advice}; in {mail.shown}"}) from None
    patch = keep_patch(number, mail.subject, mail.content)
    return SeriesPatch(
        number=number,
        subject=mail.subject,
        name=Path(patch.path).name,
        message_id=mail.message_id,
        author=mail.author,
        patch=patch,
        paths=_touched(changes),
    )


def _bad(path: Path, problem: str, advice: str) -> KernelUsageError:
    text = f"The mailbox {path} holds no series that can be used: {problem}."
    return KernelUsageError(text, hint=advice)


# A series as quilt keeps it: a file `series` that names patches, in order. Debian and PREEMPT_RT write
# such.
#
# quilt(1): one patch a line, `-pN` behind it says how many directories its paths begin with (1 where
# nothing is said), `#` at the start of a line or behind a blank begins a comment.

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_LEVEL = re.compile(r"-p\s*(\d|ab)")
_SUBJECT = re.compile(r"^(?:Subject|Description): *(?P<first>.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_MAIL_TAG = re.compile(r"^\[[^\]]*PATCH[^\]]*\]\s*", re.IGNORECASE)
_PLACES = ("series", "patches/series", "debian/patches/series")
_EACH_LINE = "each line names a file beside the series file"
_ADVICE = "give the directory that holds the file series, as quilt and Debian's debian/patches have it"


@dataclass(frozen=True)
class QuiltEntry:
    """One line of a series file that names a patch."""

    line: int
    """From 1."""
    name: str
    """Relative to the series file."""
    level: int = 1
    """How many directories its paths begin with."""


def series_in_quilt(path: Path, base: str) -> PatchSeries:
    """The series of a directory, or of a series file itself. `base`: what it applies to, as a Build names it.

    Raises KernelUsageError; BadPatch, which names patch, file and hunk.
    """
    file = series_file(path)
    text = _read(path, file)
    entries = entries_in(path, text)
    if not entries:
        raise _quilt_bad(path, f"{file} names no patch", _ADVICE)
    patches = tuple(_quilt_patch(path, file, number, entry) for number, entry in enumerate(entries, start=1))
    disabled = _disabled(file, text)
    words = f"{len(disabled)} of the patches beside it are commented out in {file.name}" if disabled else ""
    return PatchSeries(
        kind=SeriesKind.QUILT,
        origin=str(file),
        base=base,
        patches=patches,
        notes=(words,) if words else (),
    )


def series_file(path: Path) -> Path:
    """The series file that a path means. Raises KernelUsageError."""
    place = path.expanduser().absolute()
    if not place.is_dir():
        if place.exists():
            return place
        raise _quilt_bad(path, "there is no such directory", _ADVICE)
    file = next((place / name for name in _PLACES if (place / name).is_file()), None)
    if file is None:
        raise _quilt_bad(path, f"there is no {', no '.join(_PLACES)} in it", _ADVICE)
    return file


def entries_in(path: Path, text: str) -> list[QuiltEntry]:
    """What a series file names. `path`: for messages. Raises KernelUsageError."""
    entries: list[QuiltEntry] = []
    for number, line in enumerate(lines_of(text), start=1):
        name, _, options = _COMMENT.sub("", line).strip().partition(" ")
        if name:
            entries.append(QuiltEntry(number, name, _level(path, number, options.strip())))
            if entries[-1].name in {entry.name for entry in entries[:-1]}:
                raise _quilt_bad(path, f"line {number}: {name} is there twice", "leave one of the two out")
    return entries


def subject_of(text: str) -> str:
    """The subject in a patch's header, from a mail or as Debian's DEP-3 writes it; empty without one."""
    header = re.split(r"^(?:--- |diff |Index: )", text, maxsplit=1, flags=re.MULTILINE)[0]
    match = _SUBJECT.search(header)
    return _MAIL_TAG.sub("", " ".join(match["first"].split())) if match else ""


def _level(path: Path, line: int, options: str) -> int:
    if not options:
        return 1
    match = _LEVEL.fullmatch(options)
    if match is None:
        advice = (
            "-pN is the only option that is supported; quilt's -R reverses a patch: write the reversed patch"
        )
        raise _quilt_bad(path, f"line {line}: '{options}' is not a supported option", advice)
    return 1 if match[1] == "ab" else int(match[1])


def _quilt_patch(path: Path, file: Path, number: int, entry: QuiltEntry) -> SeriesPatch:
    place = file.parent / entry.name
    if Path(entry.name).is_absolute() or ".." in Path(entry.name).parts:
        problem = f"line {entry.line}: {entry.name} lies outside of {file.parent}"
        raise _quilt_bad(path, problem, "patches lie beside the series file, or below it")
    if place.exists() and not place.is_file():
        # A pipe or a device may never end.
        raise _quilt_bad(path, f"line {entry.line}: {entry.name} is not a file", _EACH_LINE)
    try:
        content = place.read_bytes()
    except OSError as error:
        problem = f"line {entry.line}: {entry.name}: {error.strerror}"
        raise _quilt_bad(path, problem, _EACH_LINE) from None
    text = content.decode("utf-8", "surrogateescape")
    changes = [change for part in series_in(str(place), text, entry.level) for change in part]
    subject = subject_of(text) or entry.name
    patch = Patch(path=str(place), digest=hashlib.sha256(content).hexdigest())
    if entry.level != 1:
        if any(change.also for change in changes):
            raise bad(place, "a file has two names in it", "write it again: git diff")
        patch = keep_patch(
            number, subject, "".join(map(_git_diff, changes)).encode("utf-8", "surrogateescape")
        )
    return SeriesPatch(
        number=number,
        subject=subject,
        name=entry.name,
        patch=patch,
        paths=_touched(changes),
    )


def _touched(changes: Iterable[FileDiff]) -> tuple[str, ...]:
    """The files, each once; a copy that a plain diff was made against (`foo.c~`) is none of the source's."""
    names = (name for change in changes for name in (change.old, change.new) if name)
    return tuple(dict.fromkeys(names))


def _disabled(file: Path, text: str) -> list[str]:
    """Patches that are there, and whose lines are comments."""
    commented = (line.lstrip("# \t").partition(" ")[0] for line in lines_of(text) if line[:1] == "#")
    return [name for name in commented if name and (file.parent / name).is_file()]


def _read(path: Path, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise _quilt_bad(path, f"{file}: {error.strerror}", _ADVICE) from None
    except UnicodeDecodeError:
        raise _quilt_bad(path, f"{file} is not text", _ADVICE) from None


def _quilt_bad(path: str | Path, problem: str, advice: str) -> KernelUsageError:
    return KernelUsageError(f"The quilt series {path} cannot be used: {problem}.", hint=advice)


# A series that a distribution's source package carries: `debian:linux-source-6.1/patches-rt`.

_PACKAGED = re.compile(r"debian:(?P<package>linux-source-\d+\.\d+)(?:/(?P<name>[\w.-]+))?")
_PACKAGED_ADVICE = (
    "write debian:linux-source-6.1/patches-rt: a package, and a directory of its source's debian/"
)


def is_packaged(path: Path) -> bool:
    """Whether a distribution's package is meant, no directory."""
    return str(path).startswith("debian:") and not path.exists()


def series_in_package(path: Path, base: str, progress: Progress = silent) -> PatchSeries:
    """The series in the source package that a package was built from, fetched if it is not there.

    Raises as `series_in_quilt` and `debian_packaging`.
    """
    text = str(path)
    match = _PACKAGED.fullmatch(text)
    if match is None:
        raise _quilt_bad(text, "it names no package's patches", _PACKAGED_ADVICE)
    packaging = debian_packaging(match["package"], progress)
    names = sorted(file.parent.name for file in packaging.directory.glob("debian/*/series"))
    if match["name"] not in names:
        problem = f"the source package has no debian/{match['name'] or '…'}/series"
        advice = "there are: " + ", ".join(f"debian:{match['package']}/{name}" for name in names)
        raise _quilt_bad(text, problem, advice)
    series = series_in_quilt(packaging.directory / "debian" / match["name"], base)
    lost = packaging.version != packaging.source_version
    words = f"they are those of {packaging.version}: the mirror has lost those of {packaging.source_version}"
    return series.model_copy(update={"origin": text, "notes": (*series.notes, *((words,) if lost else ()))})


# A series out of a git tree: the commits of BASE..TIP along first parents, each a step.
#
# Names are resolved to commits once, at the start: what a rebase or a fetch moves meanwhile stays as it
# was. Nothing is checked out, and the work tree is not looked at but to say that it holds more.

_SHORT = 12
_FORMAT = "%x01%H%x01%P%x01%s%x01%an <%ae>"
"""Of a commit; the paths that it changes come after it, each with a zero byte behind it."""
_WRITE = "write BASE..TIP: v6.1..my-branch, HEAD~12..HEAD; BASE.. ends at HEAD"


def series_in_git(directory: Path, text: str) -> PatchSeries:
    """The commits that `text` (BASE..TIP) names. Raises KernelUsageError, SourceUnusable, ToolMissing."""
    begin, dots, end = text.partition("..")
    if not dots or end.startswith(".") or not begin:
        raise _commits_bad(directory, text, "it is not BASE..TIP", _WRITE)
    top = _top(directory, text)
    base, tip = (_commit(top, text, name) for name in (begin, end or "HEAD"))
    if base == tip:
        raise _commits_bad(top, text, "both ends are the same commit", _WRITE)
    _check_line(top, text, base, tip)
    patches = tuple(_steps(top, text, base, tip))
    if patches[0].parent != base:
        advice = f"begin at a commit of that line: git -C {top} log --first-parent {end or 'HEAD'}"
        raise _commits_bad(
            top, text, f"{begin} does not lie on the line of first parents of {end or 'HEAD'}", advice
        )
    title = patches[0].subject if len(patches) == 1 else ""
    return PatchSeries(
        kind=SeriesKind.GIT,
        origin=text,
        base=f"git:{top}@{base}",
        title=title,
        patches=patches,
        notes=_notes(top, text, patches),
    )


def has_commit(directory: Path, commit: str) -> bool:
    """Whether the directory is a git tree that has the commit. Raises ToolMissing."""
    try:
        git(directory.expanduser(), commit, "cat-file", "-e", f"{commit}^{{commit}}")
    except SourceUnusable:
        return False
    return True


def undoing(directory: Path, step: SeriesPatch) -> Patch:
    """A patch that takes the commit back. Raises SourceUnusable."""
    return _difference(directory, step, f"undo {step.subject}", step.commit, step.parent)


def as_patch(directory: Path, step: SeriesPatch) -> Patch:
    """The commit as a patch. Raises SourceUnusable."""
    return _difference(directory, step, step.subject, step.parent, step.commit)


def _difference(directory: Path, step: SeriesPatch, name: str, before: str, after: str) -> Patch:
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"]
    text = git(directory, step.commit, "diff", *plain, before, after)
    return keep_patch(step.number, name, text.encode("utf-8", "surrogateescape"))


def _top(directory: Path, text: str) -> Path:
    place = directory.expanduser().absolute()
    if not place.is_dir():
        raise _commits_bad(place, text, "there is no such directory", "--git DIR names the tree")
    with suppress(SourceUnusable):
        return Path(git(place, text, "rev-parse", "--show-toplevel").strip() or place)
    try:  # a bare repository has no work tree
        git(place, text, "rev-parse", "--git-dir")
    except SourceUnusable as error:
        advice = "--git DIR names the tree; --mbox and --quilt need none"
        raise _commits_bad(place, text, error.problem, advice) from None
    return place


def _commit(top: Path, text: str, name: str) -> str:
    try:
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        return git(top, name, *arguments).strip()
    except SourceUnusable:
        advice = f"git -C {top} fetch --unshallow" if _is_shallow(top) else f"git -C {top} branch -a, or tag"
        shallow = ", a shallow clone" if _is_shallow(top) else ""
        raise _commits_bad(top, text, f"there is no commit '{name}' in it{shallow}", advice) from None


def _check_line(top: Path, text: str, base: str, tip: str) -> None:
    """Raise KernelUsageError where the one is not before the other."""
    command = ["git", "-C", str(top), "merge-base", "--is-ancestor", base, tip]
    if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
        return
    if _is_shallow(top):
        problem = "it is a shallow clone, without a path from one commit to the other"
        raise _commits_bad(top, text, problem, f"git -C {top} fetch --unshallow")
    fork = ""
    with suppress(SourceUnusable):
        fork = git(top, text, "merge-base", base, tip).strip()[:_SHORT]
    advice = f"they part at {fork}: {fork}..{text.partition('..')[2] or 'HEAD'}" if fork else _WRITE
    raise _commits_bad(top, text, "its base is not an ancestor of its tip", advice)


def _is_shallow(top: Path) -> bool:
    return git(top, "HEAD", "rev-parse", "--is-shallow-repository").strip() == "true"


def _steps(top: Path, text: str, base: str, tip: str) -> Iterator[SeriesPatch]:
    """Each commit with what it changes against its first parent; the oldest first."""
    paths = ["-z", "-m", "--name-only", "--no-renames", "--no-show-signature"]
    arguments = ["log", "--first-parent", "--reverse", *paths, f"--format={_FORMAT}", f"{base}..{tip}"]
    commits: list[tuple[list[str], list[str]]] = []
    for word in git(top, text, *arguments).split("\0"):
        plain = word.lstrip("\n")
        if plain.startswith("\1"):
            commits.append((plain[1:].split("\1", 3), []))
        elif plain:
            commits[-1][1].append(plain)
    return (_step(number, fields, paths) for number, (fields, paths) in enumerate(commits, start=1))


def _step(number: int, fields: Iterable[str], paths: Iterable[str]) -> SeriesPatch:
    commit, parents, subject, author = fields
    before, *more_parents = parents.split() or [""]
    return SeriesPatch(
        number=number,
        subject=subject,
        name=commit[:_SHORT],
        author=author,
        commit=commit,
        parent=before,
        merge=bool(more_parents),
        paths=tuple(paths),
    )


def _notes(top: Path, text: str, patches: tuple[SeriesPatch, ...]) -> tuple[str, ...]:
    notes = []
    if merges := sum(patch.merge for patch in patches):
        counted = "1 step is a merge" if merges == 1 else f"{merges} steps are merges"
        notes.append(f"{counted}: such a step contains all that the merge brings")
    try:
        changed = git(top, text, "status", "--porcelain", "--untracked-files=no")
    except SourceUnusable:  # a bare repository
        changed = ""
    if changed.strip():
        count = len(lines_of(changed))
        words = (
            "1 changed file of the work tree is"
            if count == 1
            else f"{count} changed files of the work tree are"
        )
        notes.append(f"{words} in no commit: left out")
    return tuple(notes)


def _commits_bad(directory: Path, text: str, problem: str, advice: str) -> KernelUsageError:
    message = f"The range {text} of {directory} cannot be used: {problem}."
    return KernelUsageError(message, hint=advice, problem=problem)


# Patches that were read out of mails and other files, each kept as a file of its own, by its content.

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST_NAME = 52
"""As git format-patch cuts the names of its files (`--filename-max-length`, 64 with number and ending)."""


def keep_patch(number: int, subject: str, content: bytes) -> Patch:
    """Keep the content under a name made as git format-patch makes them: `0003-mm-slub-count.patch`."""
    digest = hashlib.sha256(content).hexdigest()
    path = cache_directory() / "series" / digest[:24] / file_name(number, subject)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return Patch(path=str(path), digest=digest)


def file_name(number: int, subject: str) -> str:
    """`0003-mm-slub-count.patch`."""
    words = _NOT_IN_NAMES.sub("-", subject).strip("-.")[:_LONGEST_NAME].strip("-.")
    return f"{number:04}-{words or 'patch'}.patch"


def _git_diff(change: FileDiff) -> str:
    """As `git diff` would have written it: with a/ and b/ in front of the paths."""
    old, new = change.old or change.new, change.new or change.old
    lines = [f"diff --git a/{old} b/{new}"]
    if change.old is None:
        lines.append(f"new file mode {change.mode or '100644'}")
    elif change.new is None:
        lines.append("deleted file mode 100644")
    elif change.mode:
        lines += [f"old mode {'100755' if change.mode == '100644' else '100644'}", f"new mode {change.mode}"]
    if change.old and change.new and old != new:
        verb = "copy" if change.copies else "rename"
        lines += [f"{verb} from {old}", f"{verb} to {new}"]
    if change.hunks:
        lines.append("--- " + (f"a/{change.old}" if change.old else "/dev/null"))
        lines.append("+++ " + (f"b/{change.new}" if change.new else "/dev/null"))
    return "".join(f"{line}\n" for line in lines) + "".join(change.hunks)


__all__ = [
    "as_patch",
    "is_packaged",
    "series_in_git",
    "series_in_mailbox",
    "series_in_package",
    "series_in_quilt",
    "undoing",
]
