"""Terminals and systems that are not UTF-8: plain characters are written, and names are what they are."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stored_results import a_store

from ktrial.cli.error_handling import ErrorHandling
from ktrial.cli.plain_characters import write_plainly

PROGRAM = (sys.executable, "-c", "from ktrial.cli.main import main; main()")
TEXT = "fork −14.3 % ≈ −14 … 3 × 2 → 6\u00a0µs ✓ ✗ │─└ “é” ł"


@pytest.mark.parametrize(
    ("encoding", "plain"),
    [
        ("utf-8", TEXT),
        ("latin-1", 'fork -14.3 % ~ -14 ... 3 × 2 -> 6\u00a0µs + x |-` "é" \\u0142'),
        ("ascii", 'fork -14.3 % ~ -14 ... 3 x 2 -> 6 us + x |-` "\\xe9" \\u0142'),
    ],
)
def test_characters_that_an_encoding_lacks_have_plain_forms(encoding: str, plain: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    write_plainly(stream)
    stream.write(TEXT)
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    assert written.getvalue().decode(encoding) == plain


def ktrial(*words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """As a user has it who set these variables of the environment, and none of ktrial's beside them."""
    own = {name: text for name, text in os.environ.items() if not name.startswith(("KTRIAL_", "XDG_", "LC_"))}
    return subprocess.run([*PROGRAM, *words], env=own | variables, capture_output=True, check=False)


def test_json_is_json_in_every_encoding() -> None:
    said = ktrial("run", "--list", "--json", PYTHONIOENCODING="latin-1")
    assert (said.returncode, said.stdout.isascii()) == (0, True)


def test_a_home_with_an_umlaut_is_one_where_python_takes_names_for_ascii(tmp_path: Path) -> None:
    home = tmp_path / "Jürgen"
    variables = {"HOME": str(home), "KTRIAL_STORE": str(a_store(home)), "LC_ALL": "C", "PYTHONUTF8": "0"}
    said = ktrial("show", **variables)
    assert (said.returncode, said.stderr, said.stdout.isascii()) == (0, b"", True)
    said = ktrial("show", "none", **variables)
    assert said.stderr.startswith(f"ktrial: error: Store {tmp_path}/J\\xfcrgen/results.db has no".encode())


def test_a_name_that_is_not_utf8_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with ErrorHandling() as ending:
        "open '/home/h\udcf6/ktrial.db'".encode()
    assert ending.code == 2
    assert capsys.readouterr().err == (
        "ktrial: error: The name /home/h\\udcf6/ktrial.db is not UTF-8: "
        "ktrial can neither store nor show it.\nhint: give it another name\n"
    )
