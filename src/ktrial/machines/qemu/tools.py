"""The programs that every machine of QEMU's runs here, QEMU itself among them."""

import os

from ktrial.machines.errors import MachineToolMissing
from ktrial.machines.qemu import program as qemu
from ktrial.system_tools import Tool, missing_of, packages_of

CPIO = Tool("cpio", "cpio", "packs the guest's first file system")
SETPRIV = Tool("setpriv", "util-linux", "ends QEMU when ktrial ends")
TASKSET = Tool("taskset", "util-linux", "keeps QEMU on the CPUs that the study names")


def qemu_tools(*more: Tool) -> tuple[Tool, ...]:
    """What a machine needs that boots guests; `more`: what this one needs beside."""
    named = os.environ.get(qemu.VARIABLE, "")
    return (Tool(named or qemu.PROGRAM, qemu.PACKAGE, "boots the kernels"), CPIO, SETPRIV, *more)


def check(machine: str, *more: Tool) -> qemu.Qemu:
    """The QEMU that is here. Raises MachineToolMissing, QemuUnusable, QemuTooOld."""
    installed = qemu.find(machine)
    if missing := missing_of(qemu_tools(*more)):
        names = ", ".join(tool.name for tool in missing)
        raise MachineToolMissing(
            machine=machine, program=names, where="in PATH", package=packages_of(missing)
        )
    return installed
