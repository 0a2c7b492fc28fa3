"""`ktrial profile`, and the files that it and `ktrial explain` write, on profiles written down beforehand."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import CommandLine
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.machines.errors import NoPluginHere
from ktrial.machines.qemu.plugin import CacheShape, CacheShapes
from ktrial.model.attribution import Attribution, Differences
from ktrial.model.profile import CacheCounts, Profile, TaskCount
from ktrial.model.source_lines import FunctionLines, SourceLine
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

BEFORE = a_profile(
    {
        ("vma_link", ""): 3000,
        ("map", "ext4"): 500,
        ("kmem_cache_alloc", ""): 900,
        ("entry_SYSCALL_64", ""): 50,
        ("__x64_sys_fork", ""): 30,
        ("asm_exc_page_fault", ""): 20,
    },
    kernel="debian:6.1",
    program=500,
)
AFTER = a_profile({("vma_link", ""): 4000, ("map", "ext4"): 500}, kernel="debian:6.12", program=500)
PROFILES = {"debian:6.1:cloud": BEFORE, "debian:6.12:cloud": AFTER}
ONE = ("profile", "--kernel", "debian:6.1", "--workload", "fork")
BOTH = ("explain", "--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "fork")


class Asked(CommandLine):
    """The command line, and the caches that a kernel was last profiled with."""

    caches: CacheShapes | None = None


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    command = Asked(monkeypatch, capsys)

    def profile(
        settings: MachineSettings, use: WorkloadUse, caches: CacheShapes | None = None, **_: object
    ) -> Profile:
        command.caches = caches
        made = PROFILES[settings.kernel].model_copy(update={"parameters": settings.boot})
        return with_caches(made) if caches else made

    monkeypatch.setattr("ktrial.experiment.profile.profile", profile)
    monkeypatch.setenv("COLUMNS", "110")
    return command


def with_caches(profile: Profile) -> Profile:
    """Every function missed once in ten of its instructions, `map` in the last level as well."""
    region = profile.region
    functions = tuple(
        row.model_copy(
            update={
                "caches": CacheCounts(
                    loads=row.instructions,
                    data_misses=row.instructions // 10,
                    last_misses=row.instructions // 10 if row.symbol == "map" else 0,
                )
            }
        )
        for row in region.functions
    )
    return profile.model_copy(update={"region": region.model_copy(update={"functions": functions})})


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_profile_has_the_functions_and_the_program(cli: Asked) -> None:
    result = cli(*ONE, "--boot", "quiet", "--top", 2)
    table = rows(result.output)
    assert result.status == 0
    assert "fork on debian:6.1 quiet: 500 instructions per operation" in result.output
    assert ["vma_link", "300", "60.0", "–", "1", "mm"] in table
    assert ["4", "other", "functions", "60", "12.0"] in table
    assert ["[program]", "work", "50", "10.0"] in table
    assert "The rows sum to 500; 0 belong to no row." in result.output


def test_the_median_operation_is_told_beside_the_mean(cli: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rare operation is most of the mean."""
    uneven = BEFORE.region.operations.model_copy(update={"median": 120.0, "count": BEFORE.operations})
    region = BEFORE.region.model_copy(update={"operations": uneven})
    monkeypatch.setitem(PROFILES, "debian:6.1:cloud", BEFORE.model_copy(update={"region": region}))
    assert "That is the mean over the operations; the median is 120." in cli(*ONE).output
    assert json.loads(cli(*ONE, "--json").output)["median_per_operation"] == 120


def test_a_profile_tells_the_ways_into_the_kernel_and_the_cpu_s_modes(cli: Asked) -> None:
    table = rows(cli(*ONE).output)
    assert ["kernel", "450", "90.0"] in table
    assert ["user", "50", "10.0"] in table
    assert ["system", "call", "1", "–"] in table
    assert ["exception", "page_fault", "1", "–"] in table
    assert ["fork", "1", "–"] in table


def test_tasks_are_told_apart_by_number(cli: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = (TaskCount(stack=4096, kernel=3000, program=500), TaskCount(stack=8192, kernel=1500, program=0))
    region = BEFORE.region.model_copy(update={"tasks": tasks})
    monkeypatch.setitem(PROFILES, "debian:6.1:cloud", BEFORE.model_copy(update={"region": region}))
    table = rows(cli(*ONE).output)
    assert ["task", "1", "300", "50", "70.0"] in table
    assert ["task", "2", "150", "0", "30.0"] in table


def test_a_profile_as_json_adds_up(cli: Asked) -> None:
    result: dict[str, Any] = json.loads(cli(*ONE, "--json").output)
    parts = [*result["functions"], *result["programs"]]
    assert sum(row["instructions"] for row in parts) == result["instructions"] == 5000
    assert result["cpu_modes"] == {"kernel": 4500, "user": 500}
    assert [row["name"] for row in result["entries"]] == ["exception page_fault", "system call", "fork"]
    assert "caches" not in result["functions"][0]


def test_caches_are_modelled_on_request_and_told_by_function(cli: Asked) -> None:
    result = cli(*ONE, "--caches")
    assert cli.caches == CacheShapes()
    table = rows(result.output)
    # 500 instructions and 50 misses of both levels in ten operations: 50 + 5 × 40 + 5 × 200 cycles.
    assert ["map", "[ext4]", "1,250", "37.9", "0", "5", "5"] in table
    assert ["the", "sum", "3,300", "100.0", "0", "45", "5"] in table
    assert "L1i 32768:8:64, L1d 32768:8:64, last level 8388608:16:64" in result.output
    assert "A modelled cycle is no time" in result.output


def test_a_cache_s_shape_asks_for_caches(cli: Asked) -> None:
    assert cli(*ONE, "--l1d", "48K:12:64", "--llc", "2M:16").status == 0
    assert cli.caches == CacheShapes(l1d=CacheShape(48 << 10, 12), llc=CacheShape(2 << 20, 16))
    result: dict[str, Any] = json.loads(cli(*ONE, "--caches", "--json").output)
    assert result["functions"][0]["caches"]["data_misses"] == 300
    assert result["functions"][0]["modelled_cycles"] == 3000 + 300 * 40


LINES = FunctionLines(
    kernel="debian:6.1",
    workload="fork",
    function="vma_link",
    operations=10,
    instructions=3000,
    lines=(
        SourceLine(file="mm/mmap.c", line=12, instructions=2000),
        SourceLine(file="include/linux/mm.h", line=7, inlined=("vma_set", "set_bit"), instructions=900),
        SourceLine(file="", line=0, instructions=100),
    ),
)


def test_a_function_is_told_by_source_line(cli: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ktrial.experiment.source_lines.function_lines", lambda *_, **__: LINES)
    result = cli(*ONE, "--lines", "vma_link", "--top", "2")
    assert "70.0 % are of the function itself" in result.output
    table = rows(result.output)
    assert ["vma_link", "itself", "210", "70.0"] in table
    assert ["set_bit", "90", "30.0"] in table
    assert ["mm/mmap.c:12", "200", "66.7"] in table
    assert ["include/linux/mm.h:7", "(vma_set", "›", "set_bit)", "90", "30.0"] in table
    assert ["1", "other", "line", "10", "3.3"] in table
    assert ["the", "sum", "300", "100.0"] in table
    assert json.loads(cli(*ONE, "--lines", "vma_link", "--json").output) == LINES.model_dump(mode="json")
    idle = LINES.model_copy(update={"instructions": 0, "lines": ()})
    monkeypatch.setattr("ktrial.experiment.source_lines.function_lines", lambda *_, **__: idle)
    assert "It did not run." in cli(*ONE, "--lines", "vma_link").output


@pytest.mark.parametrize("other", [("--caches",), ("--folded", "x"), ("--cpus", "2")])
def test_lines_are_counted_alone(cli: Asked, other: tuple[str, ...]) -> None:
    result = cli(*ONE, "--lines", "vma_link", *other)
    assert result.status == 2
    assert "--lines" in result.messages


def test_every_file_that_was_asked_for_is_written(cli: Asked, tmp_path: Path) -> None:
    names = ("folded", "svg", "vector", "speedscope", "perf")
    folded, svg, vector, speedscope, perf = (tmp_path / name for name in names)
    command = ("--folded", folded, "--flame-graph", svg, "--vector", vector)
    exports = ("--export", f"speedscope:{speedscope}", "--export", f"perf-script:{perf}")
    assert cli(*ONE, *command, *exports).status == 0
    assert folded.read_text().splitlines()[0] == "[program];work 500"
    assert svg.read_text().startswith("<svg ")
    assert json.loads(speedscope.read_text())["profiles"][0]["endValue"] == 5000
    assert perf.read_text().startswith("fork 1/1 [000] ")


def test_a_difference_is_written_as_three_columns_and_as_a_picture(
    cli: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribution = Attribution(
        before=BEFORE, after=AFTER, explanation=explain(BEFORE, AFTER), differences=Differences()
    )
    monkeypatch.setattr("ktrial.cli.running.explanation.why", lambda given: (attribution, None))
    folded, svg, other = tmp_path / "folded", tmp_path / "to.svg", tmp_path / "from.svg"
    assert cli(*BOTH, "--folded", folded, "--flame-graph", svg).status == 0
    assert "vma_link 3000 4000" in folded.read_text().splitlines()
    assert 'data-side="1"' in svg.read_text()
    assert cli(*BOTH, "--flame-graph", other, "--width", "from").status == 0
    assert 'data-side="0"' in other.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--memory", "lots"), "--memory:"),
        (("--kernel", "suse:6"), "there is no provider 'suse'"),
        (("--export", "speedscop:x"), "no format speedscop (did you mean speedscope?)"),
        (("--export", "speedscope"), "names no file: --export speedscope:FILE"),
        (("--export", "vector:"), "names no file"),
        (("--l1i", "lots"), "--l1i: 'lots' is not SIZE:WAYS"),
        (("--l1d", "32K:8:60"), "--l1d: a line of 60 bytes"),
        (("--llc", "5M:16"), "must be a power of two"),
        (("--llc", "32K:0"), "must be a power of two"),
        (("--llc", "4G:16"), "at most 1G"),
        (("--flame-graph", "none/a.svg"), "none/a.svg cannot be written: No such file or directory"),
        (("--folded", "."), ". cannot be written: Is a directory"),
    ],
)
def test_mistakes_are_told_before_anything_is_booted(
    cli: Asked, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def profile(*_: object, **__: object) -> Profile:
        raise AssertionError("a kernel was booted")

    monkeypatch.setattr("ktrial.experiment.profile.profile", profile)
    result = cli(*ONE, *arguments)
    assert result.status in {1, 2}
    assert message in " ".join(result.messages.split())


def test_a_qemu_without_plugins_is_told(cli: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def profile(*_: object, **__: object) -> Profile:
        raise NoPluginHere(machine="exact", program="/usr/bin/qemu", problem="plugins are not built in")

    monkeypatch.setattr("ktrial.experiment.profile.profile", profile)
    result = cli(*ONE)
    assert result.status == 1
    assert "cannot count by function with /usr/bin/qemu" in result.messages
