"""The studies that come with ktrial: `studies/`, inside of the package in a wheel, above it in a checkout."""

import tomllib
from pathlib import Path

from ktrial.installation import package_directory


def directory() -> Path:
    """Where they are."""
    package = package_directory()
    in_wheel = package / "studies"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "studies"


def names() -> dict[str, str]:
    """Name → question, by name."""
    files = sorted(directory().glob("*.toml"))
    return {file.stem: tomllib.loads(file.read_text(encoding="utf-8")).get("question", "") for file in files}


def file_of(given: Path) -> Path:
    """The file itself where it is there; else, for a plain name, the study that comes with ktrial."""
    if given.parent != Path() or given.suffix or given.exists():
        return given
    shipped = directory() / f"{given}.toml"
    return shipped if shipped.is_file() else given
