"""What a source's Kconfig says about its options. Plain data."""

from pydantic import Field

from ktrial.model.base import Model


class MenuOption(Model):
    """One option, as the source defines it."""

    kind: str
    """`bool`, `tristate`, `int`, `hex`, `string`, or `unknown`."""
    prompt: str = ""
    """As menuconfig shows it; empty where nobody is asked: its value follows from others."""
    menu: tuple[str, ...] = ()
    """The menus around it, from the outermost in."""
    depends: str = ""
    """The whole condition, menus included, in Kconfig's own words: `EXPERT && !SLUB_TINY`. Empty: none."""
    selected_by: tuple[str, ...] = ()
    """Options that force it on: `XFS_FS`, or `XFS_FS if BLOCK`."""
    choice: tuple[str, ...] = ()
    """Where it is one of a choice, of which exactly one is on: all of them."""
    place: str = ""
    """Where it is defined first: `mm/Kconfig:231`."""


class Menus(Model):
    """All options of a source, by their full names (`CONFIG_SLAB`)."""

    options: dict[str, MenuOption] = Field(default_factory=dict)
    problem: str = ""
    """Why `options` is empty: what could not be read. Empty where it was."""
