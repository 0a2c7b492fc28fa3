"""`ktrial explain --commits`: from two kernels to the commits of a tree that touch the difference."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.costly_commits import CostBuilder, answer
from tests.support.fake_builds import git, has_what_builds_need
from tests.support.scripted import ScriptedMachine, scripted_resources
from tests.unit.cli.test_cli_explain import BOTH, World

from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.store.store import Store


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World(tmp_path)
    monkeypatch.setattr("ktrial.experiment.trial.run_trial", made.run_trial)
    monkeypatch.setattr("ktrial.experiment.explain.default_resources", made.resources)
    monkeypatch.setattr("ktrial.machines.find", lambda name: made.machine)
    monkeypatch.setenv("KTRIAL_STORE", str(made.store))
    return made


@pytest.fixture
def cli(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """6.1 with vma_link; on the way to 6.12 it goes, mas_store comes, and something else changes."""
    place = tmp_path / "linux"
    (place / "mm").mkdir(parents=True)
    git(place, "init", "--quiet", "--initial-branch", "master")
    commit(place, "Linux 6.1", "mm/mmap.c", "int vma_link(int a)\n{\n\treturn a;\n}\n")
    git(place, "tag", "v6.1")
    commit(place, "mm: maple tree", "mm/mmap.c", "int mas_store(int a)\n{\n\treturn a + 1;\n}\n")
    commit(place, "mm: something else", "mm/slub.c", "int kfree(int a)\n{\n\treturn a;\n}\n")
    git(place, "tag", "v6.12")
    return place


def commit(place: Path, subject: str, path: str, text: str) -> None:
    (place / path).write_text(text)
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message", subject)


def test_the_commits_behind_a_difference_are_listed(cli: CommandLine, tree: Path) -> None:
    result = cli("explain", *BOTH, "--commits", f"git:{tree}")
    assert result.status == 0, result.messages
    title, beneath = result.output.splitlines()[:2]
    assert title.startswith("fork: debian:6.1:cloud → debian:6.12:cloud: +84 %")
    assert beneath == "2 commits in v6.1..v6.12: 1 touches what 3 functions do differently"
    row = next(line for line in result.output.splitlines() if "mm: maple tree" in line)
    assert "98.0  mas_store, vma_link" in row
    assert "a distribution's kernel of 6.1: its own patches are in none of these commits" in result.output
    assert "not found in the source: kmem_cache_alloc" in result.output
    assert "Most, 98.0 %: " in result.output
    assert " ".join(result.output.split()).endswith("What they touch is not yet what they cost.")


def test_the_list_as_json_has_every_commit_and_what_it_touches(cli: CommandLine, tree: Path) -> None:
    result = json.loads(cli("explain", *BOTH, "--commits", f"git:{tree}", "--json").output)
    commits = result["commits"]
    assert (result["difference"], commits["range"], commits["commits"]) == (420, "v6.1..v6.12", 2)
    (row,) = commits["ranked"]
    assert row["commit"] == git(tree, "rev-parse", "v6.12~1")
    assert {touch["function"]: touch["relation"] for touch in row["touches"]} == {
        "mas_store": "itself",
        "vma_link": "itself",
    }
    assert commits["proof"] is None


def test_a_range_may_be_given_instead(cli: CommandLine, tree: Path) -> None:
    result = cli("explain", *BOTH, "--commits", str(tree), "--range", "v6.12~1..v6.12")
    assert "None of the 1 commits in v6.12~1..v6.12 touches what functions do differently" in result.output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--range", "v6.1..v6.12"], "--range: it goes with --commits"),
        (["--commits", "TREE", "--candidates", "abc"], "--candidates: goes with --prove"),
        (["--commits", "TREE", "--prove", "--each"], "--each: each commit is taken back alone"),
        (["--commits", "TREE", "--prove", "--cpus", "2"], "--prove: shares are proven on the machine exact"),
        (["--commits", "git:/nowhere"], "there is no directory /nowhere"),
        (["--commits", "TREE", "--range", "v6.1"], "--range: v6.1 is not A..B"),
        (["--commits", "TREE", "--range", "v6.1..v6.13"], "it has no commit 'v6.13'"),
    ],
)
def test_mistakes_are_found_before_anything_is_counted(
    cli: CommandLine, world: World, tree: Path, words: list[str], problem: str
) -> None:
    result = cli("explain", *BOTH, *(str(tree) if word == "TREE" else word for word in words))
    assert result.status == 2
    assert problem in result.messages
    assert not world.counted


def test_a_tree_without_the_version_says_what_brings_it(cli: CommandLine, world: World, tree: Path) -> None:
    git(tree, "tag", "--delete", "v6.12")
    result = cli("explain", *BOTH, "--commits", str(tree))
    assert result.status == 2
    assert "debian:6.12:cloud is 6.12, and the tree has neither a tag v6.12" in result.messages
    assert "fetch --tags" in result.messages
    assert not world.counted


def test_one_kernel_has_no_commits_between(cli: CommandLine, world: World, tree: Path) -> None:
    result = cli("explain", *BOTH[2:], "--to-boot", "quiet", "--commits", str(tree))
    assert result.status == 2
    assert "both treatments boot one kernel" in result.messages


@pytest.fixture
def costs(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CostBuilder:
    """A commit more, which costs 40 of 1000 and touches as much as the first."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    commit(tree, "mm: costs 40", "mm/mmap.c", "int mas_store(int a)\n{\n\treturn a + 2;\n}\n")
    git(tree, "tag", "--force", "v6.12")
    builder = CostBuilder(tree)

    def runs(store: Store, observer: Observer, _jobs: int | None) -> Runs:
        return Runs(store, observer, 1, ScriptedMachine(answer), scripted_resources(builder=builder.builder))

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
    return builder


def test_what_the_commits_make_is_measured(cli: CommandLine, tree: Path, costs: CostBuilder) -> None:
    result = cli("explain", *BOTH, "--commits", f"git:{tree}", "--prove")
    assert result.status == 0, result.messages
    name = git(tree, "rev-parse", "--short=12", "v6.12")
    assert "proving: both ends and 2 commits taken back" in result.messages.replace("\xa0", " ")
    text = " ".join(result.output.split())
    assert text.endswith(
        f"Of +40 instructions per operation makes: {name} mm: costs 40 +40 (100.0 %). "
        "Not explained: 0 (0.0 %)."
    )
    assert "both ends are built in the configuration guest" in text
    assert "measured: 3 kernels, 3 of them compiled for this" in text.replace("\xa0", " ")


def test_a_proof_as_json_has_every_commit_that_was_measured(
    cli: CommandLine, tree: Path, costs: CostBuilder
) -> None:
    name = git(tree, "rev-parse", "v6.12")
    result = cli("explain", *BOTH, "--commits", f"git:{tree}", "--prove", "--candidates", name[:7], "--json")
    proof = json.loads(result.output)["commits"]["proof"]
    assert [(row["commit"], row["how"], row["effect"], row["share"]) for row in proof["measured"]] == [
        (name, "taken back", 40.0, 1.0)
    ]
    assert (proof["difference"], proof["unexplained"], proof["kernels"]) == (40.0, 0.0, 3)


def test_a_candidate_that_is_none_is_refused(cli: CommandLine, tree: Path, costs: CostBuilder) -> None:
    result = cli("explain", *BOTH, "--commits", f"git:{tree}", "--prove", "--candidates", "zzz")
    assert result.status == 2
    assert "--candidates: zzz begins the names of 0 commits of the list" in result.messages
    assert not costs.built
