"""The kernel's symbols: from a real System.map, from a vmlinux that kept its table, or as the guest told.

Distributions ship a stub for System.map, and strip vmlinux. There the symbols come from /proc/kallsyms of
the booted kernel (nokaslr), which whoever boots it hands to `save_symbols`; they stay with the kernel.
"""

import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktrial.file_digests import sealed, unsealed
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.disk_space import file_system_errors
from ktrial.kernels.cache.manifest import KALLSYMS, SYSTEM_MAP
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.image.elf import symbols_of
from ktrial.model.kernel import Kernel

_LINE = re.compile(r"^([0-9a-f]{8,16}) (\w) (\S+)(?:\s+\[(\S+)\])?$", re.MULTILINE)
_UNSEALED = re.compile(rb"[0-9a-f]{16} \w ")
_FEWEST_SYMBOLS = 1000
"""Every kernel has tens of thousands; fewer come from a stub or a cut-off text."""


@dataclass(frozen=True)
class Symbol:
    """One symbol."""

    address: int
    kind: str
    """As nm prints it: `T` text, `D` data, `R` read-only…; lower case: local."""
    name: str
    module: str = ""
    """Empty: the kernel image itself."""


@dataclass(frozen=True)
class Symbols:
    """All symbols of a kernel, by address."""

    source: str
    """`kallsyms`, `System.map` or `vmlinux`."""
    all: tuple[Symbol, ...]

    @cached_property
    def _addresses(self) -> list[int]:
        return [symbol.address for symbol in self.all]

    def at(self, address: int) -> Symbol | None:
        """Return the last symbol that starts at or before `address`; None before the first."""
        index = bisect_right(self._addresses, address)
        return self.all[index - 1] if index else None


def symbols(kernel: Kernel) -> Symbols:
    """Return the symbols of `kernel`. Raises SymbolsUnknown where nobody has told them yet."""
    told = kept_kallsyms(kernel) or _kept_without_digest(kernel)
    if told is not None:
        return Symbols(KALLSYMS, parse_symbols(told))
    system_map = kernel.image.parent / SYSTEM_MAP
    if system_map.exists():
        return Symbols(SYSTEM_MAP, parse_symbols(system_map.read_text(encoding="ascii", errors="replace")))
    if kernel.vmlinux is not None:
        entries = sorted(symbols_of(kernel.vmlinux.read_bytes()))
        if len(entries) >= _FEWEST_SYMBOLS:
            return Symbols("vmlinux", tuple(Symbol(*one) for one in entries))
    raise SymbolsUnknown(name=kernel.name)


def save_symbols(kernel: Kernel, text: str) -> Path:
    """Keep what the booted kernel said in /proc/kallsyms. Returns the file.

    Raises ValueError where `text` is no usable table: too short, or with addresses hidden (kptr_restrict).
    """
    parsed = parse_symbols(text)
    if len(parsed) < _FEWEST_SYMBOLS:
        raise ValueError(f"only {len(parsed)} symbols: not the whole of /proc/kallsyms")
    if parsed[-1].address == 0:
        raise ValueError("all addresses are 0: the kernel hides them (kernel.kptr_restrict)")
    path = kernel.image.parent / KALLSYMS
    with file_system_errors(path.parent):
        write_atomically(path, sealed(text.encode()))
    return path


def kept_kallsyms(kernel: Kernel) -> str | None:
    """What `save_symbols` kept for this kernel; None where that is nothing, or damaged, which is told."""
    path = kernel.image.parent / KALLSYMS
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    text = unsealed(data)
    # An older ktrial kept them without a digest: the guest is asked again.
    if text is None and not _UNSEALED.match(data):
        told = f"the symbols of kernel {kernel.name} are damaged ({path}): the guest is asked for them again"
        warnings.warn(told, stacklevel=2)
    return None if text is None else text.decode("ascii", errors="replace")


def _kept_without_digest(kernel: Kernel) -> str | None:
    """What an older ktrial kept, with a warning that nothing can check it; None where it kept nothing."""
    path = kernel.image.parent / KALLSYMS
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    text = data.decode("ascii", errors="replace")
    if not _UNSEALED.match(data) or len(parse_symbols(text)) < _FEWEST_SYMBOLS:
        return None
    told = (
        f"the symbols of kernel {kernel.name} were kept by an older ktrial, without a digest: damage would "
        f"not show ({path}); `ktrial profile --kernel {kernel.name}` asks for them anew"
    )
    warnings.warn(told, stacklevel=2)
    return text


def parse_symbols(text: str) -> tuple[Symbol, ...]:
    """Read lines like `ffffffff81000000 T _text` or `ffffffffc0000000 t init\t[ext4]`, sorted by address."""
    parsed = (Symbol(int(line[1], 16), line[2], line[3], line[4] or "") for line in _LINE.finditer(text))
    return tuple(sorted(parsed, key=lambda symbol: symbol.address))
