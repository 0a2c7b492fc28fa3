"""A series of patches over one base: what `ktrial series` measures, wherever it was read from."""

from enum import StrEnum

from ktrial.model.base import Model
from ktrial.model.kernel import Build, Patch


class SeriesKind(StrEnum):
    """Where a series was read from."""

    GIT = "git"
    MAILBOX = "mbox"
    QUILT = "quilt"


class SeriesPatch(Model):
    """One patch of a series."""

    number: int
    """Its place, from 1."""
    subject: str
    """As the mail, the commit or the patch's header has it, without `[PATCH 02/12]`; else the file's name."""
    name: str
    """Short: the commit's first 12 digits, or the patch file's name."""
    message_id: str = ""
    """Of the mail, without angle brackets; empty where there is none."""
    author: str = ""
    commit: str = ""
    """Whole; empty where it is no commit."""
    parent: str = ""
    """The commit before it, whole; empty where it is no commit."""
    merge: bool = False
    """Whether the commit is a merge: the step holds all that it brings."""
    patch: Patch | None = None
    """The file that is applied; None for a commit."""
    files: tuple[Patch, ...] = ()
    """The files that are applied one after the other, where several patches are taken as one."""
    undo: Patch | None = None
    """What takes a commit back out of the commits after it; None until it is asked for."""
    paths: tuple[str, ...] = ()
    """The files of the source that it names."""


class PatchSeries(Model):
    """Patches in order, and what they are applied to."""

    kind: SeriesKind
    origin: str
    """What was asked for: the range, or the file's path."""
    base: str
    """The source without them, as a Build names it: `git:DIRECTORY@COMMIT`, `debian:linux-source-6.1`."""
    title: str = ""
    """The cover letter's subject, or that of the only patch; empty where there is none."""
    version: str = ""
    """`v3`; empty for the first one."""
    cover_id: str = ""
    """The cover letter's message id."""
    patches: tuple[SeriesPatch, ...]
    notes: tuple[str, ...] = ()
    """What was left out or is worth knowing, one sentence each."""

    def source(self, plain: Build, upto: int, without: frozenset[int] = frozenset()) -> Build:
        """The build after the first `upto` patches, without some of those; `plain`: of the base."""
        taken = [one for one in self.patches[:upto] if one.number not in without]
        if self.kind is not SeriesKind.GIT:
            added = tuple(file for one in taken for file in one.files or ((one.patch,) if one.patch else ()))
            return plain.model_copy(update={"patches": (*plain.patches, *added)})
        # What stands last is taken out first: nothing that came later lies over it then.
        undone = [one.undo for one in reversed(self.patches[:upto]) if one.number in without and one.undo]
        while upto and self.patches[upto - 1].number in without:
            upto -= 1
            undone = undone[1:]
        source = (
            f"{plain.source.rpartition('@')[0]}@{self.patches[upto - 1].commit}" if upto else plain.source
        )
        return plain.model_copy(update={"source": source, "patches": (*plain.patches, *undone)})
