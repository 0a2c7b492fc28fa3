"""Errors about the machines that trials run on."""

from ktrial.errors.base import KtrialError


class MachineError(KtrialError):
    """Machine {machine}: {problem}"""
