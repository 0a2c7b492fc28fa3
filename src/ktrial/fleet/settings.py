"""Which fleet is meant: `local:N`, an address, a file, or what the user's configuration says."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError

from ktrial.file_store import checked
from ktrial.fleet.errors import BadFleet, BadFleetFile, FleetUsageError
from ktrial.model.base import Model

VARIABLE = "KTRIAL_FLEET"
NONE = "none"
"""Names no fleet, where the variable or the configuration names one."""
SHARE = 0.02
BATCH_SYSTEMS = {
    "slurm": "SLURM",
    "pbs": "PBS",
    "lsf": "LSF",
    "htcondor": "HTCondor",
    "sge": "SGE",
    "oar": "OAR",
}
"""Tables in a fleet's file that say how `ktrial fleet up` submits workers → their names in dask-jobqueue."""
_LOCAL = re.compile(r"local:(\d{1,3})")
_PLACE = re.compile(r"(?:tcp|tls)://[^\s/]+:(\d{1,9})")
_LAST_PORT = 65535
_MOST_LOCAL = 256


class _Table(Model):
    """A fleet's file, or the table [fleet] of the configuration."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-")
    )

    address: str
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    check_share: float = Field(default=SHARE, ge=0, le=1)
    patience: float = Field(default=60.0, gt=0)
    files: str = ""


@dataclass(frozen=True)
class FleetSettings:
    """One fleet."""

    address: str
    """`local:N`, or where its scheduler listens: `tcp://127.0.0.1:8786`, `tls://…`."""
    tls: tuple[Path, Path, Path] | None = None
    """Files: the authority's certificate, the own certificate, its key."""
    insecure: bool = False
    """Traffic in the clear may leave this system."""
    share: float = SHARE
    """Of trials that are run twice, on different workers."""
    patience: float = 60.0
    """Seconds that a fleet without workers, or without its scheduler, is waited for."""
    files: str = ""
    """The fleet's store of files: a directory's path or a URL of fsspec's; empty: a directory
    of the client's cache, which workers of the same system see."""
    asked: bool = True
    """On the command line, or by a program; not by the configuration or the environment."""

    @property
    def local_workers(self) -> int:
        """How many workers of this system are meant; 0: another fleet."""
        match = _LOCAL.fullmatch(self.address)
        return int(match[1]) if match else 0

    def check(self) -> None:
        """Raise FleetInClear where traffic would leave this system in the clear."""
        clear = self.address.startswith("tcp://") and not _is_here(self.address)
        if clear and not self.insecure:
            raise FleetUsageError(
                f"Fleet {self.address}: its traffic is not encrypted, and leaves this system.",
                hint=(
                    "give certificates (tls-ca, tls-cert and tls-key in the fleet's file, and tls:// in "
                    "its address); or where the network is trusted insecure = true in the file (--insecure "
                    "of ktrial fleet): who reaches the scheduler runs programs on all workers"
                ),
            )


def asked_for(named: str | None) -> FleetSettings | None:
    """The fleet that the command line names (`named`), else the environment, else the configuration.

    None: none of them does. Raises BadFleet, FleetInClear.
    """
    if named is not None and named.strip():
        return None if named.strip() == NONE else fleet(named.strip())
    if by_variable := os.environ.get(VARIABLE, "").strip():
        return None if by_variable == NONE else replace(_by_variable(by_variable), asked=False)
    table = _configured()
    return replace(_of_table(table, *_place()), asked=False) if table else None


def _by_variable(text: str) -> FleetSettings:
    try:
        return fleet(text)
    except BadFleet as error:
        raise type(error)(**error.facts | {"address": f"{VARIABLE}={error.facts['address']}"}) from None


def fleet(text: str, *, insecure: bool = False) -> FleetSettings:
    """The fleet of this address, or of this file. Raises BadFleet, FleetInClear."""
    path = Path(text)
    if path.suffix == ".toml" or path.is_file():
        settings = _of_table(_read(path, text), path.parent, text)
    else:
        settings = FleetSettings(_checked(text))
    settings = replace(settings, insecure=settings.insecure or insecure)
    settings.check()
    return settings


def _checked(address: str) -> str:
    match = _LOCAL.fullmatch(address)
    if match and not 1 <= int(match[1]) <= _MOST_LOCAL:
        raise BadFleet(address=address, problem=f"of this system there are 1 to {_MOST_LOCAL} workers")
    place = _PLACE.fullmatch(address)
    if not (match or place):
        problem = "it is neither an address nor a file that is there"
        if _PLACE.fullmatch(f"tcp://{address}"):
            problem = f"an address begins with how it is reached: tcp://{address} or tls://{address}"
        raise BadFleet(address=address, problem=problem)
    if place and not 0 < int(place[1]) <= _LAST_PORT:
        raise BadFleet(address=address, problem=f"a port is a number from 1 to {_LAST_PORT}")
    return address


def _read(path: Path, text: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else f"it is no TOML: {error}"
        raise BadFleetFile(address=text, problem=problem) from None
    inside = document.get("fleet", document)
    return inside if isinstance(inside, dict) else document


def _mistake(error: ValidationError) -> str:
    """The first one, in words."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = sorted(str(one.alias or name) for name, one in _Table.model_fields.items())
        return f"{where} is no key of it; its keys are {', '.join(known)}"
    said = first["msg"].replace("Input should be", "it should be")
    return f"{where}: {'it is missing' if first['type'] == 'missing' else said}"


def _of_table(table: Mapping[str, Any], directory: Path, text: str) -> FleetSettings:
    try:
        read = _Table.model_validate({key: table[key] for key in table if key not in BATCH_SYSTEMS})
    except ValidationError as error:
        raise BadFleetFile(address=text, problem=_mistake(error)) from None
    given = [part for part in (read.tls_ca, read.tls_cert, read.tls_key) if part]
    if len(given) not in {0, 3}:
        raise BadFleetFile(address=text, problem="tls-ca, tls-cert and tls-key belong together")
    if read.address.startswith("tls://") and not given:
        raise BadFleetFile(address=text, problem="an address with tls:// needs tls-ca, tls-cert and tls-key")
    ca, cert, key = (directory / part for part in given) if given else (None, None, None)
    settings = FleetSettings(
        _checked(read.address),
        tls=(ca, cert, key) if ca and cert and key else None,
        insecure=read.insecure,
        share=read.check_share,
        patience=read.patience,
        files=checked(read.files) if read.files else "",
    )
    settings.check()
    return settings


def _place() -> tuple[Path, str]:
    import platformdirs

    directory = Path(platformdirs.user_config_dir("ktrial"))
    return directory, str(directory / "config.toml")


def _configured() -> dict[str, Any] | None:
    _, name = _place()
    if not Path(name).is_file():
        return None
    try:
        table = tomllib.loads(Path(name).read_text(encoding="utf-8")).get("fleet")
    except (OSError, ValueError) as error:
        raise BadFleetFile(address=name, problem=f"it cannot be read: {error}") from None
    return table if isinstance(table, dict) else None


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
