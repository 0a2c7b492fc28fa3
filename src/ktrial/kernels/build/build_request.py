"""What is asked of a build, from what a user writes."""

import re
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.errors import BadBuildOption

GUEST, DEFCONFIG = "guest", "defconfig"
_OPTION = re.compile(r"(?:CONFIG_)?(?P<name>[A-Za-z0-9_]+)=(?P<value>.*)")
_PLAIN = re.compile(r"[ymn]|-?[0-9]+|0x[0-9a-fA-F]+")
_TEXT = re.compile(r'"?([^"\\\n]*)"?')


@dataclass(frozen=True)
class Wanted:
    """One kernel to build: which source, which configuration."""

    source: Path
    config: str = GUEST
    """`guest`, `defconfig`, or the path of a file."""
    options: tuple[tuple[str, str], ...] = ()
    """Options that are set over that: (`CONFIG_SLUB_DEBUG_ON`, `y`)."""


def wanted(source: Path, config: str = GUEST, options: tuple[str, ...] = ()) -> Wanted:
    """What to build, with the options as a user writes them. Raises BadBuildOption."""
    return Wanted(source, config, tuple(option_of(text) for text in options))


def option_of(text: str) -> tuple[str, str]:
    """`SLAB=y` or `CONFIG_SLAB=y` as name and value, as a configuration has them. Raises BadBuildOption."""
    match = _OPTION.fullmatch(text.strip())
    if match is None:
        problem = "there is no '='" if "=" not in text else "a name has letters, digits and underscores only"
        raise BadBuildOption(name=text, directory="", text=text, problem=problem)
    value = match["value"].strip()
    if not value:
        raise BadBuildOption(name=text, directory="", text=text, problem="there is no value")
    if not _PLAIN.fullmatch(value):
        inside = _TEXT.fullmatch(value)
        if inside is None:
            problem = "a text has no quotes, backslashes or line ends in it"
            raise BadBuildOption(name=text, directory="", text=text, problem=problem)
        value = f'"{inside[1]}"'
    return f"CONFIG_{match['name']}", value
