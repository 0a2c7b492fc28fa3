"""Short forms in which the catalogue's files declare their knobs."""

from collections.abc import Mapping, Sequence
from typing import Any

from ktrial.model.knob import Allowed, Default, Knob, KnobKind, KnobLocation

_SYSCTL_DOCUMENTATION = {
    "kernel": "Documentation/admin-guide/sysctl/kernel.rst",
    "vm": "Documentation/admin-guide/sysctl/vm.rst",
    "fs": "Documentation/admin-guide/sysctl/fs.rst",
    "net.core": "Documentation/admin-guide/sysctl/net.rst",
    "net.ipv4": "Documentation/networking/ip-sysctl.rst",
}
_BOOT_DOCUMENTATION = "Documentation/admin-guide/kernel-parameters.txt"
DEBUG_SCHED = "/sys/kernel/debug/sched/"
TO_DEBUGFS = "8a99b6833c88 sched: Move SCHED_DEBUG sysctl to debugfs"
"""What moved most of the scheduler's sysctls, in 5.13."""


def sysctl(
    name: str,
    summary: str,
    default: str | Sequence[Default] = "",
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: Sequence[str] = (),
    since: str = "",
    until: str = "",
    config: str = "",
    change: str = "",
    boot: str = "",
    **more: Any,
) -> Knob:
    """A knob below /proc/sys."""
    place = KnobLocation(
        path="/proc/sys/" + name.replace(".", "/"), since=since, until=until, config=config, change=change
    )
    documentation = more.pop("documentation", "") or next(
        path for prefix, path in _SYSCTL_DOCUMENTATION.items() if name.startswith(f"{prefix}.")
    )
    return _knob(
        name, summary, default, (place, *_boot(boot, place)), minimum, maximum, choices, documentation, more
    )


def file(
    name: str,
    path: str,
    summary: str,
    default: str | Sequence[Default] = "",
    *,
    documentation: str,
    minimum: int | None = None,
    maximum: int | None = None,
    choices: Sequence[str] = (),
    since: str = "",
    until: str = "",
    config: str = "",
    needs: str = "",
    change: str = "",
    older: Sequence[KnobLocation] = (),
    boot: str = "",
    **more: Any,
) -> Knob:
    """A knob in a file below /sys, with the places in which older kernels keep it."""
    place = KnobLocation(path=path, since=since, until=until, config=config, needs=needs, change=change)
    places = (place, *older, *_boot(boot, place))
    return _knob(name, summary, default, places, minimum, maximum, choices, documentation, more)


def scheduler(name: str, summary: str, default: str, *, until: str = "", **more: Any) -> Knob:
    """A knob that was the sysctl kernel.sched_NAME to 5.12, and is in the scheduler's debugfs since 5.13."""
    old = KnobLocation(path=f"/proc/sys/kernel/sched_{name}", until="5.12", config="CONFIG_SCHED_DEBUG")
    return file(
        more.pop("named", f"sched_{name}"),
        f"{DEBUG_SCHED}{name}",
        summary,
        default,
        since="5.13",
        until=until,
        change=TO_DEBUGFS,
        older=(old,),
        documentation="Documentation/scheduler/sched-debug.rst",
        **more,
    )


def boot_parameter(
    name: str,
    summary: str,
    default: str | Sequence[Default] = "",
    *,
    choices: Sequence[str] = (),
    since: str = "",
    until: str = "",
    config: str = "",
    change: str = "",
    documentation: str = _BOOT_DOCUMENTATION,
    **more: Any,
) -> Knob:
    """A knob that only the boot loader can set."""
    place = KnobLocation(boot=name, since=since, until=until, config=config, change=change)
    return _knob(name, summary, default, (place,), None, None, choices, documentation, more)


def _boot(parameter: str, place: KnobLocation) -> tuple[KnobLocation, ...]:
    """The boot parameter that comes with a file: in the same kernels."""
    same = {"since": place.since, "until": place.until, "config": place.config}
    return (KnobLocation(boot=parameter, **same),) if parameter else ()


def _knob(
    name: str,
    summary: str,
    default: str | Sequence[Default],
    places: tuple[KnobLocation, ...],
    minimum: int | None,
    maximum: int | None,
    choices: Sequence[str],
    documentation: str,
    more: Mapping[str, Any],
) -> Knob:
    defaults = ((Default(value=default),) if default else ()) if isinstance(default, str) else tuple(default)
    bounded = minimum is not None or maximum is not None or choices
    allowed = (Allowed(minimum=minimum, maximum=maximum, choices=tuple(choices)),) if bounded else ()
    kind = KnobKind.CHOICE if choices else KnobKind.INTEGER
    facts = {
        "kind": kind,
        "allowed": allowed,
        "defaults": defaults,
        "documentation": documentation,
        **more,
    }
    return Knob(name=name, summary=summary, places=places, **facts)
