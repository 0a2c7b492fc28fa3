"""The agent's steps on real kernels: what they change, what they refuse, what a run leaves behind."""

from pathlib import Path

import pytest
from tests.support.guests import (
    ALL,
    LITTLE_MEMORY_MIB,
    boot_with_programs,
    ending,
    host_program,
    newest_for_each_change,
    perform,
    versions,
)

from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import Boot
from ktrial.target import LoadModule, Mount, Push, Read, Run, Start, StepResult, Stop, Write

pytestmark = pytest.mark.guest

RANDOMIZE = "/proc/sys/kernel/randomize_va_space"
REGIONS = ("[stack]", "[heap]", "libc.so", "[vdso]")
MEMORY_EATER = "a=aaaaaaaaaaaaaaaa; while :; do a=$a$a; done"
MIB = 1 << 20


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


def boot(kernel: str = "debian:6.1", **changes: object) -> Boot:
    """A guest with a shell and a few programs."""
    return boot_with_programs(kernel_registry.add(kernel), **changes)


def shell(script: str, **settings: int) -> Run:
    run = Run(argv=(host_program("sh")[1], "-c", script), environment={"PATH": "/usr/bin:/bin"})
    return run.model_copy(update=settings)


def layout(seed: int) -> Run:
    return Run(argv=(host_program("cat")[1], "/proc/self/maps"), layout_seed=seed)


def regions(result: StepResult) -> dict[str, str]:
    """Where each region of the program begins."""
    assert result.exit == 0, result
    lines = [line.split() for line in reversed(result.stdout.splitlines())]
    return {name: line[0].split("-")[0] for line in lines for name in REGIONS if name in line[-1]}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", newest_for_each_change(*ALL))
def test_a_seed_gives_one_layout_another_seed_another_and_no_seed_the_fixed_one(
    kernel: str, machine: ExactMachine
) -> None:
    with machine.start(boot(kernel)) as target:
        fixed, again = (target.perform((layout(0), Read(path=RANDOMIZE))) for _ in range(2))
        drawn = {seed: target.perform((layout(seed), Read(path=RANDOMIZE))) for seed in (1, 2, 2**64 - 1)}
        repeated = target.perform((layout(2), Read(path=RANDOMIZE)))
    assert regions(fixed[0]) == regions(again[0])
    assert regions(repeated[0]) == regions(drawn[2][0])
    for name in REGIONS:
        places = {regions(results[0])[name] for results in (fixed, *drawn.values())}
        assert len(places) == 4, f"{name}: {places}"
    assert {results[1].content for results in (fixed, *drawn.values())} == {"0\n"}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", versions("debian:5.10", "debian:6.1", "debian:7.2"))
def test_when_memory_runs_out_the_program_is_killed_and_the_steps_go_on(
    kernel: str, machine: ExactMachine
) -> None:
    small = boot(kernel, memory_mib=LITTLE_MEMORY_MIB)
    ended = ending(machine, small, shell(MEMORY_EATER), shell("echo alive"))
    assert ended.outcome == "out-of-memory"
    eaten, after = ended.results
    assert (eaten.signal, eaten.oom_kills, eaten.timed_out) == (9, 1, False)
    assert (after.exit, after.stdout, after.oom_kills) == (0, "alive\n", 0)


def test_a_program_is_killed_at_its_limit_of_guest_time(machine: ExactMachine) -> None:
    spinning, sleeping = perform(
        machine,
        boot(),
        shell("echo begun; while :; do :; done", limit_ns=50_000_000),
        shell("sleep 1000", limit_ns=3_000_000_000),
    )
    assert (spinning.signal, spinning.timed_out, spinning.stdout) == (9, True, "begun\n")
    # The limit goes from the fork, the time from the exec, a millisecond later.
    assert 49_000_000 <= spinning.wall_ns < 60_000_000
    assert (sleeping.signal, sleeping.timed_out) == (9, True)
    assert 3_000_000_000 <= sleeping.wall_ns < 3_010_000_000


def test_nothing_outlives_a_run(machine: ExactMachine) -> None:
    _, setsid = host_program("setsid")
    escaped = shell(f"{setsid} sh -c 'while :; do :; done' & {setsid} sleep 100000 & echo $!")
    count = shell("for f in /proc/[0-9]*/exe; do cat $f >/dev/null 2>&1 && echo $f; done")
    left, alive = perform(machine, boot(), escaped, count)
    assert left.exit == 0
    assert left.wall_ns < 100_000_000
    # The agent, this shell, and the cat that looks.
    assert [line for line in alive.stdout.split() if line != "/proc/1/exe"] == alive.stdout.split()[1:]
    assert len(alive.stdout.split()) == 2


@pytest.mark.nightly
def test_more_orphans_than_there_may_be_programs_are_waited_for_meanwhile(machine: ExactMachine) -> None:
    limit = Write(path="/proc/sys/kernel/threads-max", value="250")
    orphans = shell("i=0; while [ $i -lt 500 ]; do (true & true) ; i=$((i+1)); done; echo all")
    limited, ran = perform(machine, boot(), limit, orphans)
    assert limited.after == "250"
    assert (ran.exit, ran.stdout, ran.stderr) == (0, "all\n", "")


def test_a_start_offset_is_guest_time(machine: ExactMachine) -> None:
    with machine.start(boot()) as target:
        (now,) = target.perform((shell("cat /proc/uptime"),))
        (later,) = target.perform((shell("cat /proc/uptime", start_offset_ns=7_000_000_000),))
    assert float(later.stdout.split()[0]) - float(now.stdout.split()[0]) == pytest.approx(7, abs=0.02)


def test_the_kernels_answers_are_told_by_name(machine: ExactMachine) -> None:
    results = perform(
        machine,
        boot(),
        Write(path="/proc/sys/vm/swappiness", value="banana"),
        Write(path="/proc/sys/vm/no_such_setting", value="1"),
        Write(path="/proc/sys/kernel/ostype", value="1"),
        Mount(fstype="nofs", source="none", path="/mnt"),
        LoadModule(path="/etc/none.ko"),
        Run(argv=("/no/such/program",)),
        Push(path="/proc/no_such_file", base64=""),
    )
    names = [result.failure.name if result.failure else "" for result in results]
    assert names == ["EINVAL", "ENOENT", "EACCES", "ENODEV", "ENOENT", "ENOENT", "ENOENT"]
    assert results[0].before == "60"


def test_output_above_the_limit_is_a_failure_with_its_beginning(machine: ExactMachine) -> None:
    # What a frame says in one byte: of /dev/zero it has to say six for each.
    much = shell(f"yes {'abcdefgh' * 30} | head -c 8400000")
    long, short = perform(machine, boot(), much, shell("head -c 100000 /dev/zero >&2"))
    assert long.failure is not None
    assert "wrote more than 8388608 bytes" in long.failure.text
    assert (long.exit, len(long.stdout)) == (0, 8 * MIB)
    assert (short.failure, len(short.stderr)) == (None, 100_000)


def test_a_mounted_file_system_takes_its_options(machine: ExactMachine) -> None:
    mounted, mounts = perform(
        machine,
        boot(),
        Mount(fstype="tmpfs", source="scratch", path="/deep/mount", options="rw,noatime,size=2m"),
        Read(path="/proc/mounts"),
    )
    assert mounted.failure is None
    assert "scratch /deep/mount tmpfs rw,noatime,size=2048k" in mounts.content


BESIDE = (
    "echo up; echo ready > /tmp/sign; trap ': > /tmp/sign; echo down; exit 3' INT; "
    "while :; do sleep 0.01; done"
)


def started(script: str = BESIDE, limit_ns: int = 5_000_000_000) -> Start:
    argv, environment = shell(script).argv, shell(script).environment
    return Start(
        name="it", argv=argv, environment=environment, path="/tmp/sign", value="ready", limit_ns=limit_ns
    )


def test_what_is_started_outlives_the_runs_and_ends_when_it_is_stopped(machine: ExactMachine) -> None:
    leaves_something = shell("sleep 1000 & (sleep 1000 &) ; cat /tmp/sign")
    others = shell("for each in /proc/[0-9]*/cmdline; do cat $each; echo; done")
    steps = (started(), leaves_something, others, Stop(name="it", path="/tmp/sign"), Stop(name="it"))
    with machine.start(boot()) as target:
        once, again = target.perform(steps), target.perform(steps)
    assert once == again, "to the last digit, the time that a step took as well"
    began, left, seen, stopped, no_more = once
    assert began.failure is None
    assert began.content == "ready"
    assert left.stdout == "ready\n"
    assert "1000" not in seen.stdout
    assert "while" in seen.stdout
    assert (stopped.exit, stopped.stdout, stopped.content, stopped.failure) == (3, "up\ndown\n", "", None)
    assert no_more.failure
    assert no_more.failure.text == "stop it: it was not started"


def test_what_does_not_come_up_or_ends_by_itself_is_a_failure_with_its_words(machine: ExactMachine) -> None:
    steps = (
        started("echo why >&2; exit 4"),
        started("sleep 1000", limit_ns=100_000_000),
        started("echo ready > /tmp/sign; sleep 0.1; echo enough; exit 5"),
        started(),
        shell("sleep 1"),
        Stop(name="it"),
    )
    early, never, soon, second, _, stopped = perform(machine, boot(), *steps)
    assert early.failure
    assert early.failure.text.endswith("/sh: it ended before it was ready")
    assert (early.exit, early.stderr) == (4, "why\n")
    assert never.failure
    assert never.failure.text.endswith("/tmp/sign is not there")
    assert never.timed_out
    assert soon.failure is None
    assert second.failure
    assert second.failure.text.endswith("it is running already")
    assert stopped.failure
    assert stopped.failure.text == "stop it: it had ended already"
    assert (stopped.exit, stopped.stdout) == (5, "enough\n")
