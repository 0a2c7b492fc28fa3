"""What differs between two runs of the same trials beside their numbers, and which of it is likely why."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ktrial.model.environment import ReadingKind
from ktrial.model.replication import Circumstance
from ktrial.model.trial import Trial

KERNEL, QEMU, PROGRAMS, DISK = "kernel", "QEMU", "guest program", "initial RAM disk"
COMMAND_LINE, CPU, OUTCOME, ENVIRONMENT = "kernel's command line", "CPU model", "outcome", "machine"
_KTRIAL, _SETTING, _HOST_PROGRAM = "ktrial", "setting", "program"
_DISK_MAKERS = ("mke2fs", "mkfs.xfs", "mkfs.btrfs")
_TOLD_APART = ("image", "symbols", "plugin", DISK)
PLUGIN = "plugin in QEMU"
_BESIDE_QEMU = frozenset({QEMU, _KTRIAL, PLUGIN, CPU})
"""What may differ where only QEMU does: its plugin goes with its version, and so does what its CPU has; the
version of ktrial alone executes nothing in the guest."""


class _Rank(NamedTuple):
    what: str
    why: str


_MADE_BY = frozenset(f"{_HOST_PROGRAM} {tool}" for tool in _DISK_MAKERS)
_MAKING_THE_DISK = _MADE_BY | {DISK}
"""The initial RAM disk has the program."""

_LIKELY = (
    _Rank(KERNEL, "another kernel was booted"),
    _Rank(PROGRAMS, "ktrial's guest programs are others"),
    _Rank(_SETTING, "a setting was another"),
    _Rank(COMMAND_LINE, "the kernel was started with other parameters"),
    _Rank(QEMU, "another QEMU counted"),
    *(_Rank(f"{_HOST_PROGRAM} {tool}", f"another build of {tool} made the disk") for tool in _DISK_MAKERS),
    _Rank(_HOST_PROGRAM, "a program that is measured is another"),
    _Rank(CPU, "the guest's CPU is another"),
    _Rank(DISK, "something in the initial RAM disk is another"),
    _Rank(ENVIRONMENT, "the machine is another"),
    _Rank(OUTCOME, "trials ended otherwise"),
)
NOTHING = (
    "nothing that was executed differs: a number of the bundle was changed after it was measured, or one of "
    "the two machines does not repeat itself (ktrial verify tells whether this one does)"
)


def circumstances(pairs: Iterable[tuple[Trial, Trial | None]]) -> tuple[Circumstance, ...]:
    """Everything that is another than it was, each once, with the treatments that it holds for."""
    treatments_of: dict[tuple[str, str, str], dict[str, None]] = {}
    labels: dict[str, None] = {}
    for old, new in pairs:
        if new is not None:
            labels[old.planned.treatment.label] = None
            for what in _differing(old, new):
                treatments_of.setdefault(what, {})[old.planned.treatment.label] = None
    return tuple(
        Circumstance(
            what=what, before=before, now=now, treatments=() if len(held) == len(labels) else tuple(held)
        )
        for (what, before, now), held in treatments_of.items()
    )


def only_qemu_differs(changed: Sequence[Circumstance], *, own_files: bool = False) -> bool:
    """Whether another QEMU counted, and all that the guest measured is the same.

    Where no files of the system that the study runs on are measured (`own_files`), the program that makes the
    guest's disk may be another: its file system is the same, and it is not what is counted.
    """
    kinds = {one.what for one in changed}
    beside = _BESIDE_QEMU if own_files else _BESIDE_QEMU | _MAKING_THE_DISK
    return QEMU in kinds and kinds <= beside and (DISK not in kinds or bool(kinds & _MADE_BY))


def likely_reason(changed: Sequence[Circumstance]) -> str:
    """The first of what usually is why, in a sentence without its end."""
    for rank in _LIKELY:
        for one in changed:
            if one.what == rank.what or one.what.startswith(f"{rank.what} "):
                return f"{rank.why}: {one.now or 'none'} in place of {one.before or 'none'}"
    return NOTHING


def _differing(old: Trial, new: Trial) -> Iterator[tuple[str, str, str]]:
    then, now = dict(_facts(old)), dict(_facts(new))
    for what in dict.fromkeys([*then, *now]):
        if then.get(what) != now.get(what) and not _new(what, then):
            yield what, then.get(what, ""), now.get(what, "")


def _new(what: str, then: dict[str, str]) -> bool:
    """Whether an older ktrial did not note it: then it cannot differ."""
    made = tuple(f"{_HOST_PROGRAM} {tool}" for tool in _DISK_MAKERS)
    return what not in then and what.startswith((PROGRAMS, DISK, PLUGIN, *made))


def _facts(trial: Trial) -> Iterator[tuple[str, str]]:
    """What → value. What an older ktrial did not note is left out."""
    one = trial.provenance
    yield KERNEL, f"{one.kernel_release} ({one.kernel_digest[:12]})"
    yield _KTRIAL, one.ktrial
    yield QEMU, one.qemu
    yield CPU, one.cpu_model
    yield COMMAND_LINE, one.command_line
    yield OUTCOME, trial.outcome.value
    for what, digest in one.executed.items():
        if what not in _TOLD_APART:
            yield f"{PROGRAMS} {what}", digest[:12]
    for what, name in ((DISK, DISK), ("plugin", PLUGIN)):
        if what in one.executed:
            yield name, one.executed[what][:12]
    for program, version in one.programs.items():
        yield f"{_HOST_PROGRAM} {program}", version
    for path, value in trial.settings.items():
        yield f"{_SETTING} {path}", value
    for reading in one.environment.readings if one.environment else ():
        if reading.kind is ReadingKind.SETTING and reading.value:
            yield f"{ENVIRONMENT} {reading.name}", reading.value
