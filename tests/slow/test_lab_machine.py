"""The kernel as a factor on a lab machine: Debian in QEMU with sshd and kexec-tools.

Some 30 CPU-seconds a boot: the study boots about 30 times (1,000 CPU-seconds; 40 minutes, most of which
wait for hung kernels), each of the others a few times.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.support import lab_machine
from tests.support.lab_machine import LabMachine

from ktrial.cli.running.study import SOME_TRIALS_FAILED
from ktrial.errors import KtrialError
from ktrial.experiment.host_settings import RemoteSettings
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome, Trial
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult, Write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(4 * 3600),
    pytest.mark.skipif(bool(lab_machine.can_run()), reason=lab_machine.can_run() or "none"),
]
BLOCKS = 5
KNOB = "/proc/sys/vm/swappiness"
LEFT = "/var/lib/ktrial /tmp/ktrial.* /etc/systemd/system/ktrial*"
OWN = f"grep -c ktrial /proc/cmdline; cat {KNOB}; ls -d {LEFT} 2>/dev/null"
"""Prints `0` and 60 alone where the machine is as it was."""
STUDY = f"""design = "one-factor-at-a-time"
[machine]
kind = "ssh"
host = "lab1"
boot_seconds = 240
settle_seconds = 1
[timed]
blocks = {BLOCKS}
stopping = "fixed"
[factors.kernel]
levels = ["running", "debian:6.12"]
[factors."vm.swappiness"]
levels = [60, 10]
"""
BAD = '[factors.init]\nkind = "boot"\nlevels = ["", "/bin/true", "/bin/cat"]\n'
"""The first ends, so that the kernel panics; the second waits for its console for ever."""
WORKLOAD = """[[workloads]]
name = "mine"
command = ["/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab_machine.build(tmp_path_factory.mktemp("image"))


@pytest.fixture
def lab(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabMachine]:
    machine = LabMachine(image, tmp_path / "lab")
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(machine.config))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    machine.start()
    try:
        assert machine.wait(OWN, "0\n60") == "0\n60"
        yield machine
    finally:
        machine.cut()


@contextmanager
def a_switch(lab: LabMachine, directory: Path) -> Iterator[Path]:
    """The user's own commands; yields what the power was asked for."""
    asked, script, over = directory / "asked", directory / "power", threading.Event()
    script.write_text(f'#!/bin/sh\necho "$1" >>{asked}.new && mv {asked}.new {asked}\n')
    script.chmod(0o755)
    config = directory / "config/ktrial/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[machines.lab1]\npower = "{script}"\nconsole = "tail -n 0 -F {lab.console}"\n')
    log = directory / "log"

    def cycle() -> None:
        while not over.wait(0.5):
            if asked.exists():
                log.write_text(f"{log.read_text() if log.exists() else ''}{asked.read_text()}")
                asked.unlink()
                lab.cut()
                lab.start()

    watching = threading.Thread(target=cycle)
    watching.start()
    try:
        yield log
    finally:
        over.set()
        watching.join()


def started(directory: Path, text: str) -> "subprocess.Popen[bytes]":
    study = directory / "lab.toml"
    study.write_text(text)
    command = [
        str(Path(sys.executable).with_name("ktrial")),
        "run",
        str(study),
        "--store",
        str(directory / "store.db"),
    ]
    said = (directory / "said").open("ab")
    return subprocess.Popen([*command, "--allow-host-changes", "--no-html"], stdout=said, stderr=said)


def trials(directory: Path) -> tuple[Trial, ...]:
    with open_store(str(directory / "store.db")) as store:
        return store.trials(store.find("lab").id)


def test_a_study_of_two_kernels_a_knob_a_panic_and_a_hang(lab: LabMachine, tmp_path: Path) -> None:
    with a_switch(lab, tmp_path) as power:
        process = started(tmp_path, STUDY + BAD + WORKLOAD)
        assert process.wait() == SOME_TRIALS_FAILED, (tmp_path / "said").read_text()
        assert lab.wait(OWN, "0\n60") == "0\n60"
    by_treatment: dict[str, list[Trial]] = {}
    for trial in trials(tmp_path):
        by_treatment.setdefault(trial.planned.treatment.label, []).append(trial)
    outcomes = {label: {one.outcome for one in each} for label, each in by_treatment.items()}
    panics = [label for label in outcomes if "/bin/true" in label]
    hangs = [label for label in outcomes if "/bin/cat" in label]
    assert [outcomes.pop(label) for label in panics] == [{Outcome.PANICKED}]
    assert [outcomes.pop(label) for label in hangs] == [{Outcome.HUNG}]
    assert list(outcomes.values()) == [{Outcome.COMPLETED}] * 3
    assert all("Attempted to kill init" in one.console for one in by_treatment[panics[0]])
    assert power.read_text().split() == ["cycle"] * len(by_treatment[hangs[0]])
    good = [one for label in outcomes for one in by_treatment[label]]
    assert len(good) == 3 * BLOCKS
    assert all(one.samples for one in good)
    for one in good:
        wanted = str(one.planned.treatment.levels["kernel"])
        assert ("6.12." in one.provenance.kernel_release) == (wanted == "debian:6.12")
        assert one.settings["kernel release"] == one.provenance.kernel_release
    assert len({one.provenance.command_line for one in good}) == len(good)


def test_a_power_cut_leads_to_its_own_kernel_and_the_study_goes_on(lab: LabMachine, tmp_path: Path) -> None:
    text = STUDY.replace(f"blocks = {BLOCKS}", "blocks = 3") + WORKLOAD
    process = started(tmp_path, text)
    assert lab.wait("grep -c ktrial.boot= /proc/cmdline", "1") == "1"
    lab.cut()
    lab.start()
    assert lab.wait(f"grep -c ktrial.boot= /proc/cmdline; cat {KNOB}", "0\n60") == "0\n60"
    process.wait()
    assert started(tmp_path, text).wait() == 0, (tmp_path / "said").read_text()
    assert lab.wait(OWN, "0\n60") == "0\n60"
    assert sum(one.outcome is Outcome.COMPLETED for one in trials(tmp_path)) >= 8


def test_a_killed_ktrial_s_machine_goes_back_by_itself(lab: LabMachine, tmp_path: Path) -> None:
    process = started(tmp_path, STUDY + WORKLOAD)
    assert lab.wait("grep -c ktrial.boot= /proc/cmdline", "1") == "1"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert lab.wait(OWN, "0\n60") == "0\n60"


def test_thirty_connections_that_are_lost_at_random_instants(lab: LabMachine) -> None:
    drawn = random.Random(int(os.environ.get("KTRIAL_LAB_SEED", "1")))
    made: list[StepResult] = []
    for _ in range(30):
        with closing(SshMachine("lab1")) as machine:
            machine.writer = RemoteSettings(machine)
            machine.prepare(Boot(kernel=HostMachine().kernel()), lambda _what: None)
            lose = threading.Timer(drawn.uniform(0.0, 10.0), lambda: _lose(lab))
            lose.start()
            with contextlib.suppress(KtrialError):
                while lose.is_alive():  # a loss between two trials is none of theirs: the next one reconnects
                    _set_and_run(machine, made)
            lose.join()
        assert lab.wait(OWN, "0\n60", 120.0) == "0\n60"
    assert len(made) >= 15
    assert {each.after for each in made} == {"10"}


def _set_and_run(machine: SshMachine, made: list[StepResult]) -> None:
    run = Run(argv=("sleep", "0.5"), environment={"PATH": "/usr/bin:/bin"})
    with machine.start(Boot(kernel=HostMachine().kernel())) as target:
        made += target.perform((Write(path=KNOB, value="10"),))
        target.perform((run,))


def _lose(lab: LabMachine) -> None:
    """All connections to it break: their processes here are killed."""
    ran = subprocess.run(["pgrep", "-f", f"^ssh -F {lab.config}.* -M "], capture_output=True, check=False)
    for process in ran.stdout.split():
        os.kill(int(process), signal.SIGKILL)
    time.sleep(0.1)
