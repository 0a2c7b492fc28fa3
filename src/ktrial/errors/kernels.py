"""Errors about kernels: finding, fetching, reading."""

from ktrial.errors.base import KtrialError


class KernelError(KtrialError):
    """Kernel {name}: {problem}"""


class KernelNotFound(KernelError):
    """There is no kernel {name} in the cache{similar}."""

    hint = "add it: ktrial kernel add {name}"
