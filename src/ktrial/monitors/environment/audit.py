"""Reads the whole environment."""

import importlib
import pkgutil
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ktrial.model.environment import Environment, Reading
from ktrial.monitors.environment.reader import Absent, Reader

_PACKAGE = "ktrial.monitors.environment"


@cache
def readers() -> tuple[Reader, ...]:
    """Every row of every module here, in the modules' order."""
    path = importlib.import_module(_PACKAGE).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{_PACKAGE}.{name}") for name in names]
    return tuple(row for module in modules for row in getattr(module, "READERS", ()))


def audit(root: Path = Path("/"), *, patient: bool = True) -> Environment:
    """Read everything. Raises nothing.

    `patient`: also what takes a third of a second, to see what others do meanwhile. `root` stands for `/`:
    tests give a tree of their own.
    """
    rows = [row for row in readers() if patient or not row.takes_time]
    return Environment(taken=datetime.now(UTC), readings=tuple(_read(row, root) for row in rows))


def _read(row: Reader, root: Path) -> Reading:
    known = Reading(name=row.name, kind=row.kind, places=row.places)
    try:
        found = row.read(root)
    except Absent as error:
        return known.model_copy(update={"absent": str(error)})
    except OSError as error:
        return known.model_copy(update={"absent": _why(error)})
    except (ValueError, LookupError) as error:
        return known.model_copy(update={"absent": f"it has an unknown form here: {error}"})
    return known.model_copy(
        update={
            "value": found.value,
            "number": found.number,
            "concern": found.concern,
            "advice": found.advice,
        }
    )


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "this kernel, or this machine, does not have it"
    if isinstance(error, PermissionError):
        return "only root may read it"
    return str(error.strerror or error)
