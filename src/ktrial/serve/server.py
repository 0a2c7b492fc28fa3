"""Listens at an address until it is told to stop."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

from ktrial.serve.errors import AddressNotHad, BadAddress

_SECONDS_TO_END = 3
"""How long requests may still take at the end."""


class Server:
    """A server in a thread of its own: signals are the main thread's."""

    def __init__(self, application: Any, address: str, port: int, ended: Callable[[], None]) -> None:
        """Listen. `ended` is called when it has stopped, for whatever reason.

        Raises BadAddress, AddressNotHad.
        """
        self._socket = _listening(address, port)
        host, self.port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        config = uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        self._server = uvicorn.Server(config)
        self._ended = ended
        self._thread = threading.Thread(target=self._serve, name="serve")

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what was asked, and end."""
        self._server.should_exit = True
        if self._thread.ident:
            self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended()


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches it. Raises BadAddress."""
    return _address(address).is_loopback


def _address(text: str) -> "ipaddress.IPv4Address | ipaddress.IPv6Address":
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.strip("[]"))
    except ValueError:
        raise BadAddress(address=text, problem="write numbers, 127.0.0.1 or ::1") from None


def _listening(address: str, port: int) -> socket.socket:
    ip = _address(address)
    made = socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((str(ip), port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise AddressNotHad(address=ip, port=port, problem=error.strerror) from error
    return made
