"""Every command says of a store on a server what it says of the same store in a file."""

import re
from pathlib import Path

import pytest
from sqlalchemy import Connection, select
from tests.support.command_line import STUDY, CommandLine
from tests.support.databases import Server
from tests.support.report_records import FIVE, a_record
from tests.support.scripted import ScriptedMachine
from tests.support.stored_results import a_store

from ktrial.store.copying import copy_study
from ktrial.store.location import shown_uri
from ktrial.store.schema import metadata
from ktrial.store.store import open_store

COMMANDS = (
    "list --all --json",
    "list --all",
    "show",
    "show quick-0 --json",
    "history fork --json",
    "matrix --study quick-0 --csv",
    "matrix recommend --workloads fork,pipe --json",
    "explain counters quick-0 --workload fork",
    "store verify --json",
    "store verify",
    "check baseline list --json",
    "matrix systems quick-0",
    "explain quick-0 --workload fork",
    "report quick-0 --html report.html",
    "report quick-0 --markdown",
    "bundle quick-0 -o quick.zip",
    "site pages",
    "show nosuch",
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, postgresql: Server) -> tuple[str, str]:
    """The same results in a file and on a server."""
    file = a_store(tmp_path_factory.mktemp("stored"), a_record(FIVE[:3], ("fork", "pipe")))
    url = postgresql.database()
    with open_store(file) as source, open_store(url) as target:
        for row in source.studies():
            copy_study(source, target, row.id, keeps_number=True)
    return str(file), url


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_the_same_of_both(
    command: str, both: tuple[str, str], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, url = both
    of_file = cli(*command.split(), "--store", file)
    monkeypatch.setenv("KTRIAL_STORE", url)
    of_server = cli(*command.split())
    assert plain(of_file.output, file) == plain(of_server.output, shown_uri(url))
    # A site tells what it writes, and keeps pages that it has written; verify tells which check was not made.
    if command not in {"site pages", "store verify", "store verify --json"}:
        assert of_file.messages.replace(file, "STORE") == of_server.messages.replace(shown_uri(url), "STORE")
    assert of_server.status == of_file.status
    assert of_file.output or of_file.status, "something was said"


def plain(output: str, store: str) -> str:
    """Without the store's name, and what follows in a bundle from the head of its own log."""
    return re.sub(r"\d+ bytes, not signed; sha256 [0-9a-f]{64}", "BUNDLE", output.replace(store, "STORE"))


def test_a_study_is_run_resumed_and_shown_and_no_password_is_anywhere(
    cli: CommandLine, postgresql: Server, tmp_path: Path
) -> None:
    url = postgresql.database(empty=True).replace("ktrial@", "ktrial:s3cret@")
    (tmp_path / "mine.toml").write_text(STUDY)
    cli.machine(ScriptedMachine())
    result = [cli("run", "mine.toml", "--store", url, "--html", "r.html") for _ in range(2)]
    result += [cli("show", "mine", "--store", url), cli("list", "--store", url, "--json")]
    assert [entry.status for entry in result] == [0] * 4
    with open_store(url) as store:
        assert [entry.finished for entry in store.studies()] == [4]
        everything = [str(row) for row in store.transactions.read(all_rows)]
    pages = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    for text in [*pages, *everything, *(entry.output + entry.messages for entry in result)]:
        assert "s3cret" not in text


def all_rows(connection: Connection) -> list[object]:
    return [row for table in metadata.tables.values() for row in connection.execute(select(table))]
