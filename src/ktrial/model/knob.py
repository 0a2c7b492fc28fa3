"""A knob: one setting of a kernel, wherever that kernel keeps it, and what the kernel says about it."""

import re
from enum import StrEnum

from ktrial.model.base import Model

Version = tuple[int, int]
"""Major and minor: `(6, 12)`."""

_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")
_NEWEST: Version = (10**6, 0)


def version_of(release: str) -> Version:
    """The version in `6.12.117+deb13-cloud-amd64` or `6.12`. Raises ValueError where there is none."""
    if match := _VERSION.match(release):
        return int(match[1]), int(match[2])
    raise ValueError(f"{release!r} does not begin with a version like 6.12")


class KnobKind(StrEnum):
    """What a knob's value looks like."""

    INTEGER = "integer"
    INTEGERS = "integers"
    """Several whole numbers, separated by blanks."""
    SWITCH = "switch"
    """Off or on: 0 or 1, N or Y, false or true."""
    CHOICE = "choice"
    MASK = "mask"
    """A bit mask of CPUs, in hexadecimal."""
    TEXT = "text"


class Safety(StrEnum):
    """What can be lost by changing a knob, beyond speed."""

    SAFE = "safe"
    SECURITY = "security"
    """Some values open the system to attacks."""
    DURABILITY = "durability"
    """Some values lose data, or the system itself, when power, memory or a real-time task fails."""


class _Versioned(Model):
    since: str = ""
    """First version, `5.13`; empty: older than every kernel that ktrial knows."""
    until: str = ""
    """Last version; empty: still so."""

    def holds_in(self, version: Version) -> bool:
        """Whether this is said of the version."""
        first = version_of(self.since) if self.since else (0, 0)
        last = version_of(self.until) if self.until else _NEWEST
        return first <= version <= last


class KnobLocation(_Versioned):
    """Where kernels keep a knob. Either a file or a boot parameter."""

    path: str = ""
    """Below /proc/sys or /sys. `{disk}`, `{interface}`, `{policy}` or `{group}` stands for an instance."""
    boot: str = ""
    """Boot parameter, without `=`."""
    change: str = ""
    """The commit that brought it here, and its subject, or what is known of the version that did."""
    config: str = ""
    """Configuration option without which it is absent: `CONFIG_KSM`."""
    needs: str = ""
    """What else must be there: `a cpufreq driver`."""

    @property
    def sysctl(self) -> str:
        """`vm.swappiness`; empty where this is no sysctl."""
        match = re.fullmatch(r"/proc/sys/([^{]+)", self.path)
        return match[1].replace(".", "\0").replace("/", ".").replace("\0", "/") if match else ""


class Default(_Versioned):
    """What a knob is when nobody has changed it."""

    value: str = ""
    """As the kernel's file shows it; empty where the kernel computes it, see `computed`."""
    computed: str = ""
    """From what the kernel computes it, or who else decides: `memory`, `the distribution`."""
    config: str = ""
    """Holds only where this is set: `CONFIG_NET_SCH_DEFAULT`, `CONFIG_DEFAULT_TCP_CONG=cubic`."""


class Allowed(_Versioned):
    """Which values a kernel takes."""

    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()


class Successor(Model):
    """What is nearest to a knob that is gone. It is not the same thing."""

    name: str
    difference: str
    """What it does instead: a sentence without its end."""


class Activity(StrEnum):
    """What a kernel does that a knob decides about: where it never happens, every value does the same."""

    SWAPPING = "swapping"
    BALANCE = "balance"
    """Of what is reclaimed: pages to swap, or pages of files."""
    WRITING = "writing"
    RECLAIM = "reclaim"


class Equipment(StrEnum):
    """What a system must have, so that a knob has anything to act on."""

    SWAP = "swap"
    DISK = "disk"


class Knob(Model):
    """One setting of a kernel."""

    name: str
    """As the kernel documents it: a sysctl's name, a boot parameter's, or that of its file."""
    subsystem: str = ""
    summary: str
    """A line: what it does."""
    kind: KnobKind = KnobKind.INTEGER
    unit: str = ""
    places: tuple[KnobLocation, ...]
    """Newest first."""
    defaults: tuple[Default, ...] = ()
    """The first that holds in a version and configuration is the one."""
    allowed: tuple[Allowed, ...] = ()
    """Newest first; empty: the kernel takes whatever it can read."""
    safety: Safety = Safety.SAFE
    documentation: str
    """Path in the kernel's source: `Documentation/admin-guide/sysctl/vm.rst`."""
    coupled: tuple[str, ...] = ()
    """Knobs that the kernel changes with this one, or that limit it."""
    successor: Successor | None = None
    acts_on: Equipment | None = None
    """Without it every value does the same, though the kernel takes all of them."""
    decides_on: Activity | None = None
    """What shows that it had anything to act on; None: as what it acts on says, if it says."""

    @property
    def activity(self) -> Activity | None:
        """What has to happen before its value matters; None where that is not known."""
        of_equipment = {Equipment.SWAP: Activity.SWAPPING, Equipment.DISK: Activity.WRITING}
        return self.decides_on or (of_equipment[self.acts_on] if self.acts_on else None)

    @property
    def needs_reboot(self) -> bool:
        """Whether no kernel lets it be changed while it runs."""
        return not any(place.path for place in self.places)

    @property
    def instance(self) -> str:
        """What there are several of: `disk`, `interface`, `policy`, `group`; empty where there is one."""
        match = re.search(r"\{(\w+)\}", " ".join(place.path for place in self.places))
        return match[1] if match else ""

    def places_in(self, version: Version) -> tuple[KnobLocation, ...]:
        """Where kernels of this version keep it, newest first."""
        return tuple(place for place in self.places if place.holds_in(version))

    def allowed_in(self, version: Version) -> Allowed:
        """What kernels of this version take."""
        return next((allowed for allowed in self.allowed if allowed.holds_in(version)), Allowed())

    def default_in(self, version: Version, options: dict[str, str]) -> Default | None:
        """The default in this version, with this configuration (`CONFIG_KSM` → `y`); None if not known."""
        return next(
            (
                default
                for default in self.defaults
                if default.holds_in(version) and _is_set(default.config, options)
            ),
            None,
        )


def _is_set(option: str, options: dict[str, str]) -> bool:
    name, _, value = option.partition("=")
    return not name or (options.get(name) == value if value else name in options)
