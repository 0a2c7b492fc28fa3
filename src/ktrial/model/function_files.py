"""What is known of a kernel's functions beside what they did: their names, and where their source is."""

from pydantic import Field

from ktrial.model.base import Model


class FunctionFiles(Model):
    """The functions of one kernel image, without its modules."""

    files: dict[str, str] = Field(default_factory=dict)
    """Function → its source: `mm/memory.c`, or `mm/` where only the directory is known. Functions of which
    nothing is known are left out."""
    functions: frozenset[str] = frozenset()
    """The names of all functions; empty where the kernel's symbols are not known."""
