"""A series in two configurations: each patch under both, side by side; the worse verdict counts."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import has_what_builds_need, requested
from tests.support.scripted import ScriptedMachine
from tests.support.series import SeriesBuilder, a_series, names_in, runs

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel
from ktrial.model.machine import Boot
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

BOTH = ("--config", "guest,debian:6.12")
ONTO = ("--onto", "debian:linux-source-6.1")
WORKLOADS = ("--workload", "fork,pipe")


class TwoConfigurations(SeriesBuilder):
    """Of patches called `only-guest-…` and `only-debian-…` nothing is compiled in the other configuration."""

    @property
    def builder(self) -> Builder:
        return replace(super().builder, compiles_the_same=self.compiles_the_same)

    def compiles_the_same(self, before: Build, wanted: Build, _progress: Progress) -> bool:
        return counting(before) == counting(wanted)

    @staticmethod
    def kernel(wanted: Build) -> Kernel:
        content = digest([wanted.config, counting(wanted)])
        origin = SeriesBuilder.kernel(wanted).origin
        held = ("CONFIG_LOST",) if wanted.config.startswith("debian:") else ()
        origin = origin.model_copy(update={"not_held": held})
        return SeriesBuilder.kernel(wanted).model_copy(update={"digest": content, "origin": origin})


def counting(build: Build) -> list[str]:
    """The patches that are compiled in the build's configuration."""
    other = "only-guest" if build.config.startswith("debian:") else "only-debian"
    return [name for name in names_in(build.patches) if not name.startswith((other, "doc"))]


def answer(boot: Boot, run: Run) -> StepResult:
    """1000 instructions and what the patches add; in Debian's configuration three times as much."""
    build = boot.kernel.origin.build
    assert build is not None
    times = 3 if build.config.startswith("debian:") else 1
    matches = (re.search(rf"cost-{run.argv[0]}-(-?\d+)", name) for name in counting(build))
    more = sum(int(match[1]) * times for match in matches if match)
    return StepResult(step=0, do="run", exit=0, stdout=str(1000 + more))


@pytest.fixture
def ktrial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    monkeypatch.chdir(tmp_path)

    def scripted(store: Store, _observer: Observer, _jobs: int | None) -> Runs:
        return runs(store, TwoConfigurations(), ScriptedMachine(answer))

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", scripted)
    monkeypatch.setattr("ktrial.kernels.build.requests.requested", requested)
    return CommandLine(monkeypatch, capsys)


def rows_in(output: str) -> dict[str, list[str]]:
    """The table's lines: subject, or `base to tip` → the cells."""
    _, _, after = re.split(r"^( +guest +debian:6.12)\n", output, maxsplit=1, flags=re.MULTILINE)
    table = after.split("\n\n")[0].splitlines()
    split = (re.split(r" {2,}", re.sub(r"^ *\d+ mm: ", "", line).strip()) for line in table)
    return {cells[0]: cells[1:] for cells in split}


def test_each_row_has_the_numbers_under_both_and_the_worse_verdict_counts(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-4", "doc", "only-debian-cost-pipe-20", "only-guest-cost-fork-1")
    result = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *BOTH, "-v")
    assert result.status == 1, result.messages
    assert rows_in(result.output) == {
        "cost-fork-4": ["≈", "fork +1.20%"],
        "doc": ["not compiled", "not compiled"],
        "only-debian-cost-pipe-20": ["not compiled", "pipe +6.00%"],
        "only-guest-cost-fork-1": ["≈", "not compiled"],
        "base to tip": ["≈", "pipe +6.00%"],
    }
    words = " ".join(result.output.split())
    assert "in the configurations guest and debian:6.12" in words
    assert "Only in guest patch 4 has code that is compiled." in words
    assert "Only in debian:6.12 patch 3 has code that is compiled." in words
    assert "1/4 fork: guest ≈, debian:6.12 +12 instructions per operation" in words
    assert "3/4 pipe: guest not compiled, debian:6.12 +60 instructions per operation" in words
    verdict = words.index("In debian:6.12: Beyond the limit")
    assert verdict < words.index("In guest: Within the limit"), "the worse one first"


def test_each_one_s_report_follows_and_its_command_gives_it_again(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    command = ("series", "--quilt", "q", *ONTO, *WORKLOADS)
    both = ktrial(*command, *BOTH, "-v", "--text", "reply.txt", "--markdown", "summary.md")
    for config in ("guest", "debian:6.12"):
        alone = ktrial(*command, "--config", config, "-v")
        assert alone.output in both.output
    assert Path("reply.txt").read_text() == both.output
    assert both.output.strip() in Path("summary.md").read_text()
    assert "options of the configuration that did not hold: LOST" in both.output
    assert all(len(line) <= 75 for line in both.output.splitlines())


def test_json_has_both_and_the_worse_decision(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    printed = json.loads(ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *BOTH, "--json").output)
    assert printed["decision"] == "beyond"
    assert {name: one["decision"] for name, one in printed["configurations"].items()} == {
        "guest": "within",
        "debian:6.12": "beyond",
    }
    assert "--config guest,debian:6.12" in printed["command"]


def test_the_terminal_shows_rows_and_verdict(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-4", "doc")
    printed = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *BOTH)
    assert printed.status == 1
    assert len(printed.output.splitlines()) <= 25
    assert "fork +1.20%" in printed.output
    assert "In debian:6.12: Beyond the limit" in " ".join(printed.output.split())


def test_both_are_measured_in_the_workloads_that_were_chosen_in_either(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "only-debian-cost-pipe-20")
    printed = json.loads(ktrial("series", "--quilt", "q", *ONTO, *BOTH, "--json").output)
    guest, debian = printed["configurations"].values()
    assert guest["workloads"] == []
    assert "pipe" in debian["workloads"]
    assert guest["patches"][0]["state"] == "not compiled"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--config", "guest,guest"), "two different ones"),
        (("--config", "guest,"), "two different ones"),
        (("--config", "guest,defconfig,debian"), "two different ones"),
        ((*BOTH, "--every", "2"), "--every looks for changes in one configuration"),
        ((*BOTH, "--html", "page.html"), "a page shows one configuration"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_built(
    arguments: tuple[str, ...], problem: str, ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    result = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *arguments)
    assert result.status == 2
    assert problem in " ".join(result.messages.split())
    assert not Path("ktrial.db").exists()


def test_a_kernel_has_one_configuration(ktrial: CommandLine) -> None:
    result = ktrial("kernel", "build", "debian:linux-source-6.1", *BOTH)
    assert result.status == 2
    assert "a kernel has one configuration; ktrial series compares two" in " ".join(result.messages.split())


def test_the_plan_has_an_estimate_for_each(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    planned = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *BOTH, "--dry-run").output
    assert re.findall(r"^(\S+): at most", planned, re.MULTILINE) == ["guest", "debian:6.12"]


@pytest.mark.parametrize(("modules", "told"), [(3000, True), (3, False)])
def test_a_file_with_many_modules_is_told_with_what_leaves_them_out(
    modules: int, told: bool, ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    Path("shipped").write_text("".join(f"CONFIG_M{number}=m\n" for number in range(modules)))
    planned = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, "--config", "shipped", "--dry-run").output
    note = "note: shipped has 3,000 modules, all built: --config reached:shipped takes what guests reach"
    assert (note in planned) == told


def test_the_first_build_of_what_people_ship_is_no_change_of_another_one_s_tree(
    ktrial: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_series(tmp_path / "q", "cost-fork-4")
    monkeypatch.setattr("ktrial.series.estimate.has_kept_trees", lambda: True)
    planned = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, *BOTH, "--dry-run").output
    guest, debian = re.findall(r"^\S+: (at most .*)", planned, re.MULTILINE)
    assert "1 of them whole, or nearly" not in guest
    assert "1 of them whole, or nearly" in debian


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "only planned"])
def test_what_does_not_apply_is_told_first_and_is_no_kernel_of_the_estimate(
    dry: tuple[str, ...], ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-4", "unapplied", "unapplied-too")
    said = ktrial("series", "--quilt", "q", *ONTO, *WORKLOADS, "--rebuild", "0", *dry)
    planned = said.output if dry else said.messages
    assert "2 of 3 do not apply" in planned
    assert "at most 2 kernels to compile" in planned.replace("\u00a0", " ")
    assert dry or planned.index("2 of 3 do not apply (2, 3)") < planned.index("base: building")
