"""`ktrial explain --lines`: one row of the ranking by source line, both kernels beside each other."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.profiles import a_profile
from tests.unit.cli.test_cli_explain import BOTH, NEW, OLD, World

from ktrial.experiment.jobs import Job
from ktrial.kernels import Progress
from ktrial.kernels.errors import NoDebugInfo
from ktrial.kernels.source_lines import Stretch
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile

COUNTS = {
    OLD: {"kmem_cache_alloc@10": 400, "kmem_cache_alloc@11": 600},
    NEW: {
        "kmem_cache_alloc_noprof@10": 400,
        "kmem_cache_alloc_noprof@11": 500,
        "kmem_cache_alloc_noprof@20": 300,
    },
}
"""Address → instructions: they sum to the function's in the ranking."""
CODE = {
    OLD: (Stretch(start=0x10, file="mm/slub.c", line=5), Stretch(start=0x11, file="mm/slub.c", line=6)),
    NEW: (
        Stretch(start=0x10, file="mm/slub.c", line=71),
        Stretch(start=0x11, file="mm/slub.c", line=73),
        Stretch(start=0x20, file="mm/slab.h", line=9, inlined=("alloc_hook", "tag_save")),
    ),
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World(tmp_path)

    def profile_job(machine: object, job: Job, *, by_address_of: tuple[str, ...]) -> Profile:
        counts = COUNTS[job.boot.kernel.name]
        assert {symbol.partition("@")[0] for symbol in counts} == set(by_address_of)
        return a_profile({(symbol, ""): count for symbol, count in counts.items()})

    def debug_file(kernel: Kernel, progress: Progress) -> Path:
        return Path(kernel.name)

    def stretches(debug_file: Path, start: int) -> tuple[Stretch, ...]:
        return CODE[str(debug_file)]

    for name, stand_in in {
        "profile_job": profile_job,
        "debug_file": debug_file,
        "stretches": stretches,
    }.items():
        monkeypatch.setattr(f"ktrial.experiment.source_lines.{name}", stand_in)
    for room in ("explain", "source_lines"):
        monkeypatch.setattr(f"ktrial.experiment.{room}.default_resources", made.resources)
    monkeypatch.setattr("ktrial.experiment.trial.run_trial", made.run_trial)
    monkeypatch.setattr("ktrial.machines.find", lambda name: made.machine)
    monkeypatch.setenv("KTRIAL_STORE", str(made.store))
    return made


@pytest.fixture
def cli(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_row_opens_into_frames_and_lines_of_both_kernels(cli: CommandLine) -> None:
    result = cli("explain", *BOTH, "--lines", "kmem_cache_alloc")
    assert result.status == 0, result.messages
    title, beneath = result.output.splitlines()[:2]
    assert title.startswith(f"fork: {OLD} → {NEW}: +84 %")
    assert beneath.startswith("lines add up to +20, its own code; paired by their order and counts")
    table = rows(result.output)
    assert ["tag_save", "0", "30", "+30"] in table
    assert ["mm/slub.c:6", "→", "73", "kmem_cache_alloc_noprof", "60", "50", "−10"] in table
    assert ["→", "mm/slab.h:9", "tag_save", "0", "30", "+30"] in table
    assert ["1", "other", "line", "40", "40", "0"] in table
    assert table.count(["the", "sum", "100", "120", "+20"]) == 2
    answer = " ".join(result.output.split())
    whole = "fork's +420 instructions"
    assert f"kmem_cache_alloc → kmem_cache_alloc_noprof's own code makes +20 of {whole}" in answer
    assert answer.endswith("tag_save +30, kmem_cache_alloc_noprof itself −10.")


def test_all_lines_are_shown_on_demand(cli: CommandLine) -> None:
    result = cli("explain", *BOTH, "--lines", "kmem_cache_alloc", "--all")
    assert ["mm/slub.c:5", "→", "71", "kmem_cache_alloc_noprof", "40", "40", "0"] in rows(result.output)


def test_of_a_stored_study_only_lines_are_counted(cli: CommandLine, world: World) -> None:
    world.kept(OLD, NEW)
    result = cli("explain", "--lines", "kmem_cache_alloc_noprof")
    assert "makes +20 of" in " ".join(result.output.split())
    assert not world.counted


def test_lines_as_json(cli: CommandLine) -> None:
    opened = json.loads(cli("explain", *BOTH, "--lines", "kmem_cache_alloc", "--json").output)
    assert (opened["difference"], opened["of"], opened["same_image"]) == (20, 420, False)
    assert opened["from"] == {
        "label": OLD,
        "symbols": ["kmem_cache_alloc"],
        "instructions": 100,
        "in_ranking": 100,
    }
    inlined = next(line for line in opened["lines"] if line["function"] == "tag_save")
    assert inlined == {
        "function": "tag_save",
        "from": None,
        "to": {"file": "mm/slab.h", "line": 9, "inlined": ["alloc_hook", "tag_save"]},
        "before": 0,
        "after": 30,
        "difference": 30,
    }
    assert sum(line["difference"] for line in opened["lines"]) == opened["difference"]


def test_a_function_that_ran_on_one_side_only_is_counted_there_alone(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COUNTS, NEW, {"mas_store@10": 7000})
    monkeypatch.setitem(CODE, NEW, (Stretch(start=0x10, file="lib/maple_tree.c", line=5),))
    result = cli("explain", *BOTH, "--lines", "mas_store")
    assert f"nothing of it ran on {OLD}" in result.output
    assert ["→", "lib/maple_tree.c:5", "mas_store", "0", "700", "+700"] in rows(result.output)


def test_counts_that_are_not_those_of_the_ranking_are_told(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COUNTS, OLD, {"kmem_cache_alloc@10": 400, "kmem_cache_alloc@11": 500})
    result = cli("explain", *BOTH, "--lines", "kmem_cache_alloc")
    assert f"on {OLD} it was counted anew: 90, where the ranking has 100" in result.output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--prove"], "--lines: it opens one row"),
        (["--folded", "stacks"], "--lines: it opens one row"),
        (["--commits", "git:."], "--lines: it opens one row"),
        (["--cpus", "2"], "--lines: lines are counted on the machine exact, on one CPU"),
        (["--candidates", "x"], "--candidates: goes with --prove"),
    ],
)
def test_lines_are_counted_alone(cli: CommandLine, world: World, words: list[str], problem: str) -> None:
    result = cli("explain", *BOTH, "--lines", "kmem_cache_alloc", *words)
    assert result.status == 2
    assert problem in result.messages
    assert not world.counted


def test_debugging_information_is_looked_for_before_anything_is_counted(
    cli: CommandLine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def debug_file(kernel: Kernel, progress: Progress) -> Path:
        raise NoDebugInfo(name=kernel.name, problem="its image has no build ID")

    monkeypatch.setattr("ktrial.experiment.source_lines.debug_file", debug_file)
    result = cli("explain", *BOTH, "--lines", "mas_store")
    assert result.status != 0
    assert "its image has no build ID" in result.messages
    assert not world.counted


def test_a_function_that_did_not_run_is_refused(cli: CommandLine) -> None:
    result = cli("explain", *BOTH, "--lines", "mas_stroe")
    assert result.status == 2
    assert "mas_stroe ran in fork on neither side (did you mean mas_store?)" in " ".join(
        result.messages.split()
    )
