"""A fleet of this system is its user's alone: 127.0.0.1 is everybody's who has an account here."""

import contextlib
import socket
import stat
from pathlib import Path

import pytest

from ktrial.fleet.connection import imported
from ktrial.fleet.settings import fleet as fleet_named


def test_a_client_without_its_certificate_is_not_let_in(address: str) -> None:
    place = fleet_named(address).address
    assert place.startswith("tls://127.0.0.1:")
    host, _, port = place.removeprefix("tls://").partition(":")
    for other in (f"tcp://{host}:{port}", place):
        with pytest.raises((OSError, TimeoutError, TypeError, RuntimeError)):
            imported().Client(other, timeout=1, set_as_default=False)
    with socket.create_connection((host, int(port)), timeout=5) as plain:
        plain.sendall(b"\x01\x00\x00\x00\x00\x00\x00\x00" * 8)
        plain.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert b"distributed" not in plain.recv(1 << 16)


def test_a_certificate_of_one_s_own_is_not_let_in(address: str) -> None:
    own = imported().security.Security.temporary()
    with pytest.raises((OSError, TimeoutError, RuntimeError)):
        imported().Client(fleet_named(address).address, timeout=1, security=own, set_as_default=False)


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
