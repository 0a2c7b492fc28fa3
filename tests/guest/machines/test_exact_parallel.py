"""Several CPUs in parallel virtual time, on real kernels: the same numbers to the last digit."""

import json
import re
import subprocess
from base64 import b64encode
from pathlib import Path

import pytest
from tests.support.guests import boot_of, busy_cores, work
from tests.support.parallel_qemus import needs_a_known_qemu
from tests.support.places import SUPPORT

from ktrial import workloads
from ktrial.analysis.guest_time import TimePart, by_cpu, places
from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.kernels.symbols import parse_symbols
from ktrial.machines import guest_programs
from ktrial.machines.errors import CannotSaveState
from ktrial.machines.exact_parallel import TIME_IS_UP, ParallelMachine
from ktrial.machines.qemu import program, snapshot
from ktrial.machines.qemu.process import QemuProcess
from ktrial.model.design import Perturbation
from ktrial.model.kernel import Kernel
from ktrial.model.parallel import TRANSFER_NS, MemoryModel, Topology
from ktrial.model.profile import Profile
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Push, Read, Run, StepResult, Target
from ktrial.target.errors import GuestEnded

pytestmark = [pytest.mark.guest, needs_a_known_qemu]

CPUS = 4
SPIN_LOCK = "native_queued_spin_lock_slowpath"
HACKBENCH = ("hackbench", "--fds", "4", "--loops", "2", "--passes", "2")
"""Four senders and four receivers: enough for four CPUs, and seconds for a busy host."""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.12")


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ParallelMachine:
    return ParallelMachine(cache=snapshots)


def seeded(seed: int) -> Run:
    return work(*HACKBENCH).model_copy(update={"layout_seed": seed})


def throughput(target: Target, name: str, tasks: int) -> float:
    use = WorkloadUse(name=name, parameters={"tasks": tasks, "operations": 2000, "passes": 1})
    workload = workloads.find(use)
    (program,) = workload.files(use)
    content = b64encode(program.host.read_bytes()).decode()
    steps = workload.steps(use, Mode.EXACT_PARALLEL, Perturbation(number=0))
    results = target.perform((Push(path=program.guest, base64=content, mode=program.mode), *steps))
    samples = workload.samples(use, Mode.EXACT_PARALLEL, results[1:])
    return next(sample.value for sample in samples if sample.metric == "throughput")


def performed(machine: ParallelMachine, kernel: Kernel, *steps: Run) -> list[tuple[StepResult, ...]]:
    with machine.start(boot_of(kernel, cpus=CPUS)) as target:
        return [target.perform((step,)) for step in steps]


@pytest.mark.nightly  # some 43 seconds of CPU time
def test_a_boot_tells_which_code_its_cpus_execute(machine: ParallelMachine, kernel: Kernel) -> None:
    boot = boot_of(kernel, cpus=2)
    first, again = (machine.executed_in_boot(boot) for _ in range(2))
    assert first == again
    with machine.instrumented(boot) as target:
        addresses = {symbol.name: symbol.address for symbol in parse_symbols(target.kallsyms())}
    looked_at = ("start_kernel", "sched_cpu_activate", "panic", "do_coredump")
    assert [addresses[name] in first for name in looked_at] == [True, True, False, False]


@pytest.mark.nightly
def test_two_trials_are_the_same_and_another_seed_is_another_run(
    machine: ParallelMachine, kernel: Kernel
) -> None:
    first, second, other = performed(machine, kernel, seeded(0), seeded(0), seeded(7))
    counts, others = first[0].parallel, other[0].parallel
    assert first == second
    assert counts is not None
    assert counts == second[0].parallel
    assert others is not None
    assert counts.fingerprint != others.fingerprint
    assert all(instructions > 100_000 for instructions in counts.cpus)
    assert json.loads(first[0].stdout)["metrics"][0]["operations"] == counts.operations


@pytest.mark.nightly  # some 20 seconds of CPU time
@pytest.mark.parametrize("cpus", [1, CPUS])
def test_plain_boots_repeat_themselves_and_agree_with_restored_ones(
    cpus: int, kernel: Kernel, machine: ParallelMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that was not restored has run longer: its memory and its clocks are others, a little."""

    def refused(_process: QemuProcess, machine: str) -> bytes:
        raise CannotSaveState(machine=machine, problem="a device is not migratable")

    steps = (work("syscall"), work("pipe"), work("fork", "--operations", "50"))
    boot = boot_of(kernel, cpus=cpus)
    with machine.start(boot) as target:
        restored = target.perform(steps)
    monkeypatch.setattr(snapshot, "save", refused)
    with ParallelMachine(cache=tmp_path).start(boot) as target:
        plain = target.perform(steps)
        assert target.identity.plain_boot_reason == "a device is not migratable"
        assert target.perform(steps) == plain
    for bound, one, other in zip((0.001, 0.001, 0.01), restored, plain, strict=True):
        first, second = (json.loads(result.stdout)["metrics"][0]["mean"] for result in (one, other))
        assert second == pytest.approx(first, rel=bound)


@pytest.mark.nightly  # some 20 seconds of CPU time
def test_counted_by_function_a_trial_is_the_same_and_its_time_adds_up(
    machine: ParallelMachine, kernel: Kernel
) -> None:
    boot = boot_of(kernel, cpus=CPUS)
    with machine.instrumented(boot) as target:
        symbols = KernelSymbols().of(target, boot).text
        (plain,) = target.perform((seeded(0),))
        (counted,) = target.counted((seeded(0),), symbols)
    region, whole = counted.region, counted.parallel
    assert region is not None
    assert region.cpus is not None
    assert plain.parallel is not None
    assert whole is not None
    assert whole.fingerprint == plain.parallel.fingerprint
    assert region.unknown < region.kernel / 1000
    assert region.instructions == pytest.approx(whole.instructions, rel=1e-3)
    switched = next(each for each in region.cpus.functions if each.symbol == "__switch_to_asm")
    assert all(share.entered > 0 for share in switched.cpus)
    profile = Profile(kernel=kernel.name, workload="hackbench", operations=1, region=region)
    for cpu in by_cpu(profile):
        assert cpu.whole == pytest.approx(region.cpus.time_ns, rel=0.02)
    assert any(place.function == SPIN_LOCK for place in places(profile, TimePart.WAITING))
    assert any("schedule" in place.function or place.caller for place in places(profile, TimePart.IDLE))


@pytest.mark.nightly  # some 30 seconds of CPU time
def test_a_shared_counter_scales_only_where_lines_cost_nothing(
    machine: ParallelMachine, kernel: Kernel
) -> None:
    throughputs = {}
    for model in MemoryModel:
        boot = boot_of(kernel, cpus=CPUS).model_copy(update={"memory_model": model})
        with machine.start(boot) as target:
            throughputs[model] = [throughput(target, "counter1", tasks) for tasks in (1, CPUS)]
    speed_ups = {model: all_cpus / one for model, (one, all_cpus) in throughputs.items()}
    assert speed_ups[MemoryModel.NONE] > 0.9 * CPUS
    assert speed_ups[MemoryModel.COHERENCE] < 1
    # Together they add once in a transfer, which is 160 ns an addition of each.
    assert throughputs[MemoryModel.COHERENCE][1] == pytest.approx(1e9 / TRANSFER_NS, rel=0.02)


@pytest.mark.nightly  # some 20 seconds of CPU time
def test_an_unlocked_update_is_lost_only_where_a_block_ends_within_it(
    machine: ParallelMachine, kernel: Kernel, tmp_path: Path
) -> None:
    """What docs/parallel.md says that cannot be seen, under three seeds."""
    program = tmp_path / "counter"
    source = SUPPORT / "unlocked_counter.c"
    subprocess.run(["gcc", "-O2", "-static", "-pthread", "-o", program, source], check=True)
    brought = Push(path="/tmp/counter", base64=b64encode(program.read_bytes()).decode(), mode=0o755)
    counted: dict[str, list[int]] = {}
    with machine.start(boot_of(kernel, cpus=CPUS)) as target:
        for way in ("whole", "block", "split"):
            for seed in (0, 7, 4711):
                _, result = target.perform((brought, Run(argv=("/tmp/counter", way), layout_seed=seed)))
                counted.setdefault(way, []).append(int(result.stdout))
    every = CPUS * 20_000
    assert counted["whole"] == counted["block"] == [every] * 3
    assert all(0 < count < every for count in counted["split"])


def test_a_guest_whose_time_is_up_has_hung(machine: ParallelMachine, kernel: Kernel) -> None:
    boot = boot_of(kernel, cpus=CPUS)
    machine.prepare(boot, lambda _: None)
    boot = boot.model_copy(update={"limit_instructions": 20_000_000})
    said = b64encode(b"<0>BUG: written by a test\n").decode()
    message = Push(path="/dev/kmsg", base64=said, mode=0o600)
    with machine.start(boot) as target, pytest.raises(GuestEnded) as raised:
        target.perform((message, work("hackbench").model_copy(update={"limit_ns": 10**12})))
    assert raised.value.outcome == "hung"
    headline = r"BUG: written by a test, at [\d,]+ ms; then 0\.02 s of guest time went by before .*"
    assert re.fullmatch(headline, raised.value.reason)
    assert TIME_IS_UP == 124


@pytest.mark.parametrize(
    ("arguments", "plugin", "said"),
    [
        (("-accel", "tcg,thread=single"), "quantum=10", "allowed are 25 to 100000"),
        (("-accel", "tcg,thread=multi"), "quantum=1000", "take turns in one thread"),
        (("-accel", "tcg", "-icount", "shift=0"), "quantum=1000", "-icount"),
    ],
)
def test_a_qemu_that_runs_otherwise_is_refused(arguments: tuple[str, ...], plugin: str, said: str) -> None:
    preload = guest_programs.parallel()
    command = [str(program.find().program), "-nodefaults", "-display", "none", "-S", *arguments]
    done = subprocess.run(
        [*command, "-plugin", f"{preload},{plugin}"],
        env={"LD_PRELOAD": str(preload)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "parallel: " in done.stderr
    assert said in done.stderr


@pytest.mark.nightly
def test_a_guest_has_the_nodes_it_was_given(machine: ParallelMachine, kernel: Kernel) -> None:
    topology = Topology(sockets=2, cores=2, nodes_mib=(128, 384))
    directory = "/sys/devices/system/node"
    files = [f"{directory}/node{node}/{file}" for node in (0, 1) for file in ("cpulist", "meminfo")]
    with machine.start(boot_of(kernel, cpus=CPUS, topology=topology)) as target:
        contents = [result.content for result in target.perform(tuple(Read(path=file) for file in files))]
    assert contents[0] == "0-1\n"
    assert contents[2] == "2-3\n"
    first, second = (int(text.split("MemTotal:")[1].split()[0]) >> 10 for text in contents[1::2])
    assert 64 < first < 128 < second < 384


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("parameters", "online", "least", "most"), [((), "0-3\n", 3.9, 4), (("nosmp",), "0\n", 0.9, 1.1)]
)
def test_independent_loops_scale_unless_the_kernel_has_one_cpu(
    machine: ParallelMachine,
    kernel: Kernel,
    parameters: tuple[str, ...],
    online: str,
    least: float,
    most: float,
) -> None:
    with machine.start(boot_of(kernel, cpus=CPUS, parameters=parameters)) as target:
        (listed,) = target.perform((Read(path="/sys/devices/system/cpu/online"),))
        one, all_cpus = (throughput(target, "loop1", tasks) for tasks in (1, CPUS))
    assert listed.content == online
    assert least <= all_cpus / one <= most


@pytest.mark.nightly
def test_twenty_trials_beside_busy_loops_are_one(machine: ParallelMachine, kernel: Kernel) -> None:
    with busy_cores():
        results = performed(machine, kernel, *[seeded(3)] * 20)
    assert all(one == results[0] and one[0].parallel == results[0][0].parallel for one in results)


@pytest.mark.nightly
def test_snapshots_made_apart_give_the_same(machine: ParallelMachine, kernel: Kernel, tmp_path: Path) -> None:
    before = performed(machine, kernel, seeded(0))
    with busy_cores():
        again = performed(ParallelMachine(cache=tmp_path), kernel, seeded(0))
    assert before == again
    assert before[0][0].parallel == again[0][0].parallel
