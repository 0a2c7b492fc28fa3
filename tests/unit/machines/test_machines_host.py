"""The machine `host`, on this very system: programs are run, and nothing is changed."""

import base64
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.places import ROOT

from ktrial.experiment.host_settings import Journaled
from ktrial.knobs.apply import changing
from ktrial.knobs.journal import Journal
from ktrial.machines import host
from ktrial.machines.errors import CgroupUnusable, HostChangeForbidden, HostUsageProblem, MachineStopped
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot, CgroupLimits
from ktrial.model.workload import Mode
from ktrial.target import Collect, LoadModule, Mount, Push, Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded
from ktrial.target.local import LocalTarget


def boot(**settings: object) -> Boot:
    return Boot.model_validate({"kernel": HostMachine().kernel(), "limit_seconds": 300.0, **settings})


def shell(script: str, **more: object) -> Run:
    return Run.model_validate({"argv": ("/bin/sh", "-c", script), **more})


def perform(*steps: Step, machine: HostMachine | None = None, **settings: object) -> tuple[StepResult, ...]:
    with (machine or HostMachine()).start(boot(**settings)) as target:
        return target.perform(steps)


def ran(script: str, pin: tuple[int, ...] = ()) -> StepResult:
    (result,) = perform(shell(script), pin=pin)
    assert result.failure is None
    return result


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_a_program_is_run_and_all_is_told() -> None:
    result = ran("echo out; echo err >&2; exit 7")
    assert (result.exit, result.signal, result.stdout, result.stderr) == (7, None, "out\n", "err\n")
    assert result.wall_ns > 0
    assert {"utime_ns", "minflt", "nvcsw", "maxrss_kib", "ktrial_ns", "tree_cpu_ns"} <= set(result.rusage)


def test_results_carry_the_numbers_of_their_steps() -> None:
    results = perform(
        shell("exit 1"), Read(path="/proc/sys/kernel/osrelease"), shell("exit 2"), shell("exit 3")
    )
    assert [(result.step, result.do, result.exit) for result in results] == [
        (0, "run", 1),
        (1, "read", None),
        (2, "run", 2),
        (3, "run", 3),
    ]
    assert results[1].content.strip() == os.uname().release


def test_nothing_of_our_environment_reaches_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    (result,) = perform(Run(argv=("/usr/bin/env",), environment={"ONLY": "this"}))
    assert result.stdout == "ONLY=this\n"


def test_a_program_finds_its_directory_no_input_and_no_file_of_ours(tmp_path: Path) -> None:
    script = "pwd; cat; for f in /proc/self/fd/*; do echo ${f##*/}; done"
    (result,) = perform(shell(script, directory=str(tmp_path)))
    first, *open_files = result.stdout.split()
    assert first == str(tmp_path)
    # The shell itself opens the directory to list it.
    assert set(open_files) <= {"0", "1", "2", "3"}


def test_watched_files_tell_what_rose() -> None:
    (result,) = perform(shell("true", watch=("/proc/vmstat", "/no/such/file")))
    assert result.watched["/proc/vmstat"]["pgfault"][0] > 0
    assert "/no/such/file" not in result.watched


def test_the_last_of_a_row_has_the_counters_of_the_whole_row(tmp_path: Path) -> None:
    once = shell("true", watch=("/proc/vmstat",))
    *first, last, alone = perform(*(once,) * 8, shell("true; true", watch=("/proc/vmstat",)))
    assert [entry.watched for entry in first] == [{}] * 7
    # The kernel counts for the whole system, others' faults too: as many as the row's own they are at least.
    own_value = sum(entry.rusage["minflt"] for entry in (*first, last))
    assert last.watched["/proc/vmstat"]["pgfault"][0] >= own_value > 4 * alone.rusage["minflt"]
    assert all(entry.rusage["minflt"] > 0 for entry in (*first, last, alone))


def test_each_run_of_a_row_has_its_own_output_and_its_own_end(tmp_path: Path) -> None:
    """Its standard output is a pipe that nobody else wrote to, or made non-blocking."""
    count = tmp_path / "count"
    script = f"echo x >> {count}; n=$(wc -l < {count}); echo run $n; exit $((n == 3))"
    results = perform(*(shell(script),) * 5)
    assert [(result.step, result.stdout, result.exit) for result in results] == [
        (number, f"run {number + 1}\n", int(number == 2)) for number in range(5)
    ]


def test_a_limit_holds_for_each_run_of_a_row(tmp_path: Path) -> None:
    late = tmp_path / "late"
    script = f"[ -e {late} ] && exit 0; touch {late}; sleep 60"
    first, second = perform(*(shell(script, limit_ns=3_000_000_000),) * 2)
    assert (first.timed_out, first.signal) == (True, 9)
    assert (second.timed_out, second.exit) == (False, 0)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Run(argv=("/no/such/program",)), "run /no/such/program: No such file or directory"),
        (Run(argv=("/etc/passwd",)), "run /etc/passwd: Permission denied"),
        (shell("true", directory="/no/such/directory"), "directory /no/such/directory"),
        (Run(argv=()), "its argv is empty"),
        (Run(argv=("/bin/sh", "a\0b")), "nul byte"),
    ],
    ids=str,
)
def test_what_cannot_be_run_is_a_failure_of_the_step(step: Run, text: str) -> None:
    result, after = perform(step, shell("echo on"))
    assert result.failure
    assert text in result.failure.text
    assert after.stdout == "on\n"


def test_a_programs_own_limit_ends_it_with_all_that_it_started() -> None:
    (result,) = perform(shell("sleep 600 & echo $!; sleep 600", limit_ns=3_000_000_000))
    assert result.timed_out
    assert result.signal == 9
    assert result.wall_ns < 600_000_000_000
    assert not is_alive(result.stdout.strip())


def test_the_boots_limit_is_an_outcome() -> None:
    with pytest.raises(GuestEnded, match=r"0\.3 s went by") as caught:
        perform(shell("echo before"), shell("sleep 60"), limit_seconds=0.3)
    assert caught.value.outcome == "hung"


def test_what_leaves_its_session_does_not_outlive_the_run(tmp_path: Path) -> None:
    message = tmp_path / "told"
    leaves = f"(setsid sh -c 'echo $$ > {message}; sleep 600' &)"
    waits = f"until [ -s {message} ]; do sleep 0.02; done; cat {message}"
    result = ran(f"setsid sleep 600 & echo $!; {leaves}; {waits}")
    left = result.stdout.split()
    assert len(left) == 2
    assert not any(is_alive(pid) for pid in left)


def test_a_long_output_is_kept_and_one_beyond_the_limit_is_cut_and_said_to_be() -> None:
    assert len(ran("head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000
    (result,) = perform(shell("head -c 9000000 /dev/zero"))
    assert result.failure
    assert "wrote more than 8388608 bytes" in result.failure.text
    assert result.exit == 0


@pytest.mark.parametrize("script", [r"printf '\342\200\250 \302\205 \013\014\034\r x'", "gzip -1 -c /bin/sh"])
def test_whatever_bytes_a_program_prints_are_its_output(script: str) -> None:
    result = ran(script)
    assert (result.exit, result.failure) == (0, None)
    assert len(result.stdout) > 8


def test_a_program_keeps_to_its_cpus() -> None:
    cpu = max(os.sched_getaffinity(0))
    assert ran("taskset -pc $$", pin=(cpu,)).stdout.strip().endswith(f": {cpu}")


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(HostUsageProblem, match="CPU 4095 is not among"):
        perform(shell("true"), pin=(4095,))


def test_the_built_in_program_is_found_where_it_is() -> None:
    (result,) = perform(Run(argv=("/ktrial/work", "pipe", "--clock", "monotonic")))
    assert '"clock":"monotonic"' in result.stdout


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (Write(path="/proc/sys/vm/swappiness", value="1"), "write '1' to /proc/sys/vm/swappiness"),
        (Push(path="/tmp/ktrial-pushed", base64=""), "write the file /tmp/ktrial-pushed"),
        (Mount(fstype="tmpfs", source="none", path="/tmp/ktrial-mounted"), "mount something at"),
        (LoadModule(path="/tmp/no.ko"), "load the module"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.do,
)
def test_without_leave_nothing_is_changed(step: Step, what: str, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    with pytest.raises(HostChangeForbidden, match=what) as caught:
        perform(shell(f"touch {proof}"), step)
    assert "--allow-host-changes" in caught.value.advice
    assert not proof.exists(), "steps before it were done"


def test_with_leave_but_without_a_journal_no_setting_is_written() -> None:
    machine = HostMachine(allow_changes=True)
    with pytest.raises(HostChangeForbidden, match="without a journal"):
        perform(Write(path="/proc/sys/vm/swappiness", value="1"), machine=machine)


def test_with_leave_files_are_pushed_and_collected(tmp_path: Path) -> None:
    path, content = tmp_path / "new" / "file", base64.b64encode(b"content").decode()
    pushed, collected = perform(
        Push(path=str(path), base64=content, mode=0o600),
        Collect(path=str(path)),
        machine=HostMachine(allow_changes=True),
    )
    assert (pushed.failure, collected.content) == (None, content)
    assert path.stat().st_mode & 0o777 == 0o600
    bad, absent = perform(
        Push(path=str(path), base64="?"), Collect(path="/no/such"), machine=HostMachine(allow_changes=True)
    )
    assert bad.failure
    assert "base64" in bad.failure.text
    assert absent.failure
    assert absent.failure.errno == 2


def test_settings_go_through_the_journal_and_come_back_after_the_trial(tmp_path: Path) -> None:
    setting = tmp_path / "proc/sys/vm/swappiness"
    setting.parent.mkdir(parents=True)
    setting.write_text("60\n")
    (tmp_path / "proc/sys/kernel").mkdir()
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.12.0\n")
    (tmp_path / "proc/mounts").write_text("")
    journal = Journal(tmp_path / "journal", boot="this")
    machine = HostMachine(allow_changes=True)
    with changing(LocalTarget(tmp_path), "a study", journal=journal) as changes:
        machine.writer = Journaled(changes)
        with machine.start(boot()) as target:
            written, refused = target.perform(
                (
                    Write(path="/proc/sys/vm/swappiness", value="10"),
                    Write(path="/proc/sys/vm/no_such_knob", value="1"),
                )
            )
            assert setting.read_text().strip() == "10"
            assert [(entry.path, entry.old) for entry in journal.entries()[0]] == [
                ("/proc/sys/vm/swappiness", "60")
            ]
        assert setting.read_text().strip() == "60"
    assert (written.before, written.after, written.failure) == ("60", "10", None)
    assert refused.failure


def test_stopping_ends_what_runs() -> None:
    machine = HostMachine()
    threading.Timer(0.5, machine.stop).start()
    start = time.monotonic()
    with pytest.raises(MachineStopped):
        perform(shell("sleep 250"), machine=machine)
    assert time.monotonic() - start < 250
    with pytest.raises(MachineStopped):
        machine.check()


def test_a_ktrial_that_is_killed_takes_its_programs_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    program = (
        "from tests.unit.machines.test_machines_host import perform, shell\n"
        f"perform(shell('echo $$ > {pid_file}; sleep 300'), limit_seconds=300.0)\n"
    )
    root = ROOT
    child = subprocess.Popen([sys.executable, "-c", program], cwd=root)
    wait_until(lambda: pid_file.exists() and bool(pid_file.read_text().strip()))
    child.kill()
    child.wait()
    wait_until(lambda: not is_alive(pid_file.read_text().strip()))


def wait_until(condition: object, seconds: float = 300.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.nightly
def test_ktrial_does_next_to_nothing_while_a_program_runs() -> None:
    """Must-hold 4 of issue 4: its CPU time inside the window is below 0.1 %.

    In a process of its own: in this one other tests may have left threads, which would be counted.
    """
    alone = subprocess.run([sys.executable, "-c", _SHARES], capture_output=True, text=True, check=True)
    shares = [float(word) for word in alone.stdout.split()]
    assert len(shares) == 3
    assert min(shares) < 0.001, shares


_SHARES = """
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot
from ktrial.target import Run

loop = Run(argv=("/bin/sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"))
boot = Boot(kernel=HostMachine().kernel(), limit_seconds=300.0)
for _ in range(3):
    with HostMachine().start(boot) as target:
        (result,) = target.perform((loop,))
    print(result.rusage["ktrial_ns"] / result.wall_ns)
"""


def test_identity_and_kernel_say_what_the_numbers_were_measured_on() -> None:
    machine = HostMachine()
    assert machine.mode is Mode.TIMED
    kernel = machine.kernel()
    assert (kernel.name, kernel.release) == ("running", os.uname().release)
    cpu = min(os.sched_getaffinity(0))
    with machine.start(boot(pin=(cpu,))) as target:
        identity = target.identity
    assert identity.cpu_model
    assert identity.arguments == (f"pin={cpu}",)
    assert len(identity.agent_digest) == 64
    assert identity.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree like cgroup v2's: the root hands on cpu and memory, this process is in /user/session."""
    root = tmp_path / "cgroup"
    own_value = root / "user" / "session"
    own_value.mkdir(parents=True)
    for group, controllers in ((root, "cpu memory io"), (root / "user", "cpu memory"), (own_value, "")):
        (group / "cgroup.subtree_control").write_text(controllers)
        (group / "cgroup.controllers").write_text("cpu io memory")
    mounts, mine = tmp_path / "mountinfo", tmp_path / "own"
    mounts.write_text(f"30 1 0:26 / {root} rw shared:9 - cgroup2 cgroup2 rw\n")
    mine.write_text("0::/user/session\n")
    monkeypatch.setattr(host, "MOUNTS", mounts)
    monkeypatch.setattr(host, "OWN_GROUPS", mine)
    return root


@pytest.mark.parametrize(
    ("limits", "parent", "file", "text"),
    [
        (CgroupLimits(cpus=0.5), "user", "cpu.max", "50000 100000"),
        (CgroupLimits(memory_mib=64), "user", "memory.max", str(64 << 20)),
        (CgroupLimits(io=("8:0 wbps=1048576",)), "", "io.max", "8:0 wbps=1048576"),
    ],
)
def test_limits_are_written_into_a_group_of_the_trials_own(
    groups: Path, limits: CgroupLimits, parent: str, file: str, text: str
) -> None:
    with host.control_group(limits, "host", allowed=True) as result:
        assert Path(result).parent == groups / parent
        assert (Path(result) / file).read_text() == text


def test_controllers_that_nobody_hands_on_are_asked_for(groups: Path) -> None:
    (groups / "cgroup.subtree_control").write_text("cpu")
    (groups / "user" / "cgroup.subtree_control").write_text("cpu")
    limits = CgroupLimits(memory_mib=64)
    with (
        pytest.raises(CgroupUnusable) as caught,
        host.control_group(limits, "host", allowed=True),
    ):
        pass
    assert 'echo "+memory"' in caught.value.advice


def test_without_leave_no_group_is_made(groups: Path) -> None:
    with (
        pytest.raises(HostChangeForbidden, match="make a control group"),
        host.control_group(CgroupLimits(), "host", allowed=False),
    ):
        pass
    assert not list(groups.rglob("ktrial-*"))


def test_groups_of_ktrials_that_are_gone_are_removed(groups: Path) -> None:
    left = groups / "user" / "ktrial-1073741823-abc"
    left.mkdir()
    with host.control_group(CgroupLimits(), "host", allowed=True):
        assert not left.exists()
