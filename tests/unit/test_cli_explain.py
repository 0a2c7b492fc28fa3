"""`ktrial explain` on profiles that were written down beforehand."""

import json
from typing import Any

import pytest
from tests.unit.command_line import CommandLine
from tests.unit.profiles import a_profile

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "--kernel", "debian:6.1", "--workload", "fork"), "--kernel: 1 given; give two"),
        (("explain", *BOTH, "--kernel", "debian:7.2"), "--kernel: 3 given; give two"),
        (("explain", *BOTH[:4], "--workload", "frok"), "There is no workload frok (did you mean fork"),
        (("explain", *BOTH, "--memory", "lots"), "--memory:"),
    ],
)
def test_mistakes_are_told_before_anything_is_booted(
    cli: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    said = cli(*arguments)
    assert said.status == 2
    assert message in said.messages
