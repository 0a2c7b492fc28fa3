"""Puts back what was changed, latest change first, and tells what it could not put back."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from ktrial.fault_points import fault_point
from ktrial.knobs import values
from ktrial.knobs.journal import Damaged, Entry, Journal, Kind, Say, Stage, own_identity, state, take_away
from ktrial.target import Read, StepResult, Target, Write

Which = Callable[[Entry], bool]


class RestoreOutcome(StrEnum):
    """What became of a change."""

    RESTORED = "restored"
    AS_BEFORE = "as-before"
    """The old value was there already."""
    NEVER_MADE = "never-made"
    """Noted, but not written when its process ended."""
    OTHER_BOOT = "other-boot"
    """The system was started anew since: the value is gone with it."""
    SOMEBODY_ELSE = "somebody-else"
    """Another value is there than ktrial made; left alone."""
    ABSENT = "absent"
    """The file is there no more: a device or a group that is gone."""
    REFUSED = "refused"
    """The kernel did not take the old value."""
    DAMAGED = "damaged"
    """The entry cannot be trusted; nothing was written."""
    FORGOTTEN = "forgotten"
    """Dropped at the user's wish."""


LEFT = frozenset({RestoreOutcome.SOMEBODY_ELSE, RestoreOutcome.REFUSED, RestoreOutcome.DAMAGED})
"""Endings after which a knob may not be as it was."""


@dataclass(frozen=True)
class Undone:
    """What became of one change."""

    ending: RestoreOutcome
    text: str
    """One sentence, without its end."""
    entry: Entry | None = None
    """None where it is damaged."""


def restore(
    journal: Journal,
    target: Target,
    *,
    which: Which = lambda entry: True,
    force: bool = False,
    forget: bool = False,
    dry_run: bool = False,
) -> tuple[Undone, ...]:
    """Undo the changes that `which` chooses, latest first; called while the journal is held.

    `force`: also where somebody else has changed the knob since. `forget`: nothing is written, and the
    entries are dropped. `dry_run`: nothing is written at all, also not to the journal. Damaged entries are
    set aside whatever `which` says.
    """
    entries, damaged = journal.entries()
    chosen = [entry for entry in entries if which(entry)]
    undone = []
    for entry in reversed(chosen):
        later = [
            other_entry
            for other_entry in entries
            if other_entry.number > entry.number and other_entry not in chosen
        ]
        undoing = _Undoing(journal, target, entry, force=force, dry_run=dry_run)
        if forget:
            undone.append(undoing.ended(RestoreOutcome.FORGOTTEN, f"{entry.knob} is left as it is"))
        else:
            undone.append(_handed_on(undoing, later) or undoing.undo())
    undone += [_set_aside(journal, damaged_entry, dry_run) for damaged_entry in damaged]
    if not dry_run:
        journal.tidy()
    return tuple(undone)


def abandoned(journal: Journal, target: Target) -> tuple[Undone, ...]:
    """Put back what a process that was killed has left, and close what is of another boot.

    Called while the journal is held.

    Nobody else who is alive owns a change that is not lasting, since who owns one holds the journal.
    """
    process = own_identity()

    def is_abandoned(entry: Entry) -> bool:
        if entry.boot != journal.boot:
            return True
        same_process = (entry.owner.pid, entry.owner.started) == (process.pid, process.started)
        return not (entry.lasting or entry.reported or same_process)

    return restore(journal, target, which=is_abandoned)


def texts(target: Target, paths: tuple[str, ...]) -> dict[str, str]:
    """What is in the files, without the last newlines; those that cannot be read are left out."""
    results = target.perform(tuple(Read(path=path) for path in paths))
    return {
        path: result.content.removesuffix("\n")
        for path, result in zip(paths, results, strict=True)
        if not result.failure
    }


def tell(undone: tuple[Undone, ...], say: Say | None) -> None:
    """Say what may not be as it was."""
    for change in undone:
        if say and change.ending in LEFT:
            say(change.text)


@dataclass(frozen=True)
class _Undoing:
    """One change, on its way back."""

    journal: Journal
    target: Target
    entry: Entry
    force: bool
    dry_run: bool

    def undo(self) -> Undone:
        entry = self.entry
        if entry.boot != self.journal.boot:
            return self.ended(
                RestoreOutcome.OTHER_BOOT, f"{entry.knob} was set in an earlier boot, and is gone with that"
            )
        if entry.stage is Stage.PLANNED:
            return self.ended(RestoreOutcome.NEVER_MADE, f"{entry.knob} had not been changed yet")
        if entry.kind is not Kind.KNOB:
            return self._take_away()
        (current,) = self.target.perform((Read(path=entry.path),))
        if current.failure and current.failure.name in {"ENOENT", "ENOTDIR", "ENODEV"}:
            return self.ended(RestoreOutcome.ABSENT, f"{entry.knob} is there no more ({entry.path})")
        if current.failure:
            return self._left(RestoreOutcome.REFUSED, f"{entry.knob} cannot be read: {current.failure.text}")
        return self._by_value(current)

    def _take_away(self) -> Undone:
        entry = self.entry
        present = state(entry.kind, entry.path)
        if present == entry.old or not present:
            return self.ended(RestoreOutcome.AS_BEFORE, f"{entry.knob} is gone already")
        if entry.stage is Stage.MADE and present != entry.made and not self.force:
            text = f"{entry.knob} lies under another one ({present}): it was left alone"
            return self._left(RestoreOutcome.SOMEBODY_ELSE, text)
        if not self.dry_run and (problem := take_away(entry.kind, entry.path)):
            return self._left(RestoreOutcome.REFUSED, f"{entry.knob} could not be removed: {problem}")
        fault_point("restore: unmounted or unloaded")
        return self.ended(RestoreOutcome.RESTORED, f"{entry.knob} is gone again")

    def _by_value(self, current: StepResult) -> Undone:
        entry, form = self.entry, values.form_of(self.entry.path)
        text = current.content.removesuffix("\n")
        if form.shows(entry.old, text) and not self._changed_beside():
            return self.ended(RestoreOutcome.AS_BEFORE, f"{entry.knob} is {_shown(entry.old)} already")
        # While it was being written, whatever is there is what the kernel made of it.
        ours = text == entry.made or form.shows(entry.new, text) or form.shows(entry.old, text)
        if ours or entry.stage is Stage.WRITING or self.force:
            return self._write()
        value_made = " ".join(values.chosen(entry.made).split())
        return self._left(
            RestoreOutcome.SOMEBODY_ELSE,
            f"{entry.knob} was {_shown(entry.old)}, ktrial made it {_shown(value_made)}, and somebody else "
            f"has made it {_shown(values.chosen(text))} since: it was left alone "
            f"(ktrial host restore --force puts {_shown(entry.old)} back, --forget leaves it as it is)",
        )

    def _write(self) -> Undone:
        entry, form = self.entry, values.form_of(self.entry.path)
        if not self.dry_run:
            (written,) = self.target.perform((Write(path=entry.path, value=entry.old),))
            fault_point("restore: value put back")
            # What the kernel refuses here it may do by itself with the next (dirty_bytes takes no 0, and is
            # 0 as soon as dirty_ratio is written).
            for path, text in self._changed_beside().items():
                self.target.perform((Write(path=path, value=values.form_of(path).undoing(text, "")),))
                fault_point("restore: value of a coupled file put back")
            text_after = texts(self.target, (entry.path,)).get(entry.path, "")
            if not form.shows(entry.old, text_after):
                answer = (
                    written.failure.text if written.failure else f"the kernel made it {_shown(text_after)}"
                )
                text = f"{entry.knob} could not be put back to {_shown(entry.old)}: {answer}"
                return self._left(RestoreOutcome.REFUSED, text)
        return self.ended(RestoreOutcome.RESTORED, f"{entry.knob} is {_shown(entry.old)} again")

    def _changed_beside(self) -> dict[str, str]:
        """Files that the kernel changed with this one, and nobody since → what was in them."""
        entry = self.entry
        texts_after = texts(self.target, tuple(entry.beside))
        texts_made = entry.beside_made if entry.stage is Stage.MADE else texts_after
        return {
            path: text
            for path, text in entry.beside.items()
            if path in texts_after and texts_after[path] != text and texts_after[path] == texts_made.get(path)
        }

    def ended(self, ending: RestoreOutcome, text: str) -> Undone:
        """The change is dealt with."""
        if not self.dry_run:
            self.journal.close(self.entry)
        return Undone(ending, text, self.entry)

    def _left(self, ending: RestoreOutcome, text: str) -> Undone:
        """The change stays in the journal; other commands do not speak of it again."""
        if not self.dry_run and not self.entry.reported:
            self.journal.put(self.entry.model_copy(update={"reported": True}), durable=True)
            fault_point("restore: change left and reported")
        return Undone(ending, text, self.entry)


def _handed_on(undoing: _Undoing, later: list[Entry]) -> Undone | None:
    """A later change of the same knob stays: when it is undone, it is to bring this one's old value."""
    entry = undoing.entry
    same = [
        entry_above
        for entry_above in later
        if entry_above.path == entry.path and entry_above.boot == entry.boot
    ]
    if not same or entry.stage is Stage.PLANNED or entry.kind is not Kind.KNOB:
        return None
    if not undoing.dry_run:
        undoing.journal.put(same[0].model_copy(update={"old": entry.old}), durable=True)
        fault_point("restore: old value handed on to a later change")
    return undoing.ended(
        RestoreOutcome.RESTORED,
        f"{entry.knob} goes back to {_shown(entry.old)} with a later change ({same[0].purpose})",
    )


def _set_aside(journal: Journal, damaged: Damaged, dry_run: bool) -> Undone:
    where = damaged.path if dry_run else journal.set_aside(damaged)
    return Undone(
        RestoreOutcome.DAMAGED,
        f"a journal entry is damaged ({damaged.problem}): nothing was written for it, and one knob may not "
        f"be as it was; the entry is kept in {where}",
    )


def _shown(value: str) -> str:
    return value if value.strip() else "empty"
