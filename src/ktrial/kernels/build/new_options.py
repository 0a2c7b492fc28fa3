"""Options that patches bring: which they are, the defaults that their authors gave them, what they became."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ktrial.kernels.build.make import Make
from ktrial.kernels.build.patched_source import BuildSource
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.kconfig.config import parse_config, read
from ktrial.kernels.kconfig.menus import is_read_for_x86, options_defined
from ktrial.model.kernel import NewOption

_MOST_ROUNDS = 8
"""Each round settles at least the options that depend on those that were settled before."""


def brought_by_patches(source: BuildSource) -> tuple[str, ...]:
    """The options, `CONFIG_…`, that only the patched source defines, sorted; none without patches."""
    files = source.snapshot.manifest.files
    patched = {path: one for path, one in source.overlay.files.items() if is_read_for_x86(path)}
    after = _all(one[1] for one in patched.values() if one is not None)
    if not after:
        return ()
    with source.snapshot.reader() as reader:
        brought = after - _all(reader.content(path) for path in patched if path in files)
        if brought:  # unless it was moved from a file that the patches do not touch
            brought -= _all(
                reader.content(path) for path in files if is_read_for_x86(path) and path not in patched
            )
    return tuple(sorted(brought))


def became(brought: Iterable[str], config: str) -> tuple[NewOption, ...]:
    """What the options became in the text of a final configuration."""
    set_, offered = parse_config(config), read(config)
    values = {name: set_.get(name, "n" if offered.mentions(name) else "") for name in brought}
    return tuple(NewOption(option=name, value=value) for name, value in values.items())


def settle(make: Make, requested: Path, brought: Collection[str]) -> None:
    """Resolve allnoconfig over the fragment `requested`; options in `brought` that it leaves open have their
    own defaults.

    The kernel's kconfig knows the defaults (olddefconfig); what else those options make room for is off, as
    all in allnoconfig is. An option that depends on another one that was off is settled in the next round.
    Raises BuildFailed.
    """
    wanted = requested.read_text(encoding="utf-8")
    named = _about(brought, wanted)
    defaults: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        text = wanted + "".join(f"{line}\n" for line in defaults.values())
        fragment = make.write_file("with-defaults.config", text)
        make.run("configuring", f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        resolved = _defaults(make, brought, named) if brought else {}
        if resolved == defaults:
            return
        defaults = resolved


def _defaults(make: Make, brought: Collection[str], named: Mapping[str, str]) -> dict[str, str]:
    """The lines that olddefconfig writes about options that nobody named; the .config stays as it is."""
    config = make.build / ".config"
    present = config.read_text(encoding="utf-8")
    others = [line for line in present.splitlines() if _option(line) not in brought]
    write_atomically(config, "".join(f"{line}\n" for line in (*others, *named.values())))
    make.run("configuring", "olddefconfig")
    resolved = config.read_text(encoding="utf-8")
    write_atomically(config, present)
    return {name: line for name, line in _about(brought, resolved).items() if name not in named}


def _about(options: Collection[str], config: str) -> dict[str, str]:
    """Option → the last line about it in the text of a configuration."""
    return {name: line for line in config.splitlines() if (name := _option(line)) in options}


def _option(line: str) -> str:
    """The option that a line of a configuration is about; empty where it is about none."""
    word = line.removeprefix("# ").partition("=")[0].partition(" ")[0].strip()
    return word if word.startswith("CONFIG_") else ""


def _all(texts: Iterable[bytes]) -> set[str]:
    return set[str]().union(*(options_defined(text.decode(errors="replace")) for text in texts))
