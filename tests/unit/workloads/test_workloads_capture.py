"""What a command needs, from running it once: real programs, real files."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from ktrial.model.workload import Command, WorkloadUse
from ktrial.package_names import INSTALL
from ktrial.workloads import capture
from ktrial.workloads.capture import Captured, CaptureOptions, capture_command
from ktrial.workloads.command import WORKLOAD
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.strace import calls, unescaped


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, and an empty home."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def captured(*words: str, **options: object) -> Captured:
    return capture_command(words, Path.cwd(), CaptureOptions(**options))  # type: ignore[arg-type]


def command(taken: Captured) -> Command:
    assert taken.use.command is not None
    return taken.use.command


def told(taken: Captured) -> str:
    return "\n".join(note.text for note in taken.notes)


def in_the_guest(taken: Captured) -> set[str]:
    return {each.guest for each in WORKLOAD.files(taken.use)}


def test_files_that_were_read_are_found_and_those_that_were_not_are_not(place: Path) -> None:
    (place / "read").write_text("x")
    (place / "other").write_text("x")
    taken = captured("cat", "read")
    assert f"{place}/read" in command(taken).files
    assert f"{place}/other" not in in_the_guest(taken)
    assert command(taken).directory == str(place)
    assert not taken.notes


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("find", "/etc/init.d", "-name", "*.conf"), "it lists /etc/init.d: a guest has only what it opened"),
        (("sh", "-c", "echo /usr/*"), "it lists /usr: a guest has only what it opened"),
        (("sh", "-c", "cat /etc/init.d/*"), ""),
        (("/usr/bin/python3", "-I", "-c", "import json"), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_program_that_lists_a_directory_of_the_systems_is_told_that_a_guest_has_less_of_it(
    words: tuple[str, ...], listed: str, place: Path
) -> None:
    shown = told(captured(*words))
    assert (listed in shown) if listed else ("it lists" not in shown)


def test_a_script_brings_its_interpreters_and_the_programs_that_it_runs(place: Path) -> None:
    script = place / "run me"
    script.write_text("#!/usr/bin/env -S bash -e\ncd sub; (exec cat ../data/é.txt) | wc -c\n")
    script.chmod(0o755)
    (place / "sub").mkdir()
    (place / "data").mkdir()
    (place / "data" / "é.txt").write_text("x")
    files = in_the_guest(captured("./run me"))
    programs = {str(Path(shutil.which(name) or "")) for name in ("env", "bash", "cat", "wc")}
    assert {str(script), f"{place}/data/é.txt", f"{place}/sub"} | programs <= files


def test_links_are_links_with_what_they_lead_to(place: Path) -> None:
    (place / "real").mkdir()
    (place / "real" / "data").write_text("x")
    (place / "link").symlink_to("real")
    (place / "file").symlink_to("link/data")
    files = {each.guest: each for each in WORKLOAD.files(captured("cat", "file").use)}
    assert (
        files[f"{place}/file"].host == place / "real" / "data" or files[f"{place}/file"].link == "link/data"
    )
    links = {each.guest: each.link for each in WORKLOAD.files(captured("cat", "file").use) if each.link}
    assert links[f"{place}/file"] == "link/data"
    assert links[f"{place}/link"] == "real"


def test_a_directory_that_was_searched_is_named_once(place: Path) -> None:
    for name in ("tree/a", "tree/below/b", "tree/below/c"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("needle\n")
    taken = captured("grep", "-r", "needle", "tree")
    assert f"{place}/tree" in command(taken).files
    assert not [file for file in command(taken).files if file.startswith(f"{place}/tree/")]


def test_names_that_were_read_are_there_though_the_files_were_not(place: Path) -> None:
    (place / "tree" / "below").mkdir(parents=True)
    (place / "tree" / "a").write_text("x")
    (place / "tree" / "below" / "unseen").write_text("x")
    files = in_the_guest(captured("ls", "tree"))
    assert {f"{place}/tree/a", f"{place}/tree/below"} <= files
    assert f"{place}/tree/below/unseen" not in files


def test_what_it_makes_is_left_out_and_told(place: Path) -> None:
    taken = captured("sh", "-c", "mkdir out; echo x >out/made; echo x >gone; rm gone")
    assert f"{place}/out/made" not in in_the_guest(taken)
    assert f"it made 1 file here ({place}/out/made)".replace(" ", "") in told(taken).replace(
        "\u00a0", ""
    ).replace(" ", "")


def test_a_directory_that_it_makes_reads_and_removes_is_nothing_to_carry(place: Path) -> None:
    taken = captured("sh", "-c", "mkdir -p out/below; echo x >out/below/made; ls -R out; rm -rf out")
    assert not [path for path in in_the_guest(taken) if path.startswith(f"{place}/out")]
    assert not taken.notes


def test_a_file_that_it_changes_is_told(place: Path) -> None:
    (place / "log").write_text("x")
    taken = captured("sh", "-c", "echo y >>log")
    assert f"it changed files that were there: {place}/log" in told(taken)
    assert taken.changed == (f"{place}/log",)


def test_the_environment_is_taken_only_where_it_is_needed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("MINE", "1")
    own = place / "bin"
    own.mkdir()
    (own / "tool").symlink_to(shutil.which("true") or "")
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    assert command(captured("cat", "/etc/passwd")).environment == {}
    taken = captured("sh", "-c", 'test -z "$SECRET_TOKEN" && tool', variables=("MINE",))
    environment = command(taken).environment
    assert environment.keys() == {"PATH", "MINE"}
    assert environment["PATH"].startswith(f"{own}:")
    assert "hunter2" not in taken.model_dump_json()


def test_home_is_taken_where_something_below_it_is_read(place: Path) -> None:
    (place.parent / "home" / ".rc").write_text("x")
    taken = captured("sh", "-c", "cat ~/.rc")
    assert command(taken).environment == {"HOME": str(place.parent / "home")}


def test_keys_are_refused_unless_they_are_asked_for(place: Path) -> None:
    key = place.parent / "home" / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_text("private")
    taken = captured("sh", "-c", "ls ~/.ssh; cat ~/.ssh/id_ed25519")
    assert str(key) not in in_the_guest(taken)
    assert "it reads files that usually hold secrets, which are left out" in told(taken)
    asked = captured("sh", "-c", "cat ~/.ssh/id_ed25519", include=(str(key),))
    assert str(key) in in_the_guest(asked)
    assert "secrets" not in told(asked)


def test_a_log_that_is_being_written_is_left_out_and_told(place: Path) -> None:
    (place / "kept").write_text("x")
    with (place / "output.log").open("w"):
        captured_now = captured("ls", ".")
    assert f"{place}/output.log" not in in_the_guest(captured_now)
    assert f"{place}/kept" in in_the_guest(captured_now)
    assert f"files that ktrial itself writes are left out: {place}/output.log" in told(captured_now)


def test_fifos_sockets_and_devices_are_not_carried(place: Path) -> None:
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        taken = captured("sh", "-c", "ls -l . >/dev/null")
    assert not {f"{place}/pipe", f"{place}/socket"} & in_the_guest(taken)


def test_a_server_that_it_does_not_start_is_told(place: Path) -> None:
    client = "import socket,sys\ns=socket.socket({0})\ns.connect({1})\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = captured("/usr/bin/python3", "-c", client.format("socket.AF_INET", ("127.0.0.1", port)))
    assert f"it talks to a server of this machine (127.0.0.1 port {port})" in told(taken)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(place / "daemon"))
        daemon.listen()
        taken = captured("/usr/bin/python3", "-c", client.format("socket.AF_UNIX", repr("daemon")))
    assert f"it talks to a daemon by the socket {place}/daemon" in told(taken)


def test_a_server_of_its_own_is_none_of_them(place: Path) -> None:
    both = (
        "import os,socket\ns=socket.create_server(('127.0.0.1',0))\n"
        "os.fork() or os._exit(bool(socket.create_connection(s.getsockname()).close()))\nos.wait()\n"
    )
    assert "talks" not in told(captured("/usr/bin/python3", "-c", both))


def test_a_command_that_fails_is_an_error_with_what_it_said(place: Path) -> None:
    with pytest.raises(WorkloadError, match=r"exited with status 2 when it was run here: .*no-such-file"):
        captured("ls", "no-such-file")
    with pytest.raises(WorkloadError, match="no program no-such-program"):
        captured("no-such-program")


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(place: Path) -> None:
    with pytest.raises(WorkloadError, match=r"did not end within 0.5 s"):
        captured("sh", "-c", "sleep 1000.25 & wait", limit=0.5)
    assert "1000.25" not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout


def test_without_strace_it_says_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "bin").mkdir()
    monkeypatch.setenv("PATH", str(place / "bin"))
    with pytest.raises(WorkloadError) as caught:
        captured("/bin/true")
    assert f"{INSTALL} strace" in caught.value.advice


def test_where_tracing_is_forbidden_it_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "strace").write_text("#!/bin/sh\necho 'strace: ptrace: Operation not permitted' >&2; exit 1\n")
    (place / "strace").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    with pytest.raises(
        WorkloadError, match="cannot watch the command here: strace: ptrace: Operation not perm"
    ):
        captured("/bin/true")


def test_what_was_captured_is_kept_for_as_long_as_its_files_stay(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(place.parent / "cache"))
    (place / "data").write_text("x")
    words = ("cat", "data")
    assert capture.find_capture(words, place) is None
    taken = captured(*words)
    capture.keep_capture(words, place, taken)
    assert capture.find_capture(words, place) == taken
    (place / "data").write_text("y")
    assert capture.find_capture(words, place) is None


def test_memory_grows_with_the_files() -> None:
    small = Captured(use=WorkloadUse(name="mine"), notes=(), seconds=1, files=1, size=5 << 20)
    large = small.model_copy(update={"size": 300 << 20})
    assert (small.memory_mib, large.memory_mib) == (512, 1024)


def test_lines_of_strace_are_read_with_every_kind_of_name(tmp_path: Path) -> None:
    file = tmp_path / "t.1"
    file.write_text(
        'openat(AT_FDCWD</a>, "b\\303\\251\\"),\\n", O_RDONLY|O_CLOEXEC) = 3</a/b\\303\\251>\n'
        'connect(3<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path="/s, {x"}, 110) = -1 ENOENT (No file)\n'
        "+++ exited with 0 +++\nexit_group(0)                           = ?\n"
    )
    opened, connected = calls(file)
    assert (opened.name, opened.path_at(1), opened.descriptor_at(0)) == ("openat", 'bé"),\n', "/a")
    assert (opened.result, opened.path) == (3, "/a/bé")
    assert (connected.result, connected.error) == (-1, "ENOENT")
    assert unescaped("\\x41\\t\\\\") == "A\t\\"
