"""`--dry-run` of run, compare, scale, try and matrix: the plan is told, and nothing is done."""

import json
import os
import re
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.command_line import STUDY, CommandLine
from tests.support.fake_builds import FakeBuilder
from tests.support.scripted import ScriptedMachine
from tests.unit.kernels.test_kernels_debian import PACKAGES

from ktrial.kernels.packages.apt import INDEX_FORMAT


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "store" / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "upgrade.toml").write_text(STUDY)
    return CommandLine(monkeypatch, capsys)


TWO = ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "fork")


@pytest.mark.parametrize(
    ("words", "blocks"),
    [
        (("run", "upgrade.toml"), 2),
        (("compare", *TWO), 3),
        (("try", *TWO), 2),
        (("matrix", "debian:6.1,debian:6.12", "fork"), 3),
    ],
    ids=["run", "compare", "try", "matrix"],
)
def test_the_plan_is_told_and_nothing_runs(
    words: tuple[str, ...], blocks: int, cli: CommandLine, tmp_path: Path
) -> None:
    machine = ScriptedMachine()
    cli.machine(machine)
    result = cli(*words, "--dry-run")
    assert result.status == 0
    assert f"2 treatments in {blocks} blocks, {2 * blocks} in all; 0 are stored" in result.output
    assert re.search("kernel debian:6.12(:cloud)? has to be downloaded", result.output)
    assert "nothing was built, booted or measured" in result.output
    assert not machine.prepared
    assert not (tmp_path / "store").exists()


def test_stored_trials_are_counted_and_need_no_kernel(cli: CommandLine) -> None:
    cli.machine(ScriptedMachine())
    assert cli("run", "upgrade.toml", "--no-html").status == 0
    plan = json.loads(cli("run", "upgrade.toml", "--dry-run", "--json").output)
    assert (plan["trials"], plan["stored"], plan["kernels"]) == (4, 4, {})
    assert "nothing is left to run" in cli("run", "upgrade.toml", "--dry-run").output


def test_more_blocks_than_are_stored_are_told_with_their_kernels(cli: CommandLine) -> None:
    cli.machine(ScriptedMachine())
    plan = json.loads(cli("run", "upgrade.toml", "--dry-run", "--json", "--perturbations", "5").output)
    assert plan["study"] == "upgrade"
    assert plan["workloads"] == ["fork", "pipe"]
    assert plan["kernels"] == {"debian:6.1": "unlisted", "debian:6.12": "unlisted"}, "no lists are here"
    assert (plan["treatments"], plan["perturbations"], plan["trials"], plan["stored"]) == (2, 5, 10, 0)
    assert plan["may_end_early"] is False


def with_lists(cache: Path, hours: float) -> None:
    """As apt left them so long ago, with two kernels."""
    lists = cache / "kernels" / "providers" / "debian"
    lists.mkdir(parents=True)
    packages = [asdict(one) for one in PACKAGES]
    index = lists / "index.json"
    index.write_text(json.dumps({"format": INDEX_FORMAT, "packages": packages, "problems": []}))
    moment = time.time() - hours * 3600
    os.utime(index, (moment, moment))


def test_a_kernel_that_the_lists_do_not_have_is_told_before_anything_is_done(
    cli: CommandLine, tmp_path: Path
) -> None:
    cli.machine(ScriptedMachine())
    with_lists(tmp_path / "cache", hours=1)
    result = cli("compare", "6.1", "6.99", "fork", "--dry-run")
    assert result.status == 1
    assert "debian:6.99" in result.messages
    assert "no suite of the configured mirrors holds version 6.99" in result.messages
    plan = json.loads(cli("compare", "6.1", "6.12", "fork", "--dry-run", "--json").output)
    assert plan["kernels"] == {"debian:6.1": "fetched", "debian:6.12": "fetched"}


def test_what_old_lists_do_not_have_the_run_looks_for(cli: CommandLine, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    with_lists(tmp_path / "cache", hours=7)
    result = cli("compare", "6.1", "6.99", "fork", "--dry-run")
    assert result.status == 0
    assert (
        "kernel debian:6.99 has to be downloaded, if there is one: the run asks the mirrors" in result.output
    )
    assert "kernel debian:6.1 has to be downloaded, or read from its file" in result.output


BUILT = """\
question = "What does the option cost?"
perturbations = 1
workloads = ["fork"]
[factors.kernel]
levels = ["plain", "slab"]
[kernels.plain]
source = "debian:linux-source-6.1"
[kernels.slab]
source = "debian:linux-source-6.1"
options = { SLUB_DEBUG = "y" }
"""


def test_a_kernel_that_has_to_be_built_is_told_and_not_built(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "built.toml").write_text(BUILT)
    builder = FakeBuilder()
    cli.machine(ScriptedMachine(), builder)
    plan = json.loads(cli("run", "built.toml", "--dry-run", "--json").output)
    assert list(plan["kernels"].values()) == ["built", "built"]
    assert sum("SLUB_DEBUG=y" in name for name in plan["kernels"]) == 1
    assert not builder.built


def test_what_a_run_would_refuse_is_refused_by_its_dry_run(cli: CommandLine, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    text = STUDY.replace('[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]', "")
    table = '[machine]\nkernel = "debian:6.1"\n[factors."vm.swappiness"]\nlevels = [60, 10]\n'
    (tmp_path / "inert.toml").write_text(text + table)
    result = cli("run", "inert.toml", "--dry-run")
    assert result.status == 2
    assert "vm.swappiness cannot act" in result.messages
