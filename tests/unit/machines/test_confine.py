"""`confine` keeps a program to the places that it may write, with Landlock, on this host."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from ktrial.target.confinement import confine_program, words_of

CONFINE = str(confine_program())


def ran(script: str, *writable: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(script, *writable), capture_output=True, text=True, check=False)


def command(script: str, *writable: Path) -> list[str]:
    return [*words_of(CONFINE, map(str, writable)), "sh", "-c", script]


pytestmark = pytest.mark.skipif(ran("true").returncode == 126, reason="this kernel does not use Landlock")


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    directory = tmp_path / "inside"
    directory.mkdir()
    (tmp_path / "precious").write_text("precious\n")
    return directory


@pytest.mark.parametrize(
    "change",
    [
        "echo x > ../precious",
        "echo x >> ../precious",
        "rm ../precious",
        "mv ../precious ../other",
        "mv ../precious here",
        "ln ../precious here",
        "touch ../new",
        "mkdir ../new",
        "mkfifo ../new",
        "ln -s precious ../new",
        "truncate -s 0 ../precious",
    ],
)
def test_outside_nothing_is_written_made_or_removed(change: str, inside: Path, tmp_path: Path) -> None:
    assert ran(f"cd {inside} && {change}", inside).returncode != 0
    assert {path.name for path in tmp_path.rglob("*")} == {"inside", "precious"}
    assert (tmp_path / "precious").read_text() == "precious\n"


def test_inside_all_of_it_works_and_the_rest_can_be_read(inside: Path) -> None:
    script = "cat ../precious > new && mkdir a && mv new a/b && rm -r a && echo fine"
    done = ran(f"cd {inside} && {script}", inside)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_what_is_open_and_what_has_no_name_stays_writable(inside: Path) -> None:
    memory = os.memfd_create("memory")
    with (inside / "opened").open("w") as opened:
        words = command(f"echo one > /proc/self/fd/{memory} && echo two")
        subprocess.run(words, stdout=opened, pass_fds=(memory,), check=True)
    assert os.pread(memory, 10, 0) == b"one\n"
    assert (inside / "opened").read_text() == "two\n"
    os.close(memory)


def test_what_it_starts_is_confined_too(inside: Path, tmp_path: Path) -> None:
    ran(f"setsid sh -c 'sh -c \"touch {tmp_path}/new\"'", inside)
    assert not (tmp_path / "new").exists()


def test_no_port_of_tcp_is_reached_where_the_kernel_knows_how(inside: Path) -> None:
    if landlock_version() < 4:
        pytest.skip("Landlock closes ports since Linux 6.7")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(\"127.0.0.1:{port}\") ? 0 : 1)'"
        assert subprocess.run(["sh", "-c", script], check=False).returncode == 0
        assert ran(script).returncode == 1


def landlock_version() -> int:
    import ctypes

    create_ruleset, version_flag = 444, 1
    return int(ctypes.CDLL(None, use_errno=True).syscall(create_ruleset, None, 0, version_flag))


@pytest.mark.parametrize("words", [(), ("--",), ("--write",), ("--read", "/", "--", "true")])
def test_a_command_that_is_none_runs_nothing(words: tuple[str, ...]) -> None:
    done = subprocess.run([CONFINE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert "usage: confine" in done.stderr


def test_a_program_that_is_not_there_is_told() -> None:
    done = subprocess.run([CONFINE, "--", "/no/such"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "/no/such" in done.stderr
