"""Which fleet is meant: `local:N`, an address, a file, or what the user's configuration says."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pydantic
from pydantic import Field, TypeAdapter, ValidationError

from ktrial.file_store import checked
from ktrial.fleet.errors import BadFleet, BadFleetFile, TrafficInClear

VARIABLE = "KTRIAL_FLEET"
NONE = "none"
"""Names no fleet, where the variable or the configuration names one."""
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


@pydantic.dataclasses.dataclass(frozen=True)
class FleetSettings:
    """One fleet: a fleet's file, or the table [fleet] of the configuration, has these keys, with dashes."""

    address: str
    """`local:N`, or where its scheduler listens: `tcp://127.0.0.1:8786`, `tls://…`."""
    tls_ca: Path | None = None
    """The authority's certificate."""
    tls_cert: Path | None = None
    """The own certificate."""
    tls_key: Path | None = None
    insecure: bool = False
    """Traffic in the clear may leave this system."""
    check_share: float = Field(default=0.02, ge=0, le=1)
    """Of trials that are run twice, on different workers."""
    patience: float = Field(default=60.0, gt=0)
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
        """Raise TrafficInClear where traffic would leave this system in the clear."""
        clear = self.address.startswith("tcp://") and not _is_here(self.address)
        if clear and not self.insecure:
            raise TrafficInClear(self.address)


_SETTINGS = TypeAdapter(FleetSettings)
_KEYS = {name.replace("_", "-"): name for name in FleetSettings.__dataclass_fields__ if name != "asked"}


def asked_for(named: str | None) -> FleetSettings | None:
    """The fleet that the command line names (`named`), else the environment, else the configuration.

    None: none of them does. Raises BadFleet, TrafficInClear.
    """
    if named is not None and named.strip():
        return None if named.strip() == NONE else fleet(named.strip())
    if variable := os.environ.get(VARIABLE, "").strip():
        try:
            return None if variable == NONE else replace(fleet(variable), asked=False)
        except BadFleet as error:
            raise type(error)(f"{VARIABLE}={variable}", error.problem) from None
    import platformdirs

    configuration = Path(platformdirs.user_config_dir("ktrial")) / "config.toml"
    if not configuration.is_file():
        return None
    table = read_toml(configuration, str(configuration)).get("fleet")
    if not isinstance(table, dict):
        return None
    return replace(_settings(table, configuration.parent, str(configuration)), asked=False)


def fleet(text: str, *, insecure: bool = False) -> FleetSettings:
    """The fleet of this address, or of this file. Raises BadFleet, TrafficInClear."""
    path = Path(text)
    if path.suffix == ".toml" or path.is_file():
        settings = _settings(table_of(path, text), path.parent, text)
    else:
        settings = FleetSettings(_checked(text))
    settings = replace(settings, insecure=settings.insecure or insecure)
    settings.check()
    return settings


def table_of(path: Path, text: str) -> dict[str, Any]:
    """What a fleet's file says, which is called `text` in errors. Raises BadFleetFile."""
    document = read_toml(path, text)
    inside = document.get("fleet", document)
    return inside if isinstance(inside, dict) else document


def read_toml(path: Path, text: str) -> dict[str, Any]:
    """Raises BadFleetFile."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else f"it is not TOML: {error}"
        raise BadFleetFile(text, str(problem)) from None


def _settings(table: Mapping[str, Any], directory: Path, text: str) -> FleetSettings:
    for key in table:
        if key not in _KEYS and key not in BATCH_SYSTEMS:
            raise BadFleetFile(text, f"{key} is not a key of it; its keys are {', '.join(sorted(_KEYS))}")
    try:
        settings = _SETTINGS.validate_python({_KEYS[key]: table[key] for key in table if key in _KEYS})
    except ValidationError as error:
        first = error.errors()[0]
        where = str(first["loc"][0]).replace("_", "-")
        said = first["msg"].replace("Input should be", "it should be")
        problem = f"{where}: {'it is missing' if first['type'] == 'missing' else said}"
        raise BadFleetFile(text, problem) from None
    tls = {
        name: directory / file
        for name in ("tls_ca", "tls_cert", "tls_key")
        if (file := getattr(settings, name))
    }
    if len(tls) not in {0, 3}:
        raise BadFleetFile(text, "tls-ca, tls-cert and tls-key belong together")
    if settings.address.startswith("tls://") and not tls:
        raise BadFleetFile(text, "an address with tls:// needs tls-ca, tls-cert and tls-key")
    files = checked(settings.files) if settings.files else ""
    settings = replace(settings, address=_checked(settings.address), files=files, **tls)
    settings.check()
    return settings


def _checked(address: str) -> str:
    match = _LOCAL.fullmatch(address)
    if match and not 1 <= int(match[1]) <= _MOST_LOCAL:
        raise BadFleet(address, f"of this system there are 1 to {_MOST_LOCAL} workers")
    place = _PLACE.fullmatch(address)
    if not (match or place):
        problem = "it is neither an address nor an existing file"
        if _PLACE.fullmatch(f"tcp://{address}"):
            problem = f"an address begins with how it is reached: tcp://{address} or tls://{address}"
        raise BadFleet(address, problem)
    if place and not 0 < int(place[1]) <= _LAST_PORT:
        raise BadFleet(address, f"a port is a number from 1 to {_LAST_PORT}")
    return address


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
