"""From what a kernel answered to an error that says what to do."""

from ktrial.knobs import catalogue, values
from ktrial.knobs.errors import (
    BadKnobName,
    KnobAbsent,
    KnobError,
    KnobForbidden,
    KnobGone,
    KnobMoved,
    KnobNotMounted,
    KnobRefused,
)
from ktrial.knobs.system import System
from ktrial.model.knob import Knob
from ktrial.model.notation import nearest
from ktrial.target import Failure

_FORBIDDEN = {"EACCES", "EPERM", "EROFS"}
_ABSENT = {"ENOENT", "ENOTDIR"}


def of_reading(system: System, name: str, path: str, knob: Knob | None, failure: Failure) -> KnobError:
    """Why the file could not be read."""
    if failure.name in _ABSENT:
        return absent(system, name, path, knob)
    if failure.name in _FORBIDDEN:
        return _forbidden(system, name, path, "reading it", failure)
    if failure.name == "EISDIR":
        return BadKnobName(knob=name, problem=f"{path} is a directory")
    if not failure.name:
        return BadKnobName(knob=name, problem=failure.text)
    return KnobError(knob=name, problem=f"it cannot be read, so nothing could put it back ({failure.text})")


def of_writing(
    system: System, name: str, path: str, knob: Knob | None, value: str, failure: Failure
) -> KnobError:
    """Why the value could not be written."""
    if failure.name in _ABSENT:
        return absent(system, name, path, knob)
    if failure.name in _FORBIDDEN:
        return _forbidden(system, name, path, "writing it", failure)
    if failure.name == "EISDIR":
        return BadKnobName(knob=name, problem=f"{path} is a directory")
    allowed = values.described(knob, system.version) if knob else ""
    advice = [
        f"Linux {system.release} takes {allowed}" if allowed else "the kernel's log may say more: dmesg"
    ]
    if knob and knob.coupled:
        advice.append(f"it depends on {', '.join(knob.coupled)}")
    answer = failure.name or failure.text
    return KnobRefused(knob=name, value=value, answer=answer, next="; ".join(advice))


def absent(system: System, name: str, path: str, knob: Knob | None) -> KnobError:
    """Why there is no such file: moved, gone, not mounted, too new, not configured, no such hardware."""
    owner = knob or catalogue.at(path)
    files = [place for place in owner.places if place.path] if owner else []
    here = [place for place in files if place.holds_in(system.version)]
    if owner and not here:
        return of_other_versions(system.release, name, owner)
    if owner and knob is None and path not in {place.path for place in here} and "{" not in here[0].path:
        change = f" ({here[0].change})" if here[0].change else ""
        facts = {"knob": name, "release": system.release, "place": here[0].path, "change": change}
        return KnobMoved(**facts, name=owner.name)
    if missing := system.missing_mount(path):
        filesystem, mount_point = missing
        return KnobNotMounted(knob=name, filesystem=filesystem, mount_point=mount_point)
    if not owner:
        likely = "" if name.startswith("/") else nearest(name, (one.name for one in catalogue.all_knobs()))
        advice = f"see what there is: ktrial knob list{likely}"
        return _absent(system.release, name, f"there is no {path}", advice)
    why = " and ".join(filter(None, (here[0].config, here[0].needs))) or "something that is not there"
    return _absent(system.release, name, f"it needs {why}", f"it would be at {here[0].path}")


def of_other_versions(release: str, name: str, knob: Knob) -> KnobError:
    """Why a kernel of this release has no such file, where others have one."""
    files = [place for place in knob.places if place.path]
    newest, oldest = files[0], files[-1]
    if knob.successor and newest.until:
        after = knob.successor
        facts = {"knob": name, "last": newest.until, "release": release}
        return KnobGone(**facts, successor=after.name, difference=after.difference)
    ended = f"kernels had it until {newest.until}"
    reason = ended if newest.until else f"kernels have it since {oldest.since}"
    return _absent(release, name, reason, "compare kernels that have it, or leave it out")


def _absent(release: str, name: str, reason: str, advice: str) -> KnobAbsent:
    return KnobAbsent(knob=name, release=release, reason=reason, next=advice)


def _forbidden(system: System, name: str, path: str, action: str, failure: Failure) -> KnobError:
    # An unmounted debugfs answers root with EPERM where the kernel is locked down, and with ENOENT elsewhere.
    if missing := system.missing_mount(path):
        filesystem, mount_point = missing
        return KnobNotMounted(knob=name, filesystem=filesystem, mount_point=mount_point)
    if failure.name == "EROFS":
        advice = "it is mounted read-only, as in a container: run ktrial on the host itself"
    elif not system.is_root:
        advice = "run the same command as root: sudo …"
    else:
        advice = "even root may not: the file is read-only, or lockdown or a container forbids it"
    return KnobForbidden(knob=name, action=action, answer=failure.name, next=advice)
