"""Errors about machines that are reached by ssh."""

from ktrial.machines.errors import MachineError


class BadHostName(MachineError):
    """Machine {machine}: {host!r} is no name of a machine; allowed: {allowed}."""

    hint = (
        'in the study file: [machine] kind = "ssh", host = "lab1"; ports and keys belong into ~/.ssh/config'
    )
    exit_code = 2


class NotReached(MachineError):
    """Machine {machine}: {host} cannot be reached: {problem}"""

    hint = (
        "ssh {host} true has to succeed without a question: host key known, key in the agent or without words"
    )


class ConnectionLost(MachineError):
    """Machine {machine}: the connection to {host} was lost: {problem}"""

    hint = "what was set there is put back by {host} itself; the same command again goes on where this ended"


class MachineInUse(MachineError):
    """Machine {machine}: {host} is in use by another ktrial{who}: one trial at a time runs on a machine."""

    hint = "try again when it has ended, or --wait 2h; ssh {host} ps -ef | grep ktrial shows whose it is"


class UnlikeSystem(MachineError):
    """Machine {machine}: {host} is {system} on {architecture}, where ktrial has no {what}."""

    hint = "commands, with their wall time, are what it measures on systems other than Linux on x86_64"
    exit_code = 2


class BadOwnCommand(MachineError):
    """{file} cannot be used: {problem}."""

    hint = 'for example: [machines.lab1] power = "ipmitool -H bmc1 power"'
    exit_code = 2


class CannotBoot(MachineError):
    """Machine {machine}: {host} cannot be booted into other kernels: {problem}."""

    hint = "nothing was changed there; ktrial help ssh says what it needs"
    exit_code = 2


class ReleaseTaken(MachineError):
    """Machine {machine}: {host} has a kernel {release} of its own, whose modules lie where those of {kernel}
    would have to.
    """

    hint = 'nothing of it is overwritten: if that kernel is meant, its level is "running"'
    exit_code = 2


class KernelNotPlaced(MachineError):
    """Machine {machine}: {kernel} cannot be got ready on {host}: {problem}."""


class MachineStuck(MachineError):
    """Machine {machine}: {host} has not answered for {seconds:g} s: somebody has to press its button."""

    hint = (
        "whatever starts it, its own kernel comes up; then the same command goes on. With a command for its "
        'power ktrial does that itself: [machines.NAME] power = "…" in ~/.config/ktrial/config.toml'
    )


class SudoAsks(MachineError):
    """Machine {machine}: sudo does not make you root on {host}: {problem}"""

    hint = (
        "a line for visudo there: NAME ALL=(root) NOPASSWD: /bin/sh; or log in as root, and take sudo = true"
        " out of ktrial's configuration"
    )
