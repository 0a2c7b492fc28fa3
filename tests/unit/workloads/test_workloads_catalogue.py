"""The catalogue of workloads: what is in it, what a plugin may do to it."""

import json
from pathlib import Path

import pytest

from ktrial import workloads
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, WorkloadDescription, WorkloadUse
from ktrial.target.errors import GuestProgramsDamaged, GuestProgramsMissing
from ktrial.workloads import installed
from ktrial.workloads.builtin import built_ins
from ktrial.workloads.errors import BadWorkload

OPERATIONS = {
    *("syscall", "pipe", "context-switch", "futex", "epoll", "socketpair", "tcp", "timer", "hackbench"),
    *("fork", "vfork", "clone3", "exec", "thread", "mmap"),
    *("open", "stat", "copy-256", "copy-1024", "copy-4096", "nqueens", "aio-stress", "unixbench"),
    *("seq-read", "random-read", "stream-write", "metadata", "oltp", "fileio", "file-server"),
}
TASKS = {
    *("loop1", "getppid1", "page-fault1", "page-fault2", "page-fault3", "mmap1", "mmap2", "brk1", "malloc1"),
    *(
        "malloc2",
        "open1",
        "open2",
        "unlink1",
        "unlink2",
        "dup1",
        "lock1",
        "lock2",
        "futex1",
        "futex2",
        "futex3",
    ),
    *("pipe1", "context-switch1", "sched-yield1", "signal1", "poll1", "eventfd1", "read1", "read2", "pread1"),
    *("write1", "write2", "append1", "append2", "tlb-flush1", "counter1", "spin1"),
    *("pread2", "tcp1", "wakeup1", "file-server1", "build1"),
}
"""Of one to many tasks at the same time."""
INSTALLED = {
    *("cyclictest", "fio", "kernel-build", "nginx-wrk", "perf-bench", "pgbench", "rt-hackbench", "schbench"),
    *("stress-ng", "sysbench-cpu", "sysbench-fileio", "sysbench-memory", "sysbench-oltp", "unixbench-run"),
}
"""Programs of others."""


def own_descriptions() -> dict[str, WorkloadDescription]:
    return {
        name: each for name, each in workloads.descriptions().items() if each.group != "installed programs"
    }


def test_every_operation_is_there_and_documented() -> None:
    assert set(workloads.descriptions()) == OPERATIONS | TASKS | INSTALLED
    descriptions = own_descriptions()
    assert set(descriptions) == OPERATIONS | TASKS
    assert {name for name, each in descriptions.items() if each.group == "several tasks"} == TASKS
    for name, description in descriptions.items():
        assert description.name == name
        assert description.summary
        assert description.does.endswith(".")
        assert description.source
        assert description.metrics[0].direction is Direction.LOWER
        assert len({metric.name for metric in description.metrics}) == len(description.metrics)
        assert {"operations", "passes"} <= {parameter.name for parameter in description.parameters}


def test_all_but_the_null_control_make_system_calls() -> None:
    silent = [name for name, each in own_descriptions().items() if not each.system_calls]
    assert silent == ["counter1", "loop1", "malloc2", "nqueens", "spin1"]


def test_the_sets_name_workloads_that_exist() -> None:
    named = [*workloads.DEFAULT, *workloads.DISK, *workloads.WHOLE_BENCHMARKS]
    assert set(named) == OPERATIONS
    assert len(set(named)) == len(named)
    assert set(workloads.QUICK) < OPERATIONS
    assert len(workloads.QUICK) == 6


def test_a_command_is_a_workload_but_no_name_for_a_study() -> None:
    assert "command" in workloads.catalogue()
    assert "command" not in workloads.descriptions()
    with pytest.raises(BadWorkload):
        workloads.find(WorkloadUse(name="command"))


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(BadWorkload, match=r"no workload forkk \(did you mean fork or vfork") as caught:
        workloads.find(WorkloadUse(name="forkk"))
    assert caught.value.exit_code == 2
    assert "ktrial workload list" in caught.value.advice


def test_without_the_programs_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(GuestProgramsMissing, match="lacks work"):
        built_ins(tmp_path / "x86_64")


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 9, b'[{"name": "fork"', b'[{"name": "fork"}]', b"\xff[]", b"{}"]
)
def test_a_damaged_list_of_a_program_is_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "workloads.json").write_bytes(content)
    with pytest.raises(GuestProgramsDamaged, match=r"are damaged: .*workloads\.json: ") as caught:
        built_ins(tmp_path)
    assert "reinstall" in caught.value.advice


@pytest.mark.parametrize("content", ["#!/bin/sh\nexit 1\n", "#!/no/shell\n", ""])
def test_a_damaged_program_that_has_no_list_is_told(content: str, tmp_path: Path) -> None:
    (tmp_path / "work").write_text(content)
    (tmp_path / "work").chmod(0o755)
    with pytest.raises(GuestProgramsDamaged, match="are damaged"):
        built_ins(tmp_path)


def test_without_the_list_the_program_is_asked(tmp_path: Path) -> None:
    described = [workloads.descriptions()["fork"].model_dump(mode="json", exclude={"group"})]
    program = tmp_path / "work"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --list ] && cat <<'END'\n{json.dumps(described)}\nEND\n")
    program.chmod(0o755)
    assert [each.description for each in built_ins(tmp_path)] == [workloads.descriptions()["fork"]]


def found_with(monkeypatch: pytest.MonkeyPatch, site: Path, value: str) -> tuple[set[str], list[str]]:
    """The names and warnings where a package is installed whose entry point has this value."""
    information = site / "outsider-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ktrial.workloads]\noutsider = {value}\n")
    monkeypatch.syspath_prepend(str(site))
    workloads_found, warnings = installed.__wrapped__()
    assert all(warning.kind is WarningKind.PLUGIN_BROKEN for warning in warnings)
    return set(workloads_found), [warning.text for warning in warnings]


def test_another_packages_workload_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from ktrial.workloads.builtin import built_ins, BuiltIn\n"
        "first = built_ins()[0].description\n"
        "WORKLOAD = BuiltIn(first.model_copy(update={'name': 'theirs'}))\n"
    )
    names, warnings = found_with(monkeypatch, tmp_path, "theirs:WORKLOAD")
    assert names == OPERATIONS | TASKS | INSTALLED | {"command", "theirs"}
    assert warnings == []


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("no_such_module_here:WORKLOAD", "ModuleNotFoundError"),
        ("json:NO_SUCH", "AttributeError"),
        ("json:JSONDecoder", "TypeError: it is not a workload"),
    ],
)
def test_a_broken_plugin_warns_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, part: str
) -> None:
    names, warnings = found_with(monkeypatch, tmp_path, value)
    assert names == OPERATIONS | TASKS | INSTALLED | {"command"}
    assert len(warnings) == 1
    assert part in warnings[0]
