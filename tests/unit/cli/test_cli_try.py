"""`ktrial try`: two kernels and a workload that nobody had to choose, and what to do next."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import ScriptedMachine, a_kernel

from ktrial.experiment import kernel_choice
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel

CLOUD = [a_kernel(f"debian:{version}", flavour="cloud") for version in ("6.12", "5.10", "6.1")]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "store" / "ktrial.db"))
    monkeypatch.delenv("COLUMNS", raising=False)
    command_line = CommandLine(monkeypatch, capsys)
    command_line.machine(ScriptedMachine())
    return command_line


def cached(monkeypatch: pytest.MonkeyPatch, kernels: Sequence[Kernel]) -> None:
    by_name = {row.name: row for row in kernels}
    monkeypatch.setattr(kernel_choice, "stored_names", lambda: sorted(by_name))
    monkeypatch.setattr(kernel_choice, "get", by_name.__getitem__)


def test_nothing_has_to_be_said_and_the_next_command_can_be_typed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cached(monkeypatch, CLOUD)
    result = cli("try")
    assert result.status == 0
    assert result.output.startswith("try: How does debian:6.12 compare with debian:5.10?\n")
    lines = result.output.splitlines()
    assert f"report: {tmp_path}/store/reports/try-1.html" in lines
    assert "next: ktrial explain 1 --workload pipe" in lines
    assert lines[-2].startswith("By instructions counted, not time: ")


def test_each_trial_is_told_as_it_ends(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(monkeypatch, CLOUD)
    result = cli("try", "--workload", "fork", "--jobs", 1).messages
    for kernel in ("debian:5.10", "debian:6.12"):
        for number in (0, 1):
            assert f"{kernel}, perturbation {number}: fork 1,00" in result


def test_json_has_the_next_commands_and_says_the_store(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cached(monkeypatch, CLOUD)
    own = tmp_path / "my own.db"
    result = json.loads(cli("try", "--json", "--store", own).output)
    assert {row["verdict"] for row in result["comparisons"]} <= {"better", "worse", "equivalent"}
    assert [str(own) in shlex.split(command) for command in result["next"][:2]] == [True] * 2


def test_kernels_that_are_named_are_taken_in_their_order(cli: CommandLine) -> None:
    result = cli("try", "--kernel", "debian:7.2", "--kernel", "debian:6.18", "--workload", "fork,pipe")
    assert result.output.startswith("try: How does debian:6.18 compare with debian:7.2?\n")
    third = cli("try", *("--kernel", "debian:6.1") * 3)
    assert (third.status, "ktrial compare takes more" in third.messages) == (2, True)


def test_the_oldest_and_the_newest_of_one_flavour(monkeypatch: pytest.MonkeyPatch) -> None:
    generic = a_kernel("debian:7.2:generic", flavour="generic")
    cached(monkeypatch, [*CLOUD, generic])
    assert kernel_choice.two_kernels() == ("debian:5.10", "debian:6.12")
    cached(monkeypatch, [CLOUD[0], generic])
    assert kernel_choice.two_kernels() == ("debian:6.12", "debian:7.2:generic")


def test_a_file_is_chosen_only_where_there_are_no_two_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ktrial try` compared a patched image with a step of a series, which others had left in the cache."""
    file = a_kernel("path:/tmp/vmlinux-patched", release="9.9.9", flavour="cloud")
    built = a_kernel("build:linux-source-6.1@2610e6495ab5", release="0.1", flavour="cloud")
    cached(monkeypatch, [*CLOUD, file, built])
    assert kernel_choice.two_kernels() == ("debian:5.10", "debian:6.12")
    cached(monkeypatch, [CLOUD[0], file])
    assert "path:/tmp/vmlinux-patched" in kernel_choice.two_kernels()


def test_one_content_under_two_names_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    again = a_kernel("debian:6.12.0", digest=digest("debian:6.12"), flavour="cloud")
    cached(monkeypatch, [CLOUD[0], again])
    assert kernel_choice.two_kernels() == kernel_choice.FETCHED


def test_one_that_is_named_is_compared_with_the_newest_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cached(monkeypatch, CLOUD)
    assert kernel_choice.two_kernels(["path:/b/bzImage"]) == ("debian:6.12", "path:/b/bzImage")
    assert kernel_choice.two_kernels(["debian:6.12:cloud"]) == ("debian:6.1", "debian:6.12:cloud")
    cached(monkeypatch, [])
    assert kernel_choice.two_kernels(["debian:6.12"]) == ("debian:6.1", "debian:6.12")
    assert kernel_choice.two_kernels() == kernel_choice.FETCHED
