"""Finds on a running system what a user named, and reads it."""

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from ktrial.knobs import catalogue, values
from ktrial.knobs.catalogue import reference
from ktrial.knobs.errors import (
    BadKnobName,
    KnobAbsent,
    KnobError,
    KnobForbidden,
    KnobNeedsInstance,
    KnobNotMounted,
    KnobRefused,
)
from ktrial.model.knob import Knob, KnobLocation, Version, version_of
from ktrial.model.notation import nearest
from ktrial.model.references import ALL, KnobRef, filled
from ktrial.target import Failure, Read, StepResult, Target
from ktrial.text_lines import lines_of

_PLACEHOLDER = re.compile(r"\{\w+\}")
_SHOWN_INSTANCES = 8
# What has to be known of a running system to say why a knob is not there: its release and its mounts.
_FILESYSTEMS = {
    "/sys/kernel/debug": "debugfs",
    "/sys/kernel/tracing": "tracefs",
    "/sys/fs/cgroup": "cgroup2",
    "/sys/fs/bpf": "bpf",
}
"""File systems of their own below /sys, by the place where they are usually mounted."""
_FORBIDDEN = {"EACCES", "EPERM", "EROFS"}
_ABSENT = {"ENOENT", "ENOTDIR"}


@runtime_checkable
class Lister(Protocol):
    """A target that can tell which files there are."""

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Paths that match the pattern (as in a shell), sorted."""
        ...


@dataclass(frozen=True)
class System:
    """A target, asked once for each thing."""

    target: Target
    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    """Whether what reads and writes there is root: ktrial itself, or a guest's agent, which always is."""

    def read(self, *paths: str) -> tuple[StepResult, ...]:
        """Read the files."""
        return self.target.perform(tuple(Read(path=path) for path in paths))

    @cached_property
    def release(self) -> str:
        """`6.12.117+deb13-cloud-amd64`."""
        (result,) = self.read("/proc/sys/kernel/osrelease")
        return result.content.strip()

    @cached_property
    def version(self) -> Version:
        """Major and minor."""
        return version_of(self.release)

    @cached_property
    def _mounts(self) -> dict[str, str]:
        (result,) = self.read("/proc/mounts")
        lines = [line.split() for line in lines_of(result.content)]
        return {line[1]: line[2] for line in lines if len(line) > 2}

    def missing_mount(self, path: str) -> tuple[str, str] | None:
        """File system and mount point that the path needs, where it is not mounted there."""
        for mount_point, filesystem in _FILESYSTEMS.items():
            below = path.startswith(f"{mount_point}/")
            if below and self._mounts.get(mount_point) != filesystem:
                return filesystem, mount_point
        return None

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Paths that match the pattern; none where the target cannot tell."""
        return self.target.matching(pattern) if isinstance(self.target, Lister) else ()


@dataclass(frozen=True)
class KnobInstance:
    """A knob's file on a system, and what is in it."""

    name: str
    """`vm.swappiness`, `queue/read_ahead_kb@vda`, or the path that was named."""
    path: str
    knob: Knob | None
    text: str
    """The file's text, without its last newline."""

    @property
    def value(self) -> str:
        """Of several choices only the one in force; lines and tabs as blanks."""
        return values.form_of(self.path).undoing(self.text, "").strip() if self._has_choices else self._flat

    @property
    def _flat(self) -> str:
        return " ".join(self.text.split())

    @property
    def _has_choices(self) -> bool:
        return values.chosen(self.text) != self.text or self.path.endswith("/sched/preempt")


def find(system: System, name: str | KnobRef) -> tuple[KnobInstance, ...]:
    """What the name stands for here: one, or with `@*` all instances.

    Raises KnobError.
    """
    named = reference(name) if isinstance(name, str) else name
    if named.knob is None or named.path:
        # Whoever names a path means that file, wherever else a kernel keeps the knob.
        knob = None if named.asked.startswith("/") else named.knob
        return (_at(system, named.asked, named.path_in(), knob),)
    knob = named.knob
    if knob.needs_reboot:
        raise KnobError(
            f"Knob {named.asked} is a boot parameter: it cannot be changed while the kernel runs.",
            hint="compare it in a study (machine exact boots each level): "
            f'target = "{knob.places[0].boot}", kind = "boot"',
        )
    if not knob.instance:
        return (_first(system, named, knob),)
    if named.instance and named.instance != ALL:
        path = filled(knob.places[0].path, named.instance)
        return (_at(system, f"{knob.name}@{named.instance}", path, knob),)
    return _instances(system, named, knob)


def instances(system: System, knob: Knob) -> tuple[str, ...]:
    """Those that are here: `vda`, `eth0/rx-0`."""
    template = knob.places[0].path
    paths = system.matching(_PLACEHOLDER.sub("*", template.replace("{group}", "**")))
    return tuple(filter(None, (catalogue.instance_at(template, path) for path in paths)))


def _instances(system: System, named: KnobRef, knob: Knob) -> tuple[KnobInstance, ...]:
    present = instances(system, knob)
    if not present:
        raise absent(system, named.asked, knob.places[0].path, knob)
    if named.instance != ALL:
        shown = ", ".join(present[:_SHOWN_INSTANCES]) + (", …" if len(present) > _SHOWN_INSTANCES else "")
        raise KnobNeedsInstance(
            f"There is one {knob.name} for each {knob.instance}: {shown}.",
            hint=f"name one: {knob.name}@{present[0]}, or all: {knob.name}@*",
        )
    return tuple(
        _at(system, f"{knob.name}@{name_of_instance}", filled(knob.places[0].path, name_of_instance), knob)
        for name_of_instance in present
    )


def _first(system: System, named: KnobRef, knob: Knob) -> KnobInstance:
    """In the newest place that the system has, whatever its version says."""
    places = [place for place in knob.places if place.path]
    results = system.read(*(place.path for place in places))
    for place, result in zip(places, results, strict=True):
        if not result.failure:
            return _found(knob.name, place.path, knob, result)
    place, result = _telling(system, places, results)
    failure = result.failure
    assert failure is not None
    raise of_reading(system, named.asked, place.path, knob, failure)


def _telling(
    system: System, places: list[KnobLocation], results: tuple[StepResult, ...]
) -> tuple[KnobLocation, StepResult]:
    """The place whose failure says most: one that is there but cannot be read, else this version's."""
    pairs = list(zip(places, results, strict=True))
    unreadable = [pair for pair in pairs if pair[1].failure and pair[1].failure.name != "ENOENT"]
    of_version = [pair for pair in pairs if pair[0].holds_in(system.version)]
    return next(iter(unreadable or of_version or pairs))


def _at(system: System, name: str, path: str, knob: Knob | None) -> KnobInstance:
    (result,) = system.read(path)
    if result.failure:
        raise of_reading(system, name, path, knob, result.failure)
    return _found(name, path, knob or catalogue.knob_at(path), result)


def _found(name: str, path: str, knob: Knob | None, result: StepResult) -> KnobInstance:
    return KnobInstance(name, path, knob, result.content.removesuffix("\n"))


def coupled_paths(system: System, knob: KnobInstance) -> tuple[str, ...]:
    """Files here of the knobs that the kernel may change with this one."""
    if not knob.knob:
        return ()
    templates = [place.path for place in knob.knob.places]
    instance = next(filter(None, (catalogue.instance_at(template, knob.path) for template in templates)), "")
    candidates = [
        filled(place.path, instance)
        for name in knob.knob.coupled
        for place in catalogue.find(name).places
        if place.path and catalogue.find(name).instance in {"", knob.knob.instance}
    ]
    results = system.read(*candidates)
    return tuple(path for path, result in zip(candidates, results, strict=True) if not result.failure)


# --- From what a kernel answered to an error that says what to do.


def of_reading(system: System, name: str, path: str, knob: Knob | None, failure: Failure) -> KnobError:
    """Why the file could not be read."""
    if failure.name in _ABSENT:
        return absent(system, name, path, knob)
    if failure.name in _FORBIDDEN:
        return _forbidden(system, name, path, "reading it", failure)
    if failure.name == "EISDIR":
        return BadKnobName(name, f"{path} is a directory")
    if not failure.name:
        return BadKnobName(name, failure.text)
    return KnobError(f"Knob {name}: it cannot be read, so nothing could put it back ({failure.text})")


def of_writing(
    system: System, name: str, path: str, knob: Knob | None, value: str, failure: Failure
) -> KnobError:
    """Why the value could not be written."""
    if failure.name in _ABSENT:
        return absent(system, name, path, knob)
    if failure.name in _FORBIDDEN:
        return _forbidden(system, name, path, "writing it", failure)
    if failure.name == "EISDIR":
        return BadKnobName(name, f"{path} is a directory")
    allowed = values.described(knob, system.version) if knob else ""
    advice = [
        f"Linux {system.release} takes {allowed}" if allowed else "the kernel's log may say more: dmesg"
    ]
    if knob and knob.coupled:
        advice.append(f"it depends on {', '.join(knob.coupled)}")
    answer = failure.name or failure.text
    return KnobRefused(name, value, answer, hint="; ".join(advice))


def absent(system: System, name: str, path: str, knob: Knob | None) -> KnobError:
    """Why there is no such file: moved, gone, not mounted, too new, not configured, no such hardware."""
    owner = knob or catalogue.knob_at(path)
    files = [place for place in owner.places if place.path] if owner else []
    places = [place for place in files if place.holds_in(system.version)]
    if owner and not places:
        return of_other_versions(system.release, name, owner)
    if owner and knob is None and path not in {place.path for place in places} and "{" not in places[0].path:
        change = f" ({places[0].change})" if places[0].change else ""
        return KnobAbsent(
            f"Knob {name} is not there: kernel {system.release} keeps it in {places[0].path}{change}.",
            hint=f"name it {owner.name}, and ktrial finds it wherever a kernel keeps it",
        )
    if missing := system.missing_mount(path):
        filesystem, mount_point = missing
        return KnobNotMounted(name, filesystem, mount_point)
    if not owner:
        likely = (
            ""
            if name.startswith("/")
            else nearest(name, (known_knob.name for known_knob in catalogue.all_knobs()))
        )
        advice = f"see what there is: ktrial knob list{likely}"
        return _absent(system.release, name, f"there is no {path}", advice)
    why = " and ".join(filter(None, (places[0].config, places[0].needs))) or "something that is not there"
    return _absent(system.release, name, f"it needs {why}", f"it would be at {places[0].path}")


def of_other_versions(release: str, name: str, knob: Knob) -> KnobError:
    """Why a kernel of this release has no such file, where others have one."""
    files = [place for place in knob.places if place.path]
    newest, oldest = files[0], files[-1]
    if knob.successor and newest.until:
        return KnobAbsent(
            f"Knob {name} is gone: the last kernel with it was {newest.until}, this is {release}.",
            hint=f"nearest to it is {knob.successor.name}, which is not the same thing: "
            f"{knob.successor.difference}",
        )
    ended = f"kernels had it until {newest.until}"
    reason = ended if newest.until else f"kernels have it since {oldest.since}"
    return _absent(release, name, reason, "compare kernels that have it, or leave it out")


def _absent(release: str, name: str, reason: str, advice: str) -> KnobAbsent:
    return KnobAbsent(f"Knob {name} is not in this kernel ({release}): {reason}.", hint=advice)


def _forbidden(system: System, name: str, path: str, action: str, failure: Failure) -> KnobError:
    # An unmounted debugfs answers root with EPERM where the kernel is locked down, and with ENOENT elsewhere.
    if missing := system.missing_mount(path):
        filesystem, mount_point = missing
        return KnobNotMounted(name, filesystem, mount_point)
    if failure.name == "EROFS":
        advice = "it is mounted read-only, as in a container: run ktrial on the host itself"
    elif not system.is_root:
        advice = "run the same command as root: sudo …"
    else:
        advice = "even root may not: the file is read-only, or lockdown or a container forbids it"
    return KnobForbidden(name, action, failure.name, hint=advice)
