"""`ktrial run` of a study that builds its kernels, from the command line to what is printed and written."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import FakeBuilder
from tests.support.scripted import ScriptedMachine
from tests.unit.analysis.test_interactions import priced

STUDY = """\
question = "Do they depend on each other?"
workloads = ["fork", "syscall"]
[machine]
kernel = "guest"
[kernels.guest]
source = "debian:linux-source-6.1"
make = { KCFLAGS = "-O2" }
[factors.scheduler]
kind = "patch"
levels = ["", "?"]
[factors.allocator]
kind = "kconfig"
levels = ["SLUB=y", "SLAB=y"]
"""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "store" / "ktrial.db"))
    monkeypatch.delenv("COLUMNS", raising=False)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "crossed.toml"
    path.write_text(STUDY)
    here = tmp_path / "here"
    here.mkdir()
    (here / "my.patch").write_text("a patch")
    monkeypatch.chdir(here)
    return path


def test_the_patch_is_named_on_the_command_line(cli: CommandLine, study: Path) -> None:
    result = cli("run", study)
    assert result.status == 2
    assert 'the level "?" is a patch that you name' in result.messages
    assert f"hint: ktrial run {study} --patch FILE" in result.messages.replace("\n", " ")
    missing = cli("run", study, "--patch", "other.patch")
    assert missing.status == 2
    assert "factors.scheduler.levels[1]" in missing.messages


def test_the_interaction_and_the_builds_reach_terminal_json_and_reports(
    cli: CommandLine, study: Path, tmp_path: Path
) -> None:
    builds = FakeBuilder()
    cli.machine(ScriptedMachine(priced), builds)
    printed = cli("run", study, "--patch", "my.patch", "--html", tmp_path / "r.html", "-v")
    assert printed.status == 0, printed.messages
    assert "build 4 of 4: building" in printed.messages
    assert "scheduler and allocator interact in 1 of 2 workloads" in " ".join(printed.output.split())
    line = next(line for line in printed.output.splitlines() if line.startswith("fork") and "7.12" in line)
    assert line.split() == [
        "fork",
        "+3.00",
        "%",
        "+7.12",
        "%",
        "+4.00",
        "%",
        "+4.00",
        "…",
        "+4.00",
        "✗",
        "worse",
    ]

    again = cli("run", study, "--patch", "scheduler=my.patch", "--json", "--no-html")
    assert len(builds.built) == 4, "everything is in the store"
    result = json.loads(again.output)
    [fork, syscall] = result["interactions"]
    assert fork["ratio"] == pytest.approx(1.04)
    assert fork["treatments"][3] == "scheduler=my.patch · SLAB=y"
    assert (fork["verdict"], syscall["verdict"]) == ("worse", "equivalent")
    last = result["builds"][-1]
    assert last["source"] == "debian:linux-source-6.1"
    assert last["config"] == "guest"
    assert last["options"] == {"CONFIG_SLAB": "y"}
    assert last["make"] == {"KCFLAGS": "-O2"}
    assert last["patches"][0]["path"] == str(tmp_path / "here" / "my.patch")
    assert len(last["patches"][0]["digest"]) == 64
    assert last["compiler"] == "gcc 12.2"
    assert last["treatments"] == ["scheduler=my.patch · SLAB=y"]

    page = (tmp_path / "r.html").read_text()
    assert "Interactions</a>" in page
    assert 'data-label="with SLUB=y"' in page, "on a narrow screen each effect carries its heading"
    assert page.count('<div style="flex: ') == 1, "three treatments, two a row: the last row has room"
    assert "gcc 12.2" in page
    assert "[kernels.guest]" in page
    assert "ktrial kernel add guest" not in page, "the study builds it"
    markdown = cli("report", "crossed", "--markdown").output
    assert "Interaction: scheduler=my.patch and SLAB=y" in markdown.replace("\\", "")
    assert "built from: Source: debian:linux-source-6.1" in markdown


def test_a_stored_study_is_found_by_its_file_without_the_patch(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine(priced), FakeBuilder())
    cli("run", study, "--patch", "my.patch", "--no-html")
    shown = cli("show", study)
    assert shown.status == 0, shown.messages
    assert "scheduler and allocator interact" in " ".join(shown.output.split())
