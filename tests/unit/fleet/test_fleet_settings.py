"""What names a fleet, where it is looked for, and what is refused."""

from pathlib import Path

import pytest

from ktrial.fleet.connection import security_of
from ktrial.fleet.errors import BadFleet, FleetUsageError
from ktrial.fleet.settings import VARIABLE, asked_for, fleet


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "ktrial").mkdir()
    return tmp_path / "ktrial" / "config.toml"


def test_the_command_line_goes_before_the_environment_and_that_before_the_configuration(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked_for(None) is None
    configuration.write_text('[fleet]\naddress = "tcp://127.0.0.1:1001"\n')
    configured = asked_for(None)
    assert configured
    assert (configured.address, configured.asked) == ("tcp://127.0.0.1:1001", False)
    monkeypatch.setenv(VARIABLE, "tcp://127.0.0.1:1002")
    by_variable = asked_for(None)
    assert by_variable
    assert (by_variable.address, by_variable.asked) == ("tcp://127.0.0.1:1002", False)
    named = asked_for("local:3")
    assert named
    assert (named.local_workers, named.asked) == (3, True)
    assert asked_for("none") is None


@pytest.mark.parametrize(
    "text", ["local:0", "local:1000", "somewhere", "http://127.0.0.1:80", "tcp://host", ""]
)
def test_what_names_no_fleet_is_refused(text: str) -> None:
    with pytest.raises(BadFleet):
        fleet(text)


def test_what_is_nearly_an_address_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadFleet, match="begins with how it is reached: tcp://lab1:8786 or tls://lab1:8786"):
        fleet("lab1:8786")
    for port in ("0", "65536"):
        with pytest.raises(BadFleet, match="a number from 1 to 65535"):
            fleet(f"tcp://127.0.0.1:{port}")
    monkeypatch.setenv(VARIABLE, "lab1")
    with pytest.raises(BadFleet, match="'KTRIAL_FLEET=lab1'"):
        asked_for(None)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://0.0.0.0:8786",
        "tcp://10.0.0.1:8786",
        "tcp://[2001:db8::1]:8786",
        "tcp://lab1.example.org:8786",
        "tcp://127.0.0.1.example.org:8786",
        "tcp://localhost.example.org:8786",
        "tcp://127.0.0.1@10.1.2.3:8786",
        "tcp://localhost:1@10.1.2.3:8786",
    ],
)
def test_traffic_in_the_clear_does_not_leave_this_system_unless_it_may(address: str) -> None:
    with pytest.raises(FleetUsageError, match="its traffic is not encrypted, and leaves"):
        fleet(address)
    assert fleet(address, insecure=True).address == address


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786"])
def test_within_this_system_it_may_be_in_the_clear(address: str) -> None:
    assert fleet(address).address == address


def test_a_file_says_where_certificates_are_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(
        'address = "tls://lab1:8786"\ntls-ca = "ca.pem"\ntls-cert = "me.pem"\ntls-key = "me.key"\n'
        "check-share = 0.1\npatience = 5\n"
    )
    read = fleet(str(file))
    assert (read.tls_ca, read.tls_cert, read.tls_key) == (
        tmp_path / "ca.pem",
        tmp_path / "me.pem",
        tmp_path / "me.key",
    )
    assert (read.check_share, read.patience) == (0.1, 5)


def test_an_encrypted_address_without_certificates_is_refused_before_anything_connects() -> None:
    with pytest.raises(FleetUsageError, match="its traffic is not encrypted, and leaves"):
        security_of(fleet("tls://127.0.0.1:9"))


def test_a_certificate_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text('address = "tls://lab1:1"\ntls-ca = "ca.pem"\ntls-cert = "me.pem"\ntls-key = "me.key"\n')
    with pytest.raises(FleetUsageError, match=str(tmp_path / "ca.pem")):
        security_of(fleet(str(file)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('address = "tls://lab1:8786"', "needs tls-ca"),
        ('address = "tcp://127.0.0.1:1"\ntls-ca = "ca.pem"', "belong together"),
        ("check-share = 0.5", "address: it is missing"),
        (
            'address = "tcp://127.0.0.1:1"\nfoo = 1',
            "foo is not a key of it; its keys are address, check-share",
        ),
        ('address = "tcp://127.0.0.1:1"\ncheck-share = 2', "check-share"),
        ("address = ", "not TOML"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_what_it_is(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text(text)
    with pytest.raises(BadFleet, match=said):
        fleet(str(file))
