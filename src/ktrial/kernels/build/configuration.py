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

from ktrial.kernels.build.build_request import DEFCONFIG, GUEST
from ktrial.kernels.build.errors import BadConfigFile
from ktrial.kernels.build.make import Make
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.kconfig.definitions import definitions
from ktrial.kernels.kconfig.unmet_dependencies import not_taken

_REQUESTED = "requested.config"
_SHIPPED = ("typical.config", "guest.config")
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def configure(make: Make, config: str, options: Mapping[str, str], given: str = "") -> None:
    """Write the build directory's .config. Raises BadConfigFile, OptionNotTaken, BuildFailed.

    `given`: the text of the configuration, where it is neither ktrial's own nor the source's.
    """
    fragments = [make.beside("given.config", given)] if given else _fragments(make, config)
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
        return [make.beside(name, _guest_text(name)) for name in _SHIPPED]
    if config == DEFCONFIG:
        make.run("configuring", "x86_64_defconfig")
        return [make.beside("defconfig.config", (make.build / ".config").read_text(encoding="utf-8"))]
    return [make.beside("given.config", given_text(Path(config).expanduser()))]


def shipped_text(config: str) -> str:
    """What ktrial itself says about a configuration, for the key of a build."""
    return "".join(_guest_text(name) for name in _SHIPPED) if config == GUEST else ""


def _guest_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def given_text(path: Path) -> str:
    """The content of a configuration file. Raises BadConfigFile."""
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
            raise not_taken(make, name, value, final, known)
