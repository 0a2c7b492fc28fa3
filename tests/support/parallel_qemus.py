"""Tests of exact-parallel run where it knows the inside of the QEMU that is installed."""

import pytest

from ktrial.machines.errors import MachineError
from ktrial.machines.exact_parallel import NAME, check_qemu
from ktrial.machines.qemu import program


def _problem() -> str:
    """Why exact-parallel cannot be tried with this QEMU; empty where it can."""
    try:
        check_qemu(program.find(NAME), NAME)
    except MachineError as error:
        return error.message
    return ""


needs_a_known_qemu = pytest.mark.skipif(bool(_problem()), reason=_problem())
