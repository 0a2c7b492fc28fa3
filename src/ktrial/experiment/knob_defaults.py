"""The catalogue's knobs as a kernel has them after boot, read in a guest."""

from collections.abc import Mapping
from dataclasses import dataclass

from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.resources import Resources, default_resources
from ktrial.knobs import Found
from ktrial.knobs.catalogue import all_knobs
from ktrial.machines.exact import ExactMachine
from ktrial.machines.protocol import Machine
from ktrial.model.boot import Boot
from ktrial.model.kernel import Kernel
from ktrial.model.knob import Knob
from ktrial.model.references import filled
from ktrial.target import Read, Target

MODULES = ("null_blk",)
"""Loaded where a kernel has them as modules, so that there is a disk."""
INSTANCES = {
    "disk": ("nullb0",),
    "interface": ("lo", "lo/rx-0"),
    "policy": ("policy0",),
    "cpu": ("cpu0", "cpu0/state0"),
    "group": (),
}
"""What a guest has of the knobs that there are several of."""
MEMORY_MIB = 1024
"""Below 512 MB kernels switch transparent huge pages off."""


@dataclass(frozen=True)
class Difference:
    """A knob that two kernels have with different values, or that one of them has not."""

    knob: Knob
    before: str | None
    """None: that kernel does not have it."""
    after: str | None


def values(
    name: str,
    *,
    machine: Machine | None = None,
    observer: Observer | None = None,
    sources: Resources | None = None,
) -> dict[str, str]:
    """Knob → value, for those of the catalogue that the kernel has in a guest of one CPU and 1 GiB.

    Raises KernelError, MachineError, GuestEnded.
    """
    machine, observer = machine or ExactMachine(), observer or Silent()
    sources = sources or default_resources()
    machine.check()

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    boot = boot_of(sources.kernel(name, progress), sources)
    observer.preparing(boot, "reading its settings")
    with machine.start(boot) as target:
        return {found.knob.name: found.value for found in read(target) if found.knob}


def boot_of(kernel: Kernel, sources: Resources) -> Boot:
    """What is booted to read a kernel's settings."""
    modules = sources.modules(kernel, MODULES) if kernel.modules else ()
    return Boot(kernel=kernel, memory_mib=MEMORY_MIB, modules=modules)


def read(target: Target) -> tuple[Found, ...]:
    """Every knob of the catalogue that the target has, each in the newest of its places that is there."""
    places = [
        (knob, path)
        for knob in all_knobs()
        for place in knob.places
        if place.path
        for path in _paths(knob, place.path)
    ]
    results = target.perform(tuple(Read(path=path) for _, path in places))
    found: dict[str, Found] = {}
    for (knob, path), result in zip(places, results, strict=True):
        if not result.failure:
            found.setdefault(knob.name, Found(knob.name, path, knob, result.content.removesuffix("\n")))
    return tuple(found.values())


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Knobs whose values differ, in the catalogue's order."""
    return tuple(
        Difference(knob, before.get(knob.name), after.get(knob.name))
        for knob in all_knobs()
        if before.get(knob.name) != after.get(knob.name)
    )


def _paths(knob: Knob, template: str) -> tuple[str, ...]:
    if "{" not in template:
        return (template,)
    slashes = template.count("{") - 1
    return tuple(
        filled(template, instance) for instance in INSTANCES[knob.instance] if instance.count("/") == slashes
    )
