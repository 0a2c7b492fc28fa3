"""What a declaration says: which block of which page, and how its text is made of measurements."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from docs.measured import blocks
from docs.measured.errors import NumbersError
from docs.measured.measuring import Measuring


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    name: str
    page: str
    """From the checkout's root: `docs/exact-mode.md`."""
    text: Callable[[Measuring], str]
    """Measures, and returns the Markdown between the markers."""
    simulated: bool = False
    """Whether it needs no kernel: then no QEMU and no guest's programs are noted with it."""


@cache
def declared() -> dict[str, Block]:
    """Name → block, of all modules in docs/measured/blocks. Raises NumbersError: a name twice."""
    by_name: dict[str, Block] = {}
    for module in pkgutil.iter_modules(blocks.__path__):
        for block in importlib.import_module(f"{blocks.__name__}.{module.name}").BLOCKS:
            if block.name in by_name:
                raise NumbersError(f"two declarations are called {block.name}")
            by_name[block.name] = block
    return by_name
