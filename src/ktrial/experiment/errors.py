"""Errors about running a study."""

from ktrial.kernels.errors import KernelError


class FactorLost(KernelError):
    """The factor {factor} is lost: no kernel with another level than the baseline's can be had. {problem}"""

    hint = "{advice}leave out the factor {factor}, and the rest can be measured"
