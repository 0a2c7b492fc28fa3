"""`ktrial run --host lab1,lab2`: one study on several machines at once, each told apart."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from tests.support.command_line import KNOWN, CommandLine, has_names
from tests.support.scripted import wait_until
from tests.support.ssh_systems import HOST, ssh_server
from tests.unit.analysis.test_systems import at

from ktrial.cli.running.study import run_on_each
from ktrial.errors import Interrupted
from ktrial.model.study import Study
from ktrial.store.store import open_store
from ktrial.studyfile.references import resolved

PLAIN = (sys.executable, "-c", "import ktrial_launcher; ktrial_launcher.main()")
STUDY = """perturbations = 2
workloads = ["fork"]
[machine]
kind = "ssh"
host = "lab9"
[factors."vm.swappiness"]
levels = [60, 10]
"""
TIMED = """[machine]
kind = "ssh"
host = "lab1"
[timed]
blocks = 3
stopping = "fixed"
[factors.N]
kind = "environment"
levels = ["2000", "20000"]
[[workloads]]
name = "mine"
command = ["/bin/sh", "-c", "i=0; while [ $i -lt $N ]; do i=$((i+1)); done"]
"""
PLAYED = """echo "$*" >>{words}; echo "connected to $3" >&2
case $3 in lab2) echo "ktrial: error: lab2 does not answer" >&2; exit 1;; esac
echo "the result on $3"
"""
"""In place of ktrial: `run --host HOST …`."""
WAITS = """trap 'kill $!; echo ending >&2; exit 130' INT; sleep 60 & >{words}-$3
case $3 in lab2) until [ -e {words}-lab1 ]; do sleep 0.02; done; kill -INT $PPID;; esac; wait
"""
"""Once both wait, who has started them is told to end."""
HEARS = """>{words}-$3.begun; while read line; do :; done; >{words}-$3.ended"""
"""Until who started it is gone."""
ENDS = """
import os, signal, sys, time
from ktrial.cli.main import end_with_parent

def ended(*_):
    print("who reads this?", file=sys.stderr, flush=True)
    os.write(1, b"given back\\n")  # print may be in the middle of the line below
    sys.exit(0)

signal.signal(signal.SIGTERM, ended)
end_with_parent()
print(f"standard input: {sys.stdin.read()!r}", flush=True)
time.sleep(3600)
"""
KNOB = Path("/proc/sys/vm/stat_interval")
SETS = """[machine]
kind = "ssh"
host = "lab1"
[timed]
blocks = 3
stopping = "fixed"
[factors."vm.stat_interval"]
levels = ["7", "9"]
[[workloads]]
name = "waits"
command = ["/bin/sleep", "3600"]
"""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    line = CommandLine(monkeypatch, capsys)
    has_names(monkeypatch, replace(KNOWN, machines=("exact", "ssh")))
    (tmp_path / "study.toml").write_text(STUDY)
    return line


def stored(directory: Path, *hosts: str) -> tuple[dict[str, Study], str]:
    """The machines' studies, as their runs have stored them, and where."""
    studies, store = {}, str(directory / "results.db")
    with open_store(store) as opened:
        for seed, host in enumerate(hosts, 3):
            record = at(host, 1.3, seed)
            studies[host] = resolved(record.study)
            number = opened.study(studies[host])
            for trial in record.trials:
                opened.add_trial(number, trial)
    return studies, store


def played(directory: Path, script: str) -> Sequence[str]:
    file = directory / "program"
    file.write_text(script.format(words=directory / "words"))
    return ("/bin/sh", str(file))


@pytest.mark.parametrize(
    ("hosts", "problem"),
    [
        ("lab1,-oProxyCommand=x", "'-oProxyCommand=x' is not a name of a machine"),
        ("lab1,root@lab1", "lab1 is named twice"),
        ("lab1,", "'' is not a name of a machine"),
    ],
)
def test_names_that_are_none_are_refused(hosts: str, problem: str, cli: CommandLine, tmp_path: Path) -> None:
    result = cli("run", tmp_path / "study.toml", "--host", hosts)
    assert result.status == 2
    assert problem in result.messages


def test_it_goes_with_the_machine_ssh_and_each_has_its_own_report(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "exact.toml").write_text(
        'workloads = ["fork"]\n[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]'
    )
    result = cli("run", tmp_path / "exact.toml", "--host", "lab1")
    assert (result.status, 'it goes with kind = "ssh"' in result.messages) == (2, True)
    result = cli("run", tmp_path / "study.toml", "--host", "lab1,lab2", "--html", tmp_path / "page.html")
    assert (result.status, "a report of its own" in result.messages) == (2, True)


def test_each_machine_s_run_is_told_what_this_one_was(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: list[Sequence[str]] = []
    monkeypatch.setattr(
        "ktrial.cli.running.study.run_on_each",
        lambda studies, words, **_: result.extend([[*studies], words]),
    )
    study = str(tmp_path / "study.toml")
    given = ("--retry-failed", "--allow-host-changes", "--wait", "2h", "--confirm", "9")
    assert cli("run", study, "--host", "lab1", "--host", "me@lab2", *given).status == 0
    hosts, words = result
    assert hosts == ["lab1", "me@lab2"]
    assert sorted(words) == sorted([*given, "--", study])
    assert words[-2:] == ["--", study]


def test_a_machine_that_fails_is_told_and_the_others_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    studies, store = stored(tmp_path, "lab1", "lab3")
    every = {"lab1": studies["lab1"], "lab2": at("lab2", 1.3, 9).study, "lab3": studies["lab3"]}
    program = played(tmp_path, PLAYED)
    with pytest.raises(typer.Exit) as ended:
        run_on_each(every, ["--", "s.toml"], json=False, store=store, program=program)
    assert ended.value.exit_code == 3
    result = capsys.readouterr()
    assert "lab2: ktrial: error: lab2 does not answer" in result.err.splitlines()
    assert "lab3: connected to lab3" in result.err.splitlines()
    for part in (
        "the result on lab1",
        "lab2: ended with exit code 1",
        "the same on all machines",
        "ssh lab3",
    ):
        assert part in result.out
    words = (tmp_path / "words").read_text().splitlines()
    assert sorted(words) == [f"run --host {host} -- s.toml" for host in every]


def test_as_json_there_is_each_result_and_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    studies, store = stored(tmp_path, "lab1", "lab3")
    program = played(tmp_path, "echo '{{\"study\": \"'$3'\"}}'")
    run_on_each(studies, ["--json", "--", "s.toml"], json=True, store=store, program=program)
    result = json.loads(capsys.readouterr().out)
    assert result["hosts"] == {"lab1": {"study": "lab1"}, "lab3": {"study": "lab3"}}
    assert result["systems"][0]["agreement"] == "same"
    assert result["systems"][0]["over_machines"]["low"] > 1.2


def test_ctrl_c_ends_every_machine_s_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    studies = {host: at(host, 1.3, 1).study for host in ("lab1", "lab2")}
    program = played(tmp_path, WAITS)
    with pytest.raises(Interrupted, match="what is finished is stored"):
        run_on_each(studies, ["--", "s.toml"], json=False, store=str(tmp_path / "db"), program=program)
    result = capfd.readouterr().err
    assert "lab1: ending" in result
    assert "lab2: ending" in result


def test_a_run_that_is_killed_takes_every_machine_s_run_with_it(tmp_path: Path) -> None:
    studies = {host: at(host, 1.3, 1).study for host in ("lab1", "lab2")}
    program = played(tmp_path, HEARS)
    child = os.fork()
    if not child:
        run_on_each(studies, ["--", "s.toml"], json=False, store=str(tmp_path / "db"), program=program)
        os._exit(0)
    began, ended = ([tmp_path / f"words-{host}.{what}" for host in studies] for what in ("begun", "ended"))
    wait_until(lambda: all(file.exists() for file in began))
    assert not any(file.exists() for file in ended)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_until(lambda: all(file.exists() for file in ended))


def test_who_started_it_is_gone_and_it_ends_as_on_sigterm_and_tells_nobody() -> None:
    program = subprocess.Popen([sys.executable, "-c", ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin
    assert program.stdout
    assert program.stdout.readline() == b"standard input: ''\n"
    program.stdin.close()
    assert program.stdout.read() == b"given back\n"
    program.stdout.close()
    assert program.wait() == 0


@pytest.mark.nightly
@pytest.mark.root
def test_what_is_set_on_machines_goes_back_when_the_run_on_all_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text(SETS)
    store, before = tmp_path / "db", KNOB.read_text()
    words = ["run", str(tmp_path / "mine.toml"), "--host", "lab1,lab9", "--store", str(store)]
    with ssh_server(tmp_path) as server:
        monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(server.config))
        parent = subprocess.Popen([*PLAIN, *words, "--allow-host-changes"])
        wait_until(lambda: KNOB.read_text() != before or parent.poll() is not None)
        with open_store(str(store)) as opened:
            (held,) = [row.lease for row in opened.machine_leases() if row.lease.called == HOST]
        parent.kill()
        parent.wait()
        wait_until(lambda: not Path(f"/proc/{held.process}").exists())
        wait_until(lambda: KNOB.read_text() == before)
        with open_store(str(store)) as opened:
            assert opened.machine_leases() == (), "it was given back"


@pytest.mark.nightly
def test_two_servers_and_one_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are this system: a `flock` that locks nothing makes two machines of it."""
    for name in ("bin", "one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin/flock").write_text("#!/bin/sh\n")
    (tmp_path / "bin/flock").chmod(0o755)
    (tmp_path / "mine.toml").write_text(TIMED)
    words = ["run", str(tmp_path / "mine.toml"), "--host", "lab1,lab2,lab9", "--store", str(tmp_path / "db")]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ssh_server(tmp_path / name, tmp_path / "bin")) for name in ("one", "two")
        ]
        texts = [server.config.read_text() for server in servers]
        (tmp_path / "config").write_text(texts[0] + texts[1].replace(HOST, "lab2"))
        monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(tmp_path / "config"))
        process = subprocess.run([*PLAIN, *words], capture_output=True, text=True, check=False)
    assert process.returncode == 3, process.stderr
    assert "lab9: ktrial: error: Machine ssh: lab9" in process.stderr
    assert "over machines like these 2" in process.stdout
    with open_store(str(tmp_path / "db")) as store:
        assert store.names() == {"mine-lab1", "mine-lab2"}
        assert [len(store.trials(row)) for row in (1, 2)] == [6, 6]
