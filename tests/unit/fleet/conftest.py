"""Where workers are told how to behave, two workers that many tests share, and stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleet_processes import FleetProcesses, fleet_processes
from tests.support.fleets import BEHAVIOUR, with_all_there

from ktrial.fleet.fleet import Fleet, LocalWorkers
from ktrial.fleet.settings import fleet as fleet_named
from ktrial.installation import CACHE
from ktrial.store.store import Store, open_store


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers are told how to behave, and log what they do."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(BEHAVIOUR, str(tmp_path))
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "ktrial.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "other.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Two workers, local-0 and local-1: where they log, and the file that names their fleet."""
    directory = tmp_path_factory.mktemp("workshop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BEHAVIOUR, str(directory))
        patch.setenv(CACHE, str(directory / "cache"))
        with LocalWorkers(2) as workers:
            file = directory.with_suffix(".toml")
            files = zip(("ca", "cert", "key"), workers.certificate, strict=True)
            certificate = (f'tls-{part} = "{path}"\n' for part, path in files)
            file.write_text(f'address = "{workers.address}"\n{"".join(certificate)}')
            yield directory, str(file)


@pytest.fixture
def processes(place: Path) -> Iterator[FleetProcesses]:
    """A scheduler of its own, to which workers and clients come that can be killed."""
    with fleet_processes(place) as started:
        yield started


@pytest.fixture
def logs(workshop: tuple[Path, str]) -> Path:
    """Where those two log; they do as they are told by this test only."""
    directory, _ = workshop
    for left in directory.iterdir():
        if left.is_file():
            left.unlink()
    return directory


@pytest.fixture
def address(workshop: tuple[Path, str], logs: Path) -> str:
    """Of those two."""
    return workshop[1]


@pytest.fixture
def fleet(address: str) -> Iterator[Fleet]:
    """Those two, as a client of its own sees them."""
    with Fleet(fleet_named(address)) as fleet:
        yield with_all_there(fleet, 2)
