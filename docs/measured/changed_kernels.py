"""Kernels whose code differs from a distribution's in a byte: what a line of their source is worth."""

import re
from dataclasses import dataclass
from pathlib import Path

from docs.measured.errors import NotMeasured

from ktrial.kernels import kernel_registry


@dataclass(frozen=True)
class ChangedByte:
    """One byte of a kernel's image."""

    name: str
    """What the changed kernel is called, in a file's name."""
    code: bytes
    """A pattern of the instructions around it, which one place of the image has; the byte is its last."""
    becomes: int


def changed(kernel: str, change: ChangedByte, place: Path) -> str:
    """The name of the kernel with the byte changed, in the cache, with the modules of the unchanged one.

    `place`: where its image is put. Raises NotMeasured where the code is another one, and KernelError.
    """
    plain = kernel_registry.add(kernel)
    if plain.vmlinux is None or plain.modules is None:
        raise NotMeasured(f"{kernel}: it has no ELF image, or no modules: {plain.vmlinux_reason}")
    image = bytearray(plain.vmlinux.read_bytes())
    places = [match.end() - 1 for match in re.finditer(change.code, image, re.DOTALL)]
    if len(places) != 1:
        raise NotMeasured(f"{kernel}: the code for {change.name} is there {len(places)} times, not once")
    image[places[0]] = change.becomes
    path = place / f"vmlinux-{change.name}"
    path.write_bytes(image)
    name = f"path:{path}"
    kernel_registry.add(name, modules=plain.modules, config=plain.config)
    return name
