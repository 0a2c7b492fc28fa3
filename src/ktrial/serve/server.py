"""Listens at an address until it is told to stop."""

import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import uvicorn
from anyio import sleep
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ktrial.errors import KtrialError
from ktrial.report.history import site_environment
from ktrial.report.site.front_page import SHEET, crumbs, notice_page
from ktrial.serve.connections import Limits, WithoutBodies, bounded
from ktrial.serve.content import Content
from ktrial.serve.errors import ServeError, ServeUsageError
from ktrial.serve.live import Live

_SECONDS_TO_END = 3
"""How long requests may still take at the end."""
_WAITING_OUTSIDE = 64
"""Connections that the kernel holds, and that come in at a time."""


class Server:
    """A server in a thread of its own: signals are the main thread's."""

    def __init__(
        self,
        application: Any,
        address: str,
        port: int,
        ended: Callable[[], None],
        limits: Limits | None = None,
    ) -> None:
        """Listen. `ended` is called when it has stopped, for whatever reason. Raises ServeError."""
        limits = limits or Limits()
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
            log_level="error",  # what strangers send is not told in the terminal, which they would fill
            ws="none",
            http=bounded(limits),
            # Among as many connections the one that asks is counted, too.
            limit_concurrency=limits.connections_here + 1,
            h11_max_incomplete_event_size=limits.header_bytes,
            backlog=_WAITING_OUTSIDE,
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
    """Whether only this machine reaches it. Raises ServeUsageError."""
    return _address(address).is_loopback


def _address(text: str) -> "ipaddress.IPv4Address | ipaddress.IPv6Address":
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.strip("[]"))
    except ValueError:
        raise ServeUsageError(
            f"'{text}' is not an address of this machine: write numbers, 127.0.0.1 or ::1.",
            hint=(
                "leave it out, and pages are seen on this machine alone; --address 0.0.0.0 takes all "
                "of its addresses"
            ),
        ) from None


def _listening(address: str, port: int) -> socket.socket:
    ip = _address(address)
    listener = socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(ip), port))
        listener.listen(_WAITING_OUTSIDE)
    except OSError as error:
        listener.close()
        raise ServeError(
            f"Nothing can be served at {ip}, port {port}: {error.strerror}.",
            hint="take another port: ktrial serve --port 8001; with --port 0 any that is free",
        ) from error
    return listener


# What answers requests: pages by their places, and the events of what runs. GET and HEAD, nothing else.
#
# No place is a path in a file system: it is looked up among the pages that the store has.

_TYPES = {
    "html": "text/html",
    "json": "application/json",
    "css": "text/css",
    "atom": "application/atom+xml",
}

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_GLANCE_SECONDS = 0.25
_GLANCES_BETWEEN_SIGNS = 60
"""A connection on which nothing is said is taken for dead by proxies, often after a minute."""
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Served:
    """What is shown, and to whom."""

    content: Content
    live: Live
    names: Collection[str] = ()
    """Names of hosts that requests may be for, beside localhost and addresses."""
    tell_bug: Callable[[Exception], None] = lambda _error: None
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set at the end: events stop."""


def application(served: Served) -> Starlette:
    """The ASGI application."""

    async def page(request: Request) -> Response:
        return await _page(served, request)

    async def events(request: Request) -> Response:
        headers = {**_HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_events(served), media_type="text/event-stream", headers=headers)

    routes = [
        Route("/events", _for_its_names(served, events), methods=["GET"]),
        Route("/{place:path}", _for_its_names(served, page), methods=["GET"]),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(WithoutBodies)], exception_handlers={404: _not_found}
    )


async def _not_found(request: Request, _error: Exception) -> Response:
    return _notice(request, 404, "Not found", "There is no such page in this store.")


def _for_its_names(served: Served, endpoint: Endpoint) -> Endpoint:
    """Refuses requests for other hosts.

    A page of somebody else's whose name suddenly leads to this address (DNS rebinding) would read it all.
    """

    async def checked(request: Request) -> Response:
        host = request.url.hostname or ""
        if is_its_own(host, served.names):
            return await endpoint(request)
        notice = f"This server does not answer for “{host[:100]}”: ktrial serve --name HOST lets it."
        return _notice(request, 421, "Another host", notice)

    return checked


def is_its_own(host: str, names: Collection[str]) -> bool:
    """Whether requests for a host are answered: an address, localhost, this machine's name, a given one."""
    plain = host.strip("[]").rstrip(".").lower()
    if plain in {"localhost", socket.gethostname().lower(), *(name.lower() for name in names)}:
        return True
    try:
        ipaddress.ip_address(plain)
    except ValueError:
        return False
    return True


async def _page(served: Served, request: Request) -> Response:
    place, query = request.path_params["place"] or "index.html", request.query_params
    try:
        text = await run_sync(served.content.text, place, (query.get("from"), query.get("to")))
    except KtrialError as error:
        return _notice(request, 503, "Not now", f"{error.message}. {error.advice}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told here and not to the browser
        served.tell_bug(error)
        return _notice(request, 500, "A bug", "This is a bug in ktrial; who started the server is told more.")
    if text is None:
        raise HTTPException(404)
    return _page_response(request, text, place.rpartition(".")[2])


def _page_response(request: Request, text: str, form: str) -> Response:
    tag = f'"{sha256(text.encode()).hexdigest()[:32]}"'
    headers = {**_HEADERS, "Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(text, media_type=_TYPES[form], headers=headers)


def _notice(request: Request, status: int, title: str, text: str) -> Response:
    up = "../" * (request.scope["path"].count("/") - 1)
    links = tuple((text, place) for text, place in crumbs(up)[:1])
    text = notice_page(title, text, links, f"{up}{SHEET}", "", site_environment())
    return Response(text, status_code=status, media_type="text/html", headers=_HEADERS)


async def _events(served: Served) -> AsyncIterator[str]:
    """What runs, each time that it has changed."""
    last: Any = None
    silent = 0
    while not served.stopping.is_set():
        text = await run_sync(served.live.text)
        silent += 1
        if text != last:
            last, silent = text, 0
            yield f"event: running\ndata: {text}\n\n"
        elif silent >= _GLANCES_BETWEEN_SIGNS:
            silent = 0
            yield ": nothing new\n\n"
        await sleep(_GLANCE_SECONDS)
