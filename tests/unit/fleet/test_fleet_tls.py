"""Traffic that is encrypted: who has no certificate of the fleet's authority takes no part."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.fleet_processes import FleetProcesses, fleet_processes
from tests.support.fleets import a_fleet, numbers, run_here, run_on, study_of, with_all_there

from ktrial.fleet.errors import FleetOutOfReach
from ktrial.store.store import Store


@dataclass(frozen=True)
class Certificates:
    """Of one authority."""

    ca: Path
    cert: Path
    key: Path

    def file(self, directory: Path, address: str) -> Path:
        """A fleet's file with them."""
        path = directory / f"{self.ca.parent.name}.toml"
        path.write_text(
            f'address = "{address}"\ntls-ca = "{self.ca}"\ntls-cert = "{self.cert}"\ntls-key = "{self.key}"\n'
            "patience = 8\n"
        )
        return path


def certificates(directory: Path) -> Certificates:
    """A new authority, and one certificate of it."""
    directory.mkdir()
    made = Certificates(directory / "ca.pem", directory / "me.pem", directory / "me.key")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    key, request = directory / "ca.key", directory / "me.csr"
    for command in (
        [*new, "-days", "2", "-subj", "/CN=authority", "-keyout", str(key), "-out", str(made.ca)],
        [*new[:2], *new[3:], "-subj", "/CN=worker", "-keyout", str(made.key), "-out", str(request)],
        [
            *("openssl", "x509", "-req", "-days", "2", "-in", str(request), "-CA", str(made.ca)),
            *("-CAkey", str(key), "-CAcreateserial", "-out", str(made.cert)),
        ],
    ):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return made


@pytest.fixture
def own(tmp_path: Path) -> Certificates:
    return certificates(tmp_path / "own")


@pytest.fixture
def processes(place: Path, own: Certificates) -> Iterator[FleetProcesses]:
    with fleet_processes(place, tls=(own.ca, own.cert, own.key)) as started:
        yield started


@pytest.mark.nightly
def test_a_study_is_the_same_over_an_encrypted_fleet_and_strangers_take_no_part(
    processes: FleetProcesses, own: Certificates, store: Store, other: Store, place: Path
) -> None:
    file = own.file(place, processes.address)
    processes.start_worker(1, fleet=str(file))
    with a_fleet(str(file), patience=60) as fleet:
        record = run_on(with_all_there(fleet, 1), study_of(3), store)
    assert numbers(record) == numbers(run_here(study_of(3), other))
    assert {one.provenance.worker for one in record.trials} == {"worker-1"}

    stranger = certificates(place / "stranger").file(place, processes.address)
    refused = pytest.raises(FleetOutOfReach, match=r"(?i)certificate")
    with a_fleet(str(stranger), patience=3) as fleet, refused:
        run_on(fleet, study_of(3, "stranger"), store)
    in_clear = processes.address.replace("tls://", "tcp://")
    with a_fleet(in_clear, patience=3) as fleet, pytest.raises(FleetOutOfReach):
        run_on(fleet, study_of(3, "in-clear"), store)
