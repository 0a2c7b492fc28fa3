"""The user's own commands for a machine's power and console, from the user's configuration: no study has any.

`[machines.lab1]` of ~/.config/ktrial/config.toml: `power = "ipmitool -H bmc1 power"` is run here with `off`,
`on` or `cycle` behind it; `console = "ipmitool -H bmc1 sol activate"` runs as long as a trial does, and what
it prints is kept where the trial fails. No shell reads them. `boot` says how the machine is booted
into a kernel once, `sudo = true` that ktrial becomes root there by a sudo that asks nothing.
"""

import contextlib
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from ktrial.installation import how_to_add
from ktrial.machines.errors import BadOwnCommand
from ktrial.machines.ssh.boot_ways import KEXEC, WAYS
from ktrial.text_lines import lines_of

_COMMANDS = ("power", "console")
_KEYS = frozenset({*_COMMANDS, "labgrid", "target", "boot", "sudo"})
_LABGRID = (sys.executable, "-m", "ktrial.machines.ssh.labgrid_target")
_LABGRID_TARGET = "main"
"""Where none is named: as labgrid calls a file's only one."""
POWER_SECONDS = 120.0
_LONGEST = 64 * 1024


@dataclass(frozen=True)
class OwnCommands:
    """Words; empty where there is no such command."""

    power: tuple[str, ...] = ()
    console: tuple[str, ...] = ()
    boot: str = ""
    """One of `boot_ways.WAYS`; empty: the first that can be used."""
    sudo: bool = False
    """Whether what ktrial does there, it does by sudo."""

    def cycle(self) -> str:
        """Take the power away and give it back; return why that failed, empty where it did not."""
        try:
            finished = subprocess.run(
                [*self.power, "cycle"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=POWER_SECONDS,
                check=False,
            )
        except OSError as error:
            return f"{self.power[0]}: {error}"
        except subprocess.TimeoutExpired:  # whose text has the whole command, with its passwords
            return f"{self.power[0]}: it has not ended within {POWER_SECONDS:g} s"
        lines = lines_of(finished.stderr.decode(errors="replace").strip())
        return (
            f"{self.power[0]}: {lines[-1] if lines else f'status {finished.returncode}'}"
            if finished.returncode
            else ""
        )

    @contextmanager
    def listening(self) -> Iterator["Console"]:
        """The console's command runs as long as the block does."""
        with tempfile.TemporaryFile() as file:
            console = Console(file.fileno(), self.console)
            try:
                yield console
            finally:
                console.close()


class Console:
    """What the console's command has printed."""

    def __init__(self, file: int, command: tuple[str, ...]) -> None:
        """`file`: where it is kept. Without a command, or where it cannot run, there is only why."""
        self._file = file
        self._problem = ""
        self._process: subprocess.Popen[bytes] | None = None
        if command:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                self._problem = f"the console's command cannot be started: {error}"

    @property
    def size(self) -> int:
        """How many bytes it has printed so far."""
        return os.fstat(self._file).st_size

    @property
    def text(self) -> str:
        """Its end, so far."""
        size = self.size
        content = os.pread(self._file, _LONGEST, max(0, size - _LONGEST))
        return self._problem or content.decode(errors="replace")

    def close(self) -> None:
        """End the command."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
            self._process.kill()
            self._process.wait()


def named() -> tuple[str, ...]:
    """The machines that the user's configuration says something of. Raises BadOwnCommand."""
    return tuple(_tables(_file()))


def commands_of(host: str) -> OwnCommands:
    """What the user's configuration says of HOST or USER@HOST. Raises BadOwnCommand."""
    file, name = _file(), host.rpartition("@")[2]
    table = _tables(file).get(name, {})
    where = f"[machines.{name}]"
    if not isinstance(table, dict) or table.keys() - _KEYS:
        raise BadOwnCommand(file=str(file), problem=f"{where} has keys other than {', '.join(sorted(_KEYS))}")
    if table.get("boot", KEXEC) not in WAYS:
        raise BadOwnCommand(file=str(file), problem=f"{where} boot is not one of {', '.join(WAYS)}")
    if not isinstance(table.get("sudo", False), bool):
        raise BadOwnCommand(file=str(file), problem=f"{where} sudo is neither true nor false")
    words = _by_labgrid(table, where, file) | {
        key: _words(table[key], f"{where} {key}", file) for key in _COMMANDS if key in table
    }
    return OwnCommands(**words, boot=table.get("boot", ""), sudo=table.get("sudo", False))


def _file() -> Path:
    return Path(platformdirs.user_config_dir("ktrial"), "config.toml")


def _tables(file: Path) -> dict[str, Any]:
    """What the file has of each machine. Raises BadOwnCommand."""
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        machines = tomllib.loads(text).get("machines", {})
    except (OSError, ValueError) as error:
        raise BadOwnCommand(file=str(file), problem=str(error)) from None
    if not isinstance(machines, dict):
        raise BadOwnCommand(file=str(file), problem="machines is not a table: [machines.NAME]")
    return machines


def _words(text: object, where: str, file: Path) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text)) if isinstance(text, str) else ()
    except ValueError:
        words = ()
    if not words:
        raise BadOwnCommand(file=str(file), problem=f"{where} is not a command")
    return words


def _by_labgrid(table: dict[str, Any], where: str, file: Path) -> dict[str, tuple[str, ...]]:
    """Both commands, where labgrid is asked for. Raises BadOwnCommand."""
    file_name, target = table.get("labgrid"), table.get("target", _LABGRID_TARGET)
    if file_name is None and "target" not in table:
        return {}
    place = file.parent / Path(file_name).expanduser() if isinstance(file_name, str) and file_name else None
    if place is None or not place.is_file():
        raise BadOwnCommand(
            file=str(file), problem=f"{where} labgrid is not a file of labgrid's: {file_name!r}"
        )
    if not isinstance(target, str) or not target:
        raise BadOwnCommand(file=str(file), problem=f"{where} target is not the name of a target in {place}")
    if importlib.util.find_spec("labgrid") is None:
        missing = f"wants labgrid, which is not installed: {how_to_add('labgrid')}"
        raise BadOwnCommand(file=str(file), problem=f"{where} {missing}")
    return {key: (*_LABGRID, str(place), target, key) for key in _COMMANDS}
