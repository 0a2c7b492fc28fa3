"""A fleet of this system is its user's alone: 127.0.0.1 is everybody's who has an account here."""

import asyncio
import contextlib
import socket
import stat
from pathlib import Path
from typing import Any

from ktrial.fleet.connection import imported, security_of
from ktrial.fleet.settings import fleet as fleet_named


def lets_in(address: str, security: Any = None) -> bool:
    """Whether a connection of Dask's, with its first words, comes about."""
    distributed = imported()
    security = security or distributed.security.Security()

    async def connected() -> None:
        how = security.get_connection_args("client") | {"require_encryption": False}
        comm = await distributed.comm.connect(address, timeout=2, **how)
        await asyncio.wait_for(comm.close(), 5)

    try:
        asyncio.run(asyncio.wait_for(connected(), 20))
    except Exception:  # noqa: BLE001 - Dask has many, of which some have no text
        return False
    return True


def test_a_client_with_its_certificate_alone_is_let_in(address: str) -> None:
    settings = fleet_named(address)
    assert settings.address.startswith("tls://127.0.0.1:")
    assert lets_in(settings.address, security_of(settings))
    assert not lets_in(settings.address)
    assert not lets_in(settings.address.replace("tls://", "tcp://"))
    assert not lets_in(settings.address, imported().security.Security.temporary())


def test_a_plain_connection_is_told_nothing(address: str) -> None:
    host, _, port = fleet_named(address).address.removeprefix("tls://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as plain:
        plain.sendall(b"\x01\x00\x00\x00\x00\x00\x00\x00" * 8)
        plain.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert b"distributed" not in plain.recv(1 << 16)


def test_other_users_can_read_no_file_of_it_and_its_key_is_in_no_list_of_processes(address: str) -> None:
    settings = fleet_named(address)
    assert settings.tls_key is not None
    assert stat.S_IMODE(settings.tls_key.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.tls_key.stat().st_mode) == 0o600
    secret = settings.tls_key.read_text().splitlines()[3].encode()
    for path in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                assert secret not in (path / name).read_bytes()
            except OSError:
                continue
