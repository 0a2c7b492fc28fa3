"""QEMU's monitor protocol (QMP), over a socket that QEMU inherits.

Not the `qemu.qmp` package: that one is asyncio only, and could not be used from a program (a notebook) whose
event loop runs already. What is needed here is little: commands, their answers, and events in between.
Protocol: https://www.qemu.org/docs/master/interop/qmp-spec.html
"""

import json
import socket
from collections import deque
from typing import Any

from ktrial.machines.errors import QemuGone, QemuRefused

_CHUNK = 65536


class Qmp:
    """One side of a monitor connection."""

    def __init__(self, connection: socket.socket, machine: str) -> None:
        self.events: deque[dict[str, Any]] = deque()
        """Events that came and were not taken yet, oldest first."""
        self._socket = connection
        self._machine = machine
        self._buffer = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._greeted = False

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    def negotiate(self, seconds: float) -> None:
        """Wait for the greeting, and leave the negotiation mode. Nothing waits longer than `seconds` then."""
        self._socket.settimeout(seconds)
        while not self._greeted:
            self.receive("its greeting")
        self.execute("qmp_capabilities")

    def execute(self, command: str, descriptors: tuple[int, ...] = (), **arguments: object) -> Any:
        """Ask, and return the answer. Raises QemuRefused (it is an error) or QemuGone (there is none)."""
        number = self.send(command, descriptors, **arguments)
        while number not in self._answers:
            self.receive(command)
        return self.answer(number, command)

    def send(self, command: str, descriptors: tuple[int, ...] = (), **arguments: object) -> int:
        """Ask without waiting; the number is for `answer`. Raises QemuGone.

        An argument `announce_rounds` is sent as `announce-rounds`: QMP's names have hyphens.
        """
        self._number += 1
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        message = {"execute": command, "arguments": named, "id": self._number}
        data = json.dumps(message).encode() + b"\n"
        try:
            if descriptors:
                socket.send_fds(self._socket, [data], list(descriptors))
            else:
                self._socket.sendall(data)
        except OSError:
            raise QemuGone(machine=self._machine, command=command) from None
        return self._number

    def answered(self, number: int) -> bool:
        """Whether the answer to `number` has come."""
        return number in self._answers

    def answer(self, number: int, command: str) -> Any:
        """Take the answer that has come. Raises QemuRefused where it is an error."""
        message = self._answers.pop(number)
        if "error" in message:
            problem = message["error"].get("desc", "it does not say why")
            raise QemuRefused(machine=self._machine, command=command, problem=problem)
        return message["return"]

    def receive(self, waiting_for: str = "anything") -> None:
        """Take in what has arrived; wait where nothing has. Raises QemuGone at the end of the connection."""
        try:
            data = self._socket.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            raise QemuGone(machine=self._machine, command=waiting_for)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "QMP" in message:
            self._greeted = True
        elif "event" in message:
            self.events.append(message)
        elif "id" in message:
            self._answers[message["id"]] = message
