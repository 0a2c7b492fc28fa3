"""What runs in a guest is a stranger's: whatever it writes to the agent's port is the guest's failure."""

import os
import re
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.guests import ENDLESS, UPTIME, boot_of, ending, qemu_children
from tests.support.port_writers import endless_marker, mark_forger, port_writer

from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import jail, process, program
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target import StepResult
from ktrial.target.errors import GuestEnded
from ktrial.target.frames import Frame, FrameKind, encode

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


@pytest.fixture
def place_for_all() -> Iterator[Path]:
    """Where another user's QEMU can be started."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place)


def check(ended: GuestEnded, outcome: Outcome, reason: str, done: tuple[str, ...]) -> None:
    assert ended.outcome == outcome.value, ended.message
    assert re.search(reason, ended.reason), ended.reason
    assert tuple(result.do for result in ended.results) == done


def test_a_flood_of_what_is_no_frame_is_ended_at_once(kernel: Kernel, machine: ExactMachine) -> None:
    """Before, a guest could go on like this for as long as it got CPU time."""
    machine.prepare(boot_of(kernel), print)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = ending(machine, boot_of(kernel), UPTIME, *port_writer(b"rubbish", b"more " * 10_000))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(ended, Outcome.WORKLOAD_FAILED, "cannot be read: it begins with b'rubb'", ("read", "push"))
    assert after.ru_utime - before.ru_utime < 20


def test_a_frame_that_announces_more_than_it_may_hold_is_ended_at_once(
    kernel: Kernel, machine: ExactMachine
) -> None:
    announced = b"KTF1" + bytes((FrameKind.LOG,)) + (64 << 20).to_bytes(4, "little")
    ended = ending(machine, boot_of(kernel), *port_writer(announced, b"x" * 50_000))
    check(ended, Outcome.WORKLOAD_FAILED, "67108864 bytes of payload; at most 1048576", ("push",))


def test_a_flood_of_sound_frames_ends_at_the_limit(
    kernel: Kernel, machine: ExactMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "OUTPUT_LIMIT", 4 << 20)
    log = encode(Frame(FrameKind.LOG, b'{"text": "%s"}' % (b"x" * 50_000)))
    ended = ending(machine, boot_of(kernel), *port_writer(b"", log))
    check(ended, Outcome.HUNG, r"the guest wrote more than \d+ MiB", ("push",))


def test_a_guests_qemu_has_few_rights(
    kernel: Kernel, snapshots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, it is another user's, who owns nothing; anybody's is filtered and limited."""
    monkeypatch.setenv("KTRIAL_STORE", "postgresql://me:secret@host/db")
    confined = jail.examined(program.find().program)
    seen: list[tuple[str, str, str]] = []
    briefly = ENDLESS.model_copy(update={"limit_ns": 20_000_000_000})

    machine = ExactMachine(cache=snapshots, keeps=False)
    others = set(qemu_children(os.getpid()))

    def look() -> None:
        while not (children := [pid for pid in qemu_children(os.getpid()) if pid not in others]):
            time.sleep(0.02)
        files = (Path(f"/proc/{children[0]}/{name}") for name in ("status", "limits", "environ"))
        status, limits, environment = (file.read_text() for file in files)
        seen.append((status, limits, environment))
        os.kill(children[0], signal.SIGKILL)

    looking = threading.Thread(target=look)
    with machine.start(boot_of(kernel)) as target:
        looking.start()
        with pytest.raises(GuestEnded, match="SIGKILL"):
            target.perform((briefly,))
    looking.join()
    ((status, limits, environment),) = seen
    user = jail.TENANT if confined.is_tenant else os.getuid()
    assert f"\nUid:\t{user}\t{user}\t{user}\t{user}\n" in status
    assert ("\nNoNewPrivs:\t1\n" in status) == ("--no-new-privs" in confined.before)
    assert "secret" not in environment
    assert "LD_PRELOAD" in environment
    if confined.is_limited:
        assert re.search(rf"Max file size +{process.OUTPUT_LIMIT} ", limits)


def test_what_this_hosts_qemu_refuses_is_left_out_of_its_jail(place_for_all: Path) -> None:
    """A QEMU that was built without a filter of system calls, for the rest this one."""
    refusing = place_for_all / "qemu-system-x86_64"
    refusal = "case \"$*\" in *-sandbox*) echo 'seccomp support is disabled' >&2; exit 1;; esac"
    refusing.write_text(f'#!/bin/sh\n{refusal}\nexec {program.find().program} "$@"\n')
    refusing.chmod(0o755)
    whole, weaker = jail.examined(program.find().program), jail.examined(refusing)
    assert weaker.arguments == ()
    assert (weaker.before, weaker.is_limited) == (whole.before, whole.is_limited)
    assert "all system calls are open to it (seccomp support is disabled)" in weaker.lacks


@pytest.mark.nightly
def test_a_program_cannot_say_that_all_is_done(kernel: Kernel, machine: ExactMachine) -> None:
    done = encode(Frame(FrameKind.DONE, b'{"steps": 3}'))
    ended = ending(machine, boot_of(kernel), *port_writer(done), UPTIME)
    check(ended, Outcome.WORKLOAD_FAILED, "all is done, and has 1 results of 3 steps", ())


@pytest.mark.nightly
def test_a_program_cannot_report_in_the_agents_place(kernel: Kernel, machine: ExactMachine) -> None:
    own = StepResult(step=7, do="read", content="not true").model_dump_json(exclude_defaults=True)
    ended = ending(machine, boot_of(kernel), *port_writer(encode(Frame(FrameKind.RESULT, own.encode()))))
    check(ended, Outcome.WORKLOAD_FAILED, r"result of step 1 \(run\) belongs, there is one of 7 \(read\)", ())


@pytest.mark.nightly
def test_a_program_that_marks_as_the_agent_does_is_the_guests_failure(
    kernel: Kernel, machine: ExactMachine
) -> None:
    with machine.instrumented(boot_of(kernel)) as target, pytest.raises(GuestEnded) as caught:
        target.counted(mark_forger())
    check(caught.value, Outcome.WORKLOAD_FAILED, "1 programs ran, and the plugin counted", ("push", "run"))


@pytest.mark.nightly
def test_counts_without_end_are_the_guests_failure(
    kernel: Kernel, machine: ExactMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "OUTPUT_LIMIT", 1 << 18)
    with machine.instrumented(boot_of(kernel)) as target, pytest.raises(GuestEnded) as caught:
        target.counted(endless_marker())
    check(caught.value, Outcome.HUNG, r"the guest wrote more than \d+ MiB", ())
