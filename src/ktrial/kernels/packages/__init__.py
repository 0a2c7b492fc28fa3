"""Packages of distributions. A format is a module here with a function `unpack`, and a line of `_FORMATS`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ktrial.kernels.errors import KernelError
from ktrial.kernels.packages import deb, rpm

_FORMATS: Mapping[str, Callable[[str, Path, Path], None]] = {".deb": deb.unpack, ".rpm": rpm.unpack}


def unpack(name: str, file: Path, root: Path) -> None:
    """Unpack a package of the kernel `name` below `root`.

    Raises UnknownPackageFormat, ToolMissing, ToolFailed, PackageTooLarge.
    """
    unpack_one = _FORMATS.get(file.suffix)
    if unpack_one is None:
        raise KernelError(
            f"{file.name} is a package in a format that ktrial cannot unpack; it knows "
            f"{', '.join(sorted(_FORMATS))}."
        )
    unpack_one(name, file, root)
