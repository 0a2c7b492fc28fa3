"""`ktrial profile` and `ktrial explain` on profiles that were written down beforehand."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.command_line import CommandLine
from tests.unit.profiles import a_profile

from ktrial.errors import NoPluginHere
from ktrial.model.kernel_profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

PROFILES = {
    "debian:6.1:cloud": a_profile(
        {("vma_link", ""): 3000, ("map", "ext4"): 500, ("kmem_cache_alloc", ""): 1000},
        kernel="debian:6.1",
        program=500,
    ),
    "debian:6.12:cloud": a_profile(
        {("mas_store", ""): 7000, ("map", "ext4"): 500, ("kmem_cache_alloc_noprof", ""): 1200},
        kernel="debian:6.12",
        program=500,
    ),
}
BOTH = ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "fork")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    def profile(settings: MachineSettings, use: WorkloadUse, **_: object) -> Profile:
        assert use.name == "fork"
        assert settings.memory_mib == 512
        return PROFILES[settings.kernel].model_copy(update={"parameters": settings.boot})

    monkeypatch.setattr("ktrial.runner.profile.profile", profile)
    monkeypatch.setenv("COLUMNS", "100")
    return CommandLine(monkeypatch, capsys)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_functions_of_the_difference_are_ranked_and_summed(cli: CommandLine) -> None:
    said = cli("explain", *BOTH)
    assert said.status == 0
    assert "fork: debian:6.1 → debian:6.12: +420 instructions an operation (+84.00 %)" in said.output
    table = rows(said.output)
    ranked = [row[0] for row in table if row and row[0] in {"mas_store", "vma_link", "kmem_cache_alloc"}]
    assert ranked == ["mas_store", "vma_link", "kmem_cache_alloc"]
    assert ["mas_store", "–", "700", "+700", "166.7"] in table
    assert ["vma_link", "300", "–", "−300", "−71.4"] in table
    assert ["kmem_cache_alloc", "→", "kmem_cache_alloc_noprof", "100", "120", "+20", "4.8"] in table
    assert ["the", "sum", "500", "920", "+420", "100.0"] in table
    assert ["maple", "tree", "+700", "166.7"] in table
    assert "The rows sum to +420 of +420; unexplained: 0." in said.output


def test_bytes_have_a_column_where_string_instructions_differ(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clears = a_profile({("clear_page_erms", ""): 3050}, string_bytes={("clear_page_erms", ""): 40_960})
    monkeypatch.setitem(PROFILES, "debian:6.12:cloud", clears)
    said = cli("explain", *BOTH)
    table = rows(said.output)
    assert ["clear_page_erms", "–", "305", "+305", "−156.4", "+4,096"] in table
    assert ["the", "sum", "500", "305", "−195", "100.0", "+4,096"] in table
    assert "Shares are of the instructions alone." in said.output


def test_what_is_not_shown_is_in_one_row(cli: CommandLine) -> None:
    table = rows(cli("explain", *BOTH, "--top", 1).output)
    assert ["4", "other", "rows", "500", "220", "−280", "−66.7"] in table


def test_a_kernel_against_itself_differs_in_nothing(cli: CommandLine) -> None:
    said = cli("explain", "--kernel", "debian:6.1", "--kernel", "debian:6.1", "--workload", "fork")
    assert said.status == 0
    assert ["the", "sum", "500", "500", "0", "–"] in rows(said.output)


def test_an_explanation_as_json_adds_up(cli: CommandLine) -> None:
    told: dict[str, Any] = json.loads(cli("explain", *BOTH, "--json").output)
    assert told["difference"] == 420
    assert told["unexplained"] == 0
    assert sum(row["difference"] for row in told["functions"]) == 420
    assert sum(row["difference"] for row in told["subsystems"]) == 420
    assert told["functions"][0]["match"] == "ran in the second only"
    assert told["mode"] == "exact-plugin"


def test_a_profile_has_the_functions_and_the_program(cli: CommandLine) -> None:
    said = cli("profile", "--kernel", "debian:6.1", "--workload", "fork", "--boot", "quiet", "--top", 2)
    table = rows(said.output)
    assert said.status == 0
    assert "fork on debian:6.1 quiet: 500 instructions per operation" in said.output
    assert ["vma_link", "300", "60.0", "–", "1", "mm"] in table
    assert ["1", "other", "function", "50", "10.0"] in table
    assert ["[program]", "work", "50", "10.0"] in table
    assert "The rows sum to 500; 0 belong to no row." in said.output


def test_a_profile_as_json_and_as_stacks(cli: CommandLine, tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    said = cli("profile", "--kernel", "debian:6.1", "--workload", "fork", "--json", "--folded", stacks)
    told: dict[str, Any] = json.loads(said.output)
    parts = [*told["functions"], *told["programs"]]
    assert sum(each["instructions"] for each in parts) == told["instructions"] == 5000
    assert stacks.read_text().splitlines() == [
        "vma_link 3000",
        "map [ext4] 500",
        "kmem_cache_alloc 1000",
        "[program] 500",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "--kernel", "debian:6.1", "--workload", "fork"), "--kernel: 1 given; give two"),
        (("explain", *BOTH, "--kernel", "debian:7.2"), "--kernel: 3 given; give two"),
        (("explain", *BOTH[:4], "--workload", "frok"), "There is no workload frok (did you mean fork"),
        (("profile", *BOTH[2:], "--memory", "lots"), "--memory:"),
        (("profile", "--kernel", "suse:6", "--workload", "fork"), "there is no provider 'suse'"),
    ],
)
def test_mistakes_are_told_before_anything_is_booted(
    cli: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    said = cli(*arguments)
    assert said.status == 2
    assert message in said.messages


def test_stacks_that_cannot_be_written_are_told(cli: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "none" / "stacks"
    said = cli("profile", "--kernel", "debian:6.1", "--workload", "fork", "--folded", place)
    assert said.status == 1
    assert "cannot be written: No such file or directory" in said.messages


def test_a_qemu_without_plugins_is_told(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def profile(*_: object, **__: object) -> Profile:
        raise NoPluginHere(machine="exact", program="/usr/bin/qemu", problem="plugins are not built in")

    monkeypatch.setattr("ktrial.runner.profile.profile", profile)
    said = cli("profile", "--kernel", "debian:6.1", "--workload", "fork")
    assert said.status == 1
    assert "cannot count by function with /usr/bin/qemu" in said.messages
