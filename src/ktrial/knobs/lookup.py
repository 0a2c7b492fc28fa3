"""Finds on a running system what a user named, and reads it."""

import re
from dataclasses import dataclass

from ktrial.knobs import catalogue, errno_diagnosis, values
from ktrial.knobs.errors import KnobNeedsInstance, KnobNeedsReboot
from ktrial.knobs.names import reference
from ktrial.knobs.system import System
from ktrial.model.knob import Knob, KnobLocation
from ktrial.model.references import ALL, KnobRef, filled
from ktrial.target import StepResult

_PLACEHOLDER = re.compile(r"\{\w+\}")
_SHOWN_INSTANCES = 8


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

    Raises BadKnobName, UnknownKnob, KnobNeedsInstance, KnobNeedsReboot, KnobAbsent and its kinds,
    KnobForbidden, KnobNotMounted.
    """
    named = reference(name) if isinstance(name, str) else name
    if named.knob is None or named.path:
        # Whoever names a path means that file, wherever else a kernel keeps the knob.
        knob = None if named.asked.startswith("/") else named.knob
        return (_at(system, named.asked, named.path_in(), knob),)
    knob = named.knob
    if knob.needs_reboot:
        raise KnobNeedsReboot(knob=named.asked, parameter=knob.places[0].boot)
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
    here = instances(system, knob)
    if not here:
        raise errno_diagnosis.absent(system, named.asked, knob.places[0].path, knob)
    if named.instance != ALL:
        shown = ", ".join(here[:_SHOWN_INSTANCES]) + (", …" if len(here) > _SHOWN_INSTANCES else "")
        facts = {"knob": knob.name, "instance": knob.instance, "found": f": {shown}"}
        raise KnobNeedsInstance(**facts, example=here[0])
    return tuple(_at(system, f"{knob.name}@{one}", filled(knob.places[0].path, one), knob) for one in here)


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
    raise errno_diagnosis.of_reading(system, named.asked, place.path, knob, failure)


def _telling(
    system: System, places: list[KnobLocation], results: tuple[StepResult, ...]
) -> tuple[KnobLocation, StepResult]:
    """The place whose failure says most: one that is there but cannot be read, else this version's."""
    pairs = list(zip(places, results, strict=True))
    there = [pair for pair in pairs if pair[1].failure and pair[1].failure.name != "ENOENT"]
    of_version = [pair for pair in pairs if pair[0].holds_in(system.version)]
    return next(iter(there or of_version or pairs))


def _at(system: System, name: str, path: str, knob: Knob | None) -> KnobInstance:
    (result,) = system.read(path)
    if result.failure:
        raise errno_diagnosis.of_reading(system, name, path, knob, result.failure)
    return _found(name, path, knob or catalogue.at(path), result)


def _found(name: str, path: str, knob: Knob | None, result: StepResult) -> KnobInstance:
    return KnobInstance(name, path, knob, result.content.removesuffix("\n"))


def coupled_paths(system: System, knob: KnobInstance) -> tuple[str, ...]:
    """Files here of the knobs that the kernel may change with this one."""
    if not knob.knob:
        return ()
    templates = [place.path for place in knob.knob.places]
    instance = next(filter(None, (catalogue.instance_at(each, knob.path) for each in templates)), "")
    candidates = [
        filled(place.path, instance)
        for name in knob.knob.coupled
        for place in catalogue.find(name).places
        if place.path and catalogue.find(name).instance in {"", knob.knob.instance}
    ]
    results = system.read(*candidates)
    return tuple(path for path, result in zip(candidates, results, strict=True) if not result.failure)
