"""Knobs are changed, compared and put back; what a kernel makes of a value is told apart."""

import os
import signal
import threading
from pathlib import Path

import pytest
from tests.support.knob_tree import Kernel, Tree, made, refusal

from ktrial.interruption import deferred
from ktrial.knobs.apply import apply, changing
from ktrial.knobs.errors import (
    BadKnob,
    BadKnobName,
    JournalError,
    JournalHeld,
    KnobAbsent,
    KnobError,
    KnobForbidden,
    KnobNeedsInstance,
    KnobNotMounted,
    KnobRefused,
    UnknownKnob,
)
from ktrial.knobs.lookup import find
from ktrial.knobs.restore import RestoreOutcome


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path)


def test_everything_is_put_back_at_the_end(tree: Tree) -> None:
    before = tree.values()
    with tree.changing() as changes:
        changes.apply(("swappiness", "10"), ("queue/read_ahead_kb@*", "256"))
        changes.apply(("transparent_hugepage", "never"), ("vm.swappiness", "0"), exactly=False)
        assert tree.read("proc/sys/vm/swappiness") == "0"
        assert tree.read("sys/devices/vdb/queue/read_ahead_kb") == "256"
        assert len(tree.entries) == 5
    after = tree.values()
    assert after.pop("sys/kernel/mm/transparent_hugepage/enabled") == "madvise"
    assert after.items() <= before.items()
    assert not (tree.root / "journal/changes").exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_the_block_puts_back(tree: Tree, error: type[BaseException]) -> None:
    def change_and_fail() -> None:
        with tree.changing() as changes:
            changes.apply(("swappiness", "10"))
            raise error

    with pytest.raises(error):
        change_and_fail()
    assert tree.read("proc/sys/vm/swappiness") == "60"


def test_what_lasts_stays_and_is_put_back_after_an_error_only(tree: Tree) -> None:
    with tree.changing(lasting=True) as changes:
        changes.apply(("swappiness", "10"))
    assert tree.read("proc/sys/vm/swappiness") == "10"
    kernel = Kernel(tree, dirty_ratio=lambda value: refusal("EINVAL"))
    with pytest.raises(KnobRefused), tree.changing(kernel, lasting=True) as changes:
        changes.apply(("vm.stat_interval", "9"), ("vm.dirty_ratio", "5"))
    assert tree.read("proc/sys/vm/stat_interval") == "1"
    assert tree.read("proc/sys/vm/swappiness") == "10"
    assert [one.ending for one in tree.restore()] == [RestoreOutcome.RESTORED]
    assert tree.read("proc/sys/vm/swappiness") == "60"


def test_nothing_is_written_before_all_names_and_values_are_checked(tree: Tree) -> None:
    before = tree.values()
    with pytest.raises(KnobError), tree.changing() as changes:
        changes.apply(("swappiness", "10"), ("no.such.knob", "1"))
    with pytest.raises(BadKnob), tree.changing() as changes:
        changes.apply(("swappiness", "10"), ("vm.dirty_ratio", "101"))
    assert tree.values() == before


def test_a_block_inside_another_leaves_the_outer_ones_changes(tree: Tree) -> None:
    with tree.changing() as outer:
        outer.apply(("swappiness", "10"))
        with tree.changing() as inner:
            inner.apply(("swappiness", "20"), ("vm.stat_interval", "9"))
        assert tree.read("proc/sys/vm/swappiness") == "10"
    assert (tree.read("proc/sys/vm/swappiness"), tree.read("proc/sys/vm/stat_interval")) == ("60", "1")


def test_the_entry_is_on_disk_before_the_kernel_is_written_to(tree: Tree) -> None:
    seen: list[int] = []

    def look(value: str) -> str:
        seen.append(len(tree.entries))
        return value

    with tree.changing(Kernel(tree, swappiness=look)) as changes:
        changes.apply(("swappiness", "10"))
        changes.apply(("swappiness", "20"))
    assert seen == [1, 2, 2, 1]


def test_a_kernel_that_rounds_is_told_apart_from_one_that_keeps_and_one_that_refuses(tree: Tree) -> None:
    kernel = Kernel(
        tree,
        swappiness=lambda value: str(int(value) // 10 * 10),
        stat_interval=lambda value: "1",
        dirty_ratio=lambda value: refusal("EINVAL"),
        base_slice_ns=lambda value: refusal("EPERM"),
    )
    (rounded,) = apply(kernel, [("swappiness", "17")], exactly=False)
    assert (rounded.now, rounded.rounded) == ("10", True)
    tree.write("proc/sys/vm/swappiness", "60")
    with pytest.raises(KnobError, match="19 was asked for, the kernel made it 10"):
        apply(Kernel(tree, swappiness=lambda value: "10"), [("swappiness", "19")])
    with pytest.raises(KnobError, match="took 7 without an error, and left the knob at 1"):
        apply(kernel, [("vm.stat_interval", "7")])
    with pytest.raises(KnobRefused, match=r"refused 5 \(EINVAL\)") as refused:
        apply(kernel, [("vm.dirty_ratio", "5")])
    assert "takes 0 to 100" in refused.value.advice
    with pytest.raises(KnobForbidden, match="EPERM"):
        apply(kernel, [("base_slice_ns", "1000000")])


def test_each_reason_is_an_error_of_its_own_with_its_own_advice(tree: Tree) -> None:
    expected: dict[str, tuple[type[KnobError], str]] = {
        "lru_gen/enabled": (KnobAbsent, "it would be at /sys/kernel/mm/lru_gen/enabled"),
        "workqueue.cpumask": (KnobAbsent, "it would be at"),
        "/proc/sys/vm/nothing": (KnobAbsent, "knob list"),
        "/proc/sys/kernel/sched_migration_cost_ns": (KnobAbsent, "sched_migration_cost_ns"),
        "sched_latency_ns": (KnobAbsent, "nearest to it is base_slice_ns, which is not the same thing"),
        "mitigations": (KnobError, 'kind = "boot"'),
        "read_ahead_kb": (KnobNeedsInstance, "queue/read_ahead_kb@vda"),
        "swapiness": (UnknownKnob, "knob list"),
        "/sys/block/vda": (BadKnobName, "below /proc/sys or /sys"),
    }
    for name, (kind, advice) in expected.items():
        with pytest.raises(kind) as said:
            find(tree.system, name)
        assert type(said.value) is kind, name
        assert advice in said.value.advice, name


def test_a_file_system_that_is_not_mounted_is_no_absent_knob(tree: Tree) -> None:
    tree.write("proc/mounts", "sysfs /sys sysfs rw 0 0")
    for name in ("cpu.weight@none", "sched_tunable_scaling", "/sys/kernel/debug/sched/x"):
        with pytest.raises(KnobNotMounted) as said:
            find(tree.system, name)
        assert said.value.advice.startswith("mount it: mount -t ")


HOSTILE_NAMES = (
    *("", "a\nb", "a\0b", "x" * 2000, "vm..x", "swappiness@1"),
    *("../etc/passwd", "/sys/../etc/passwd", "/etc/passwd", "/proc/1/mem", "/sys//a", "/proc/sys/./vm"),
    *("read_ahead_kb@../vda", "read_ahead_kb@", "read_ahead_kb@/etc"),
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_that_could_lead_elsewhere_are_refused(tree: Tree, name: str) -> None:
    with pytest.raises((BadKnobName, UnknownKnob)) as said:
        find(tree.system, name)
    assert said.value.exit_code == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("1\n2", "line break"),
        ("1\r", "line break"),
        ("1\0", "NUL"),
        ("\x1b[2J", "control character"),
        ("9" * 5000, "longer than"),
        ("", "not a whole number"),
        ("sixty", "not a whole number"),
        ("-1", "too small"),
        ("201", "too large"),
    ],
)
def test_values_that_are_none_are_refused(tree: Tree, value: str, problem: str) -> None:
    with pytest.raises(BadKnob, match=problem):
        apply(tree.target, [("vm.swappiness", value)])
    assert tree.read("proc/sys/vm/swappiness") == "60"


def test_raw_paths_take_any_line_and_no_other(tree: Tree) -> None:
    with pytest.raises(BadKnob, match="line break"):
        apply(tree.target, [("/sys/devices/vda/queue/read_ahead_kb", "1\n2")])
    (applied,) = apply(tree.target, [("/sys/devices/vda/queue/read_ahead_kb", "256")])
    assert (applied.before, applied.now) == ("128", "256")


def test_a_link_that_leads_out_of_sys_is_not_followed(tree: Tree) -> None:
    outside = tree.root / "passwd"
    outside.write_text("root\n")
    (tree.root / "system/sys/escape").symlink_to(outside)
    with pytest.raises(BadKnobName, match="not below /proc and /sys"), tree.changing() as changes:
        changes.apply(("/sys/escape", "0"))
    assert outside.read_text() == "root\n"


def test_what_the_kernel_changes_beside_a_knob_comes_back_too(tree: Tree) -> None:
    """dirty_bytes and dirty_ratio: writing one clears the other, and dirty_bytes takes no 0."""

    def of_bytes(value: str) -> str:
        tree.write("proc/sys/vm/dirty_ratio", "0")
        return value

    def of_ratio(value: str) -> str:
        tree.write("proc/sys/vm/dirty_bytes", "0")
        return value

    kernel = Kernel(
        tree,
        dirty_bytes=lambda value: refusal("EINVAL") if value == "0" else of_bytes(value),
        dirty_ratio=of_ratio,
    )
    with tree.changing(kernel) as changes:
        changes.apply(("vm.dirty_bytes", "100000000"))
        changes.apply(("vm.dirty_ratio", "30"))
        assert (tree.read("proc/sys/vm/dirty_bytes"), tree.read("proc/sys/vm/dirty_ratio")) == ("0", "30")
    assert (tree.read("proc/sys/vm/dirty_bytes"), tree.read("proc/sys/vm/dirty_ratio")) == ("0", "20")


def test_what_cannot_be_put_back_is_told_and_stays_in_the_journal(tree: Tree) -> None:
    said: list[str] = []
    with changing(tree.target, "a study", journal=tree.journal(), say=said.append) as changes:
        changes.apply(("swappiness", "10"))
        tree.write("proc/sys/vm/swappiness", "33")
    assert "somebody else has made it 33 since" in said[0]
    assert len(said) == len(tree.entries) == 1


def test_one_word_of_the_schedulers_features_is_switched_and_switched_back(tree: Tree) -> None:
    words = {"PLACE_LAG": True, "NEXT_BUDDY": False}

    def switch(value: str) -> str:
        words[value.removeprefix("NO_")] = not value.startswith("NO_")
        return " ".join(name if on else f"NO_{name}" for name, on in words.items())

    with tree.changing(Kernel(tree, features=switch)) as changes:
        changes.apply(("sched_features", "NEXT_BUDDY"), ("sched_features", "NO_PLACE_LAG"))
        assert tree.read("sys/kernel/debug/sched/features") == "NO_PLACE_LAG NEXT_BUDDY"
    assert tree.read("sys/kernel/debug/sched/features") == "PLACE_LAG NO_NEXT_BUDDY"


def test_another_ktrial_is_refused_or_waits_and_says_so(tree: Tree) -> None:
    said: list[str] = []
    refused: list[JournalHeld] = []
    waited: list[str] = []
    held, go = threading.Event(), threading.Event()

    def other() -> None:
        journal = tree.journal()
        with journal.held():
            held.set()
            go.wait(300)

    def second() -> None:
        try:
            with tree.journal().held(wait=False):
                pass
        except JournalHeld as error:
            refused.append(error)
        with tree.journal().held(say=said.append):
            waited.append("in")

    first = threading.Thread(target=other)
    first.start()
    assert held.wait(300)
    late = threading.Thread(target=second)
    late.start()
    late.join(0.5)
    assert (waited, len(refused)) == ([], 1)
    go.set()
    late.join(10)
    first.join(10)
    assert waited == ["in"]
    assert f"process {os.getpid()}" in said[0]
    assert "wait for it to end" in refused[0].advice


def test_a_journal_that_others_may_write_to_is_not_used(tree: Tree) -> None:
    (tree.root / "journal").mkdir()
    (tree.root / "journal").chmod(0o777)
    with pytest.raises(JournalError, match="others may write") as said, tree.changing():
        pass
    assert "chmod go-w" in said.value.advice


def test_a_journal_that_cannot_be_written_changes_nothing(tree: Tree) -> None:
    (tree.root / "journal").write_text("a file, no directory")
    with pytest.raises(JournalError, match="cannot be written"), tree.changing() as changes:
        changes.apply(("swappiness", "10"))
    assert tree.read("proc/sys/vm/swappiness") == "60"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_everything_is_back(number: signal.Signals) -> None:
    arrived: list[str] = []
    before = signal.signal(number, lambda *_: arrived.append("signal"))
    try:
        with deferred():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            arrived.append("end")
        assert arrived == ["end", "signal"]
    finally:
        signal.signal(number, before)
