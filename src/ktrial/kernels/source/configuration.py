"""Make a build's .config: fragments, merged by the kernel's own merge_config.sh, resolved by its own kconfig.

`guest` is the smallest useful configuration: guest.config (all of it has to take) over typical.config (what
the source has of it), all else off. Others start from defconfig or from a file, and what they do not name
has its default. The user's options come last, and have to take.
"""

import re
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ktrial.errors import BadConfigFile, OptionNotTaken
from ktrial.kernels.config import parse_config
from ktrial.kernels.source.kconfig import Definition, definitions
from ktrial.kernels.source.make import Make
from ktrial.kernels.source.requests import DEFCONFIG, GUEST
from ktrial.kernels.source.tree import Tree
from ktrial.kernels.sync import write_atomically

_REQUESTED = "requested.config"
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def configure(make: Make, config: str, options: Mapping[str, str]) -> None:
    """Write the build directory's .config. Raises BadConfigFile, OptionNotTaken, BuildFailed."""
    fragments = _fragments(make, config)
    own = make.beside("options.config", "".join(f"{name}={value}\n" for name, value in options.items()))
    requested = _merged(make, [*fragments, own])
    if config == GUEST:
        make.run("configuring", f"KCONFIG_ALLCONFIG={requested}", "allnoconfig")
    else:
        write_atomically(make.build / ".config", requested.read_bytes())
        make.run("configuring", "olddefconfig")
    shipped = _settings(_guest_text("guest.config")) if config == GUEST else {}
    _check_taken(make, requested.read_text(encoding="utf-8"), set(shipped), set(options))


def _fragments(make: Make, config: str) -> list[Path]:
    if config == GUEST:
        return [make.beside(name, _guest_text(name)) for name in ("typical.config", "guest.config")]
    if config == DEFCONFIG:
        make.run("configuring", "x86_64_defconfig")
        return [make.beside("defconfig.config", (make.build / ".config").read_text(encoding="utf-8"))]
    return [make.beside("given.config", _given(Path(config).expanduser()))]


def _guest_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _given(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadConfigFile(name=path, directory="", path=path, problem=error.strerror) from None
    except UnicodeDecodeError:
        raise BadConfigFile(name=path, directory="", path=path, problem="it is not text") from None
    if not _settings(text):
        raise BadConfigFile(name=path, directory="", path=path, problem="it sets no option")
    return text


def _merged(make: Make, fragments: list[Path]) -> Path:
    """The fragments in one file, the last word on each option kept. Raises BadConfigFile."""
    merged = make.beside(_REQUESTED, "")
    # Names without directories: the script does not quote them.
    script = str(make.tree.directory / "scripts/kconfig/merge_config.sh")
    command = [script, "-m", *(fragment.name for fragment in fragments)]
    done = subprocess.run(
        command,
        cwd=merged.parent,
        env={**make.environment, "KCONFIG_CONFIG": merged.name},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        problem = f"merge_config.sh fails: {(done.stderr.strip() or done.stdout.strip())[-300:]}"
        raise BadConfigFile(name=make.tree.directory, directory="", path=fragments[-1], problem=problem)
    return merged


def _settings(text: str) -> dict[str, str]:
    """Option → value; `n` for one that is said not to be set."""
    return parse_config(text) | dict.fromkeys(_UNSET.findall(text), "n")


def _check_taken(make: Make, requested: str, shipped: set[str], asked: set[str]) -> None:
    """Raise OptionNotTaken for the first option that has to take and did not.

    An option of guest.config that this source does not know is older or newer than it.
    """
    final = _settings((make.build / ".config").read_text(encoding="utf-8"))
    refused = {
        name: value
        for name, value in _settings(requested).items()
        if name in shipped | asked and final.get(name, "n") != value
    }
    known = definitions(make.tree) if refused else {}
    for name, value in refused.items():
        if name in asked or name in known:
            raise _not_taken(make.tree, name, value, final.get(name, "n"), known.get(name))


def _not_taken(tree: Tree, name: str, value: str, found: str, place: Definition | None) -> OptionNotTaken:
    if place is None:
        problem, advice = f"Linux {tree.version} has no such option", "look for it: make menuconfig, then /"
    else:
        problem = f"it became {found}"
        wants = f"on {' && '.join(place.depends)}, and on" if place.depends else "on"
        around = "what the menus and conditions around it ask for"
        advice = f"it is defined in {place.file}:{place.line}; it depends {wants} {around}"
    facts = {"option": name, "wanted": value, "problem": problem, "advice": advice}
    return OptionNotTaken(name=tree.directory, directory=tree.directory, **facts)
