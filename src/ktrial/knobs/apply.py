"""Changes knobs of a running system, so that whatever happens what was there comes back."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ktrial import interruption
from ktrial.fault_points import fault_point
from ktrial.knobs import lookup, restore, values
from ktrial.knobs.errors import KnobError, KnobForbidden
from ktrial.knobs.journal import Entry, Journal, Kind, Say, Stage, own_identity, path_of, state
from ktrial.knobs.lookup import KnobInstance, System, coupled_paths, find
from ktrial.knobs.restore import Undone, texts
from ktrial.model.references import KnobRef
from ktrial.target import StepResult, Target, Write

KnobSetting = tuple[str | KnobRef, str]
"""What the user named, and the value asked for."""


@dataclass(frozen=True)
class Applied:
    """A knob that was set."""

    name: str
    path: str
    before: str
    asked: str
    now: str
    """The file's text afterwards."""

    @property
    def rounded(self) -> bool:
        """The kernel made something else of what was asked for."""
        return not values.form_of(self.path).shows(self.asked, self.now)


class ChangeNotes(Protocol):
    """Who is told of a change before it is made, so that it can be undone, and how far it got."""

    def planned(self, system: System, knob: KnobInstance, before: str, value: str) -> Entry | None:
        """It is going to be made. Raises KnobForbidden where it could not be undone."""
        ...

    def noted(self, entry: Entry, stage: Stage, text: str = "") -> Entry:
        """How far it got."""
        ...


def apply(
    target: Target,
    settings: Iterable[KnobSetting],
    changes: ChangeNotes | None = None,
    *,
    exactly: bool = True,
) -> tuple[Applied, ...]:
    """Set knobs in this order: read, note in the journal, write, read back, compare.

    All names and values are checked before the first is written. Without `changes` nothing is noted, and
    nothing put back: for guests. Raises KnobError: what `find` raises, and where the kernel
    refuses a value, takes it silently and keeps what it had, or (with `exactly`) rounds it.
    """
    system = System(target)
    instances = [(instance, value) for name, value in settings for instance in find(system, name)]
    for instance, value in instances:
        values.check(instance.name, instance.knob, value, system.version)
    return tuple(_one(system, instance, value, changes, exactly) for instance, value in instances)


def _one(
    system: System, knob: KnobInstance, value: str, changes: ChangeNotes | None, exactly: bool
) -> Applied:
    # Read again: another knob of the same call may have changed it (dirty_ratio clears dirty_bytes).
    (before,) = system.read(knob.path)
    if before.failure:
        raise lookup.of_reading(system, knob.name, knob.path, knob.knob, before.failure)
    entry = changes.planned(system, knob, before.content, value) if changes else None
    if changes and entry:
        entry = changes.noted(entry, Stage.WRITING)
    (result,) = system.target.perform((Write(path=knob.path, value=value),))
    fault_point("apply: value written")
    if result.failure:
        raise lookup.of_writing(system, knob.name, knob.path, knob.knob, value, result.failure)
    if changes and entry:
        changes.noted(entry, Stage.MADE, result.after)
    return _compared(knob, before.content.removesuffix("\n"), value, result, exactly)


def _compared(knob: KnobInstance, before: str, value: str, result: StepResult, exactly: bool) -> Applied:
    applied = Applied(knob.name, knob.path, before, value, result.after)
    if not applied.rounded:
        return applied
    text = " ".join(result.after.split())
    if result.after == before:
        advice = "it rounds to that, or ignores what it cannot use; its log may say why: dmesg"
        message = f"Knob {knob.name}: the kernel took {value} without an error, and left the knob at {text}."
        raise KnobError(message, hint=advice)
    if exactly:
        message = f"Knob {knob.name}: {value} was asked for, the kernel made it {text}."
        raise KnobError(message, hint=f"ask for {text}, so that what is measured is what was asked for")
    return applied


def undoing(knob: KnobInstance, before: str, value: str) -> str:
    """What has to be written to undo it. Raises KnobForbidden where that cannot be done."""
    old = values.form_of(knob.path).undoing(before.removesuffix("\n"), value)
    if "\n" in old:
        advice = "ktrial cannot put back a file of several lines"
        raise KnobForbidden(knob.name, "changing it", "several lines", hint=advice)
    return old


class Changes:
    """What one process has changed and not yet undone."""

    def __init__(
        self, target: Target, journal: Journal, purpose: str, *, lasting: bool, say: Say | None = None
    ) -> None:
        self._say = say
        self._target = target
        self._journal = journal
        self._purpose = purpose
        self._lasting = lasting
        self._owner = own_identity()
        self._numbers: set[int] = set()

    def apply(self, *settings: KnobSetting, exactly: bool = True) -> tuple[Applied, ...]:
        """Set knobs; see `apply`. Raises KeyboardInterrupt where an end has been asked for."""
        interruption.check()
        return apply(self._target, settings, self, exactly=exactly)

    def attach(self, kind: Kind, name: str, attach: Callable[[], None]) -> None:
        """Mount something at `name`, or load the module `name`, by calling `attach`; noted on disk before.

        Raises what `attach` raises.
        """
        path = path_of(kind, name)
        entry = Entry(
            kind=kind,
            knob=f"the module {name}" if kind is Kind.MODULE else f"the mount at {path}",
            path=path,
            old=state(kind, path),
            new=name,
            **self._whose(),
        )
        self._numbers.add(entry.number)
        # Not first as planned: between that and the mount there is nothing to be read or refused.
        self._journal.put(entry.model_copy(update={"stage": Stage.WRITING}), durable=True)
        attach()
        fault_point("apply: mounted or loaded")
        self.noted(entry, Stage.MADE, state(kind, path))

    def undo(self) -> tuple[Undone, ...]:
        """Put back all that this object has changed, latest first. Signals wait until it is done.

        What could not be put back is told, and stays in the journal for `ktrial host restore`.
        """
        with interruption.deferred():
            undone = restore.restore(self._journal, self._target, which=self._is_own)
            self._numbers.clear()
            restore.tell(undone, self._say)
            return undone

    def planned(self, system: System, knob: KnobInstance, before: str, value: str) -> Entry:
        """Note on disk what is going to be changed. Raises KnobForbidden where it could not be undone."""
        old = undoing(knob, before, value)
        entry = Entry(
            knob=knob.name,
            path=knob.path,
            old=old,
            new=value,
            beside=texts(self._target, coupled_paths(system, knob)),
            **self._whose(),
        )
        self._numbers.add(entry.number)
        self._journal.put(entry, durable=True)
        return entry

    def _whose(self) -> dict[str, Any]:
        return {
            "number": self._journal.next_number(),
            "boot": self._journal.boot,
            "time": time.time(),
            "owner": self._owner,
            "purpose": self._purpose,
            "lasting": self._lasting,
        }

    def noted(self, entry: Entry, stage: Stage, text: str = "") -> Entry:
        """Note how far it got."""
        facts: dict[str, object] = {"stage": stage, "made": text}
        if stage is Stage.MADE:
            facts["beside_made"] = texts(self._target, tuple(entry.beside))
        further = entry.model_copy(update=facts)
        self._journal.put(further, durable=False)
        return further

    def _is_own(self, entry: Entry) -> bool:
        return entry.number in self._numbers


@contextmanager
def changing(
    target: Target,
    purpose: str,
    *,
    journal: Journal | None = None,
    lasting: bool = False,
    wait: bool = True,
    say: Say | None = None,
) -> Iterator[Changes]:
    """Be the only ktrial that changes knobs of this system, and put them back at the end.

    Success, exception, Ctrl-C, SIGTERM and SIGHUP end alike: the latter three wait until the work looks for
    them (`ktrial.interruption.check`), or has ended. `lasting`: what was changed stays after success, until
    `ktrial host restore`. What an earlier process left behind is put back first. `say` is told who is waited
    for, and what could not be put back. Raises JournalError.
    """
    journal = journal or Journal()
    with journal.held(wait=wait, say=say), interruption.deferred(then_raise=not lasting):
        restore.tell(restore.abandoned(journal, target), say)
        changes = Changes(target, journal, purpose, lasting=lasting, say=say)
        try:
            yield changes
            interruption.check()
            fault_point("apply: work done")
        except BaseException:
            changes.undo()
            raise
        else:
            if not lasting:
                changes.undo()
        finally:
            journal.tidy()
