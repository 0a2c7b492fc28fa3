"""Packages of distributions. A format is a module here with a function `unpack`, and a line of `_FORMATS`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ktrial.kernels.errors import KernelError
from ktrial.kernels.packages import deb, rpm

_FORMATS: Mapping[str, Callable[[Path, Path], None]] = {".deb": deb.unpack, ".rpm": rpm.unpack}


def unpack(file: Path, root: Path) -> None:
    """Unpack a package below `root`. Raises ToolMissing, NoSpace; KernelError."""
    if file.suffix not in _FORMATS:
        raise KernelError(
            f"{file.name} is a package in a format that ktrial cannot unpack; it knows "
            f"{', '.join(sorted(_FORMATS))}."
        )
    _FORMATS[file.suffix](file, root)
