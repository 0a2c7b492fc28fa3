"""Errors about series of patches: what is wrong with the file or range that one was to be read from."""

from ktrial.kernels.errors import KernelError


class BadMailbox(KernelError):
    """The mailbox {path} holds no series that can be used: {problem}."""

    hint = "{advice}"
    exit_code = 2


class BadQuiltSeries(KernelError):
    """The quilt series {path} cannot be used: {problem}."""

    hint = "{advice}"
    exit_code = 2


class BadCommitRange(KernelError):
    """The range {text} of {directory} cannot be used: {problem}."""

    hint = "{advice}"
    exit_code = 2
