"""What a connection may take from a server: room among others, and time while nothing is asked or taken."""

import asyncio
import resource
import socket
import struct
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_SHARE_OF_FILES = 2
"""The store's files and what pages are made of need some as well."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""A `struct linger`: close within no seconds, socket(7)."""


@dataclass(frozen=True)
class Limits:
    """How much of the server a client can have."""

    connections: int = 256
    """When there are more, the one that has waited longest without a request gives way. Where all are being
    answered, as browsers are that follow what runs, another one gets 503."""
    seconds: float = 20
    """How long a request may come, a client may think of the next one, and a page may lie here untouched."""
    header_bytes: int = 16 * 1024
    """Of a request's first line and header fields, as long as they are not complete."""

    @property
    def connections_here(self) -> int:
        """At most a share of the files that this process may have open."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        within = files == resource.RLIM_INFINITY or self.connections <= files // _SHARE_OF_FILES
        return self.connections if within else max(1, files // _SHARE_OF_FILES)


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's protocol of a connection, with an end to waiting.

    uvicorn counts connections, and closes those on which an answer is followed by silence. It waits for ever
    for the rest of a request that has begun, and for a client that does not take its answer.
    """

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > limits.connections_here:
                self._make_room()

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        @property
        def is_being_answered(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait(self) -> None:
            """Wait for a request from now on, or for the client to take its answer."""
            if hasattr(self, "_timer"):
                self._timer.cancel()
            self.waiting_since = self.loop.time()
            self._look_later()

        def _look_later(self) -> None:
            self._untaken = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(limits.seconds, self._look)

        def _look(self) -> None:
            untaken = self.transport.get_write_buffer_size()
            takes_nothing = untaken >= self._untaken > 0
            asks_nothing = untaken == self._untaken == 0 and not self.is_being_answered
            if takes_nothing:
                self._drop_what_the_kernel_holds()
            if takes_nothing or asks_nothing:
                self.transport.abort()
            else:
                self._look_later()

        def _drop_what_the_kernel_holds(self) -> None:
            """Megabytes, which it would go on trying to send."""
            connected = self.transport.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)

        def _make_room(self) -> None:
            """Whoever opens many connections and asks nothing keeps nobody else out."""
            waiting = [
                connection
                for connection in self.connections
                if isinstance(connection, Connection)
                and connection is not self
                and not connection.is_being_answered
                and not connection.transport.is_closing()
            ]
            if waiting:
                min(waiting, key=lambda connection: connection.waiting_since).transport.abort()

    return Connection


class WithoutBodies:
    """Refuses requests that bring a body: whatever is asked here fits into a request's first line."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        headers = Headers(scope=scope)
        answering: Any = self._app
        if headers.get("content-length", "0").strip("0") or "transfer-encoding" in headers:
            text = "This server takes no request with a body.\n"
            answering = PlainTextResponse(text, status_code=413, headers={"Connection": "close"})
        await answering(scope, receive, send)
