"""`series` from the command line: what it prints, writes and ends with; mistakes are told first."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.commit_trees import CommitBuilder, a_tree
from tests.support.commit_trees import runs as of_commits
from tests.support.fake_builds import a_source_tree, git, has_what_builds_need, requested
from tests.support.series import SeriesBuilder, a_series, runs

from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.patches import not_applying
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.model.kernel import PatchSeries
from ktrial.store.store import Store

ONTO = ("--onto", "debian:linux-source-6.1")
FORK = ("--workload", "fork")


@pytest.fixture
def ktrial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    monkeypatch.chdir(tmp_path)

    def scripted(store: Store, _observer: Observer, _jobs: int | None) -> Runs:
        return runs(store, SeriesBuilder())

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", scripted)
    monkeypatch.setattr("ktrial.kernels.build.requests.requested", requested)
    return CommandLine(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("names", "limit", "status"),
    [
        (("cost-fork-20",), "+1%", 1),
        (("cost-fork-20",), "+3%", 0),
        (("cost-fork-2", "broken"), "+1%", 125),
    ],
)
def test_it_ends_as_check_does(
    names: tuple[str, ...], limit: str, status: int, ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", *names)
    result = ktrial("series", "--quilt", "q", *ONTO, *FORK, "--max", limit, "-v")
    assert result.status == status, result
    assert result.output.startswith(f"ktrial series: {len(names)} patch")
    assert f"--max {limit}" in result.output


def test_the_report_goes_to_files_and_the_command_repeats_it(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "doc", "cost-fork-20")
    command = ("series", "--quilt", "q", *ONTO, *FORK)
    result = ktrial(*command, "--text", "reply.txt", "--markdown", "summary.md", "--html", "page.html", "-v")
    page = Path("page.html").read_text()
    assert "Change from the base after each patch: fork +2.00%" in page
    assert "mm: cost-fork-20" in page
    assert "<script" not in page
    assert Path("reply.txt").read_text() == result.output
    summary = Path("summary.md").read_text()
    assert "| 2 | mm: cost-fork-20 |" in summary
    assert "+2.00%" in summary
    (again,) = [
        line for line in result.output.splitlines() if line.strip().startswith("ktrial series --quilt")
    ]
    assert again.strip() == "ktrial series --quilt q --onto debian:linux-source-6.1 --workload fork"
    assert ktrial(*command, "-v").output == result.output


def test_a_workload_of_ones_own_is_offered_beside_the_built_in_ones(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-2")
    (tmp_path / "mine.toml").write_text('[workload]\nname = "mine"\ncommand = ["true"]\n')
    command = ("series", "--quilt", "q", *ONTO, "--candidate", "mine.toml", "--json")
    # Without profiles all that there are to choose from are measured.
    result = json.loads(ktrial(*command).output)
    assert "mine" in result["workloads"]
    assert "fork" in result["workloads"]
    assert "--candidate mine.toml" in result["command"]
    assert ktrial(*command, *FORK).status == 2
    (tmp_path / "mine.toml").unlink()
    assert ktrial(*command).status == 2


def test_a_c_file_is_compiled_and_offered_beside_the_built_in_workloads(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-2")
    (tmp_path / "reproducer.c").write_text("int main(void) { return 0; }\n")
    command = ("series", "--quilt", "q", *ONTO, "--candidate", "reproducer.c", "--json")
    assert "reproducer" in json.loads(ktrial(*command).output)["workloads"]
    (tmp_path / "reproducer.c").write_text("int main(void) { return nothing; }\n")
    refused = ktrial(*command)
    assert refused.status == 2
    assert "reproducer.c does not compile: reproducer.c:1:25: error:" in refused.messages


def test_json_has_every_patch_and_exact_numbers(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "doc", "cost-fork-20")
    result = json.loads(ktrial("series", "--quilt", "q", *ONTO, *FORK, "--json").output)
    assert [row["state"] for row in result["patches"]] == ["not compiled", "built"]
    (cell,) = result["patches"][1]["cells"]
    assert (cell["before"], cell["difference"], cell["decision"]) == ("1000", "20", "beyond")
    assert result["decision"] == "beyond"


def test_a_dry_run_builds_and_boots_nothing(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "doc", "cost-fork-20")
    result = ktrial("series", "--quilt", "q", *ONTO, *FORK, "--dry-run")
    assert result.status == 0
    assert "2 patches onto debian:linux-source-6.1" in result.output
    planned = result.output.replace("\u00a0", " ").splitlines()[-1]
    again = "(1 of them from nothing, to compare; 1 of them whole, or nearly)"
    assert planned.startswith(f"at most 3 kernels to compile {again}, 3 to boot and 9 trials to run;")


def test_the_trees_own_file_names_workloads_and_limits_by_path(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-20")
    tree = a_source_tree(tmp_path / "linux")
    file = tree / ".ktrial.toml"
    file.write_text('[paths."mm/"]\nworkloads = ["fork"]\nmax = "+3%"\n[paths."fs/"]\nmax = "+0.5%"\n')
    command = ("series", "--quilt", "q", "--onto", "linux", "--trust")
    by_file = "by .ktrial.toml of the base: mm: fork, +3 %"
    planned = ktrial(*command, "--dry-run").output.replace("\u00a0", " ")
    assert f"note: {by_file}" in planned
    result = ktrial(*command, *FORK, "-v")
    assert result.status == 0, "2 % is within the tree's 3 %"
    assert by_file in " ".join(result.output.replace("\u00a0", " ").split())
    assert ktrial(*command, *FORK, "--max", "+1%").status == 1, "the command line counts first"
    file.write_text('[paths."mm/"]\nworkloads = ["mmap"]\nmax = "+3%"\n')
    assert json.loads(ktrial(*command, "--json").output)["workloads"][0] == "mmap"
    file.write_text('[paths."mm/"]\nworkloads = ["./run-me.sh"]\n')
    refused = ktrial(*command, *FORK)
    assert (refused.status, 'there is no workload "./run-me.sh"' in refused.messages) == (2, True), refused
    assert ktrial(*command, *FORK, "--max", "+3%").status == 0, "it is not read where it would say nothing"


def test_what_is_fetched_of_a_source_package_is_told(
    ktrial: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(_path: Path, base: str, progress: Progress) -> PatchSeries:
        progress("fetching the package", 1, 2)
        progress("unpacking linux-source-6.1")
        return series_in_quilt(a_series(tmp_path / "q", "doc"), base)

    monkeypatch.setattr("ktrial.kernels.patch_series.series_in_package", fetched)
    result = ktrial("series", "--quilt", "debian:linux-source-6.1/patches-rt", *ONTO, "--dry-run")
    assert (result.status, "unpacking linux-source-6.1" in result.messages) == (0, True), result


def test_a_dry_run_says_what_does_not_apply(
    ktrial: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scripted(store: Store, _observer: Observer, _jobs: int | None) -> Runs:
        given = runs(store, SeriesBuilder())
        builder = replace(given.resources.builder, not_applying=not_applying)
        return replace(given, resources=replace(given.resources, builder=builder))

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", scripted)
    tree = a_source_tree(tmp_path / "linux")
    (tree / "mm").mkdir()
    for name in ("one", "two"):
        (tree / f"mm/{name}.c").write_text("int a;\n")
    a_series(tmp_path / "q", "one", "three", "two", "one-again")
    again = (tmp_path / "q/one-again.patch").read_text().replace("one-again.c", "one.c")
    (tmp_path / "q/one-again.patch").write_text(again.replace("-int a;", "-long one;"))
    command = ("series", "--quilt", "q", "--onto", str(tree), *FORK, "--dry-run")
    result = ktrial(*command)
    assert result.status == 0, result
    (printed,) = [line for line in result.output.splitlines() if "does not apply" in line]
    assert "mm/three.c" in printed
    assert "1 of 4 do not apply" in result.output
    refused = json.loads(ktrial(*command, "--json").output)["refused"]
    assert list(refused) == ["2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "none was given"),
        (("--quilt", "q"), "--quilt says nothing of the source"),
        (("a..b", "--quilt", "q", *ONTO), "BASE..TIP and --quilt were given"),
        (("a..b", *ONTO), "commits have their own base"),
        (("--git", ".", "--quilt", "q", *ONTO), "--git goes with BASE..TIP"),
        (("--quilt", "nowhere", *ONTO), "there is no such directory"),
        (("--quilt", "q", *ONTO, *FORK, "--max", "much"), "much"),
        (("--quilt", "q", *ONTO, "--max", "much"), "much"),
        (("--quilt", "q", *ONTO, "--max", "much", "--dry-run"), "much"),
        (("--quilt", "q", *ONTO, *FORK, "--max", "pipe=1%"), "pipe is none of the workloads, fork"),
        (("--quilt", "q", *ONTO, "--text", "no/where.txt"), "no/where.txt"),
        (("--quilt", "q", *ONTO, "frok"), "frok"),
        (("q/cost-fork-20.patch", "q/cost-fork-20.patch", *ONTO), "several files of patches were given"),
        (("--quilt", "q", *ONTO, *FORK, "--route", "--cpus", "2"), "--route compares one CPU with several"),
    ],
)
def test_a_mistake_is_told_before_anything_is_built(
    words: tuple[str, ...], message: str, ktrial: CommandLine, tmp_path: Path
) -> None:
    a_series(tmp_path / "q", "cost-fork-20")
    result = ktrial("series", *words)
    assert result.status in {2, 128}
    assert message in " ".join(result.messages.split())
    assert "building" not in result.messages


@pytest.mark.parametrize("patches", [("--mbox", "x.mbx"), ("--quilt", "q")])
def test_patches_of_others_are_not_built_without_a_sandbox_unless_they_are_trusted(
    patches: tuple[str, str], ktrial: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "there is none")
    patch = (a_series(tmp_path / "q", "cost-fork-2") / "cost-fork-2.patch").read_text()
    (tmp_path / "x.mbx").write_text(f"From a Mon Sep 17 00:00:00 2001\nFrom: a@b\n{patch}")
    command = ("series", *patches, *ONTO, *FORK)
    refused = ktrial(*command)
    assert (refused.status, "--trust" in refused.messages) == (128, True)
    assert ktrial(*command, "--trust").status == 0


def test_a_file_of_patches_may_stand_where_commits_do(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-2")
    alone = ktrial("series", "q/cost-fork-2.patch", "fork", *ONTO, "--dry-run")
    assert (alone.status, "1 patch onto debian:linux-source-6.1" in alone.output) == (0, True)
    assert "1 patch onto" in ktrial("series", "q", "fork", *ONTO, "--dry-run").output
    above = f"../{tmp_path.name}/q/cost-fork-2.patch"
    assert "1 patch onto" in ktrial("series", above, "fork", *ONTO, "--dry-run").output


def test_mails_that_name_their_base_commit_need_no_onto(ktrial: CommandLine, tmp_path: Path) -> None:
    patch = (a_series(tmp_path / "q", "cost-fork-2") / "cost-fork-2.patch").read_text()
    git(tmp_path, "init", "-q", "-b", "main", "tree")
    tree = tmp_path / "tree"
    git(tree, "commit", "-q", "--allow-empty", "-m", "base")
    (base,) = git(tree, "rev-parse", "HEAD").split()

    def box(commit: str) -> None:
        (tmp_path / "x.mbx").write_text(
            f"From a Mon Sep 17 00:00:00 2001\nFrom: a@b\n{patch}\n-- \nbase-commit: {commit}\n"
        )

    box(base)
    command = ("series", "--mbox", "x.mbx", *FORK, "--dry-run")
    assert f"git:{tree}@{base}" in ktrial(*command, "--git", tree).output
    box("0" * 40)
    elsewhere = ktrial(*command, "--git", tree)
    assert elsewhere.status == 2
    assert f"its base-commit 000000000000 is not in {tree}" in " ".join(elsewhere.messages.split())
    assert "--git DIR names a tree that has it; or give --onto SOURCE" in elsewhere.messages


def test_history_draws_the_commits_that_a_series_measured(
    ktrial: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = a_tree(tmp_path / "linux", "base 1000", "a 1000", "slower 1100", "b 1100")

    def scripted(store: Store, _observer: Observer, _jobs: int | None) -> Runs:
        return of_commits(store, CommitBuilder(tree))

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", scripted)
    command = ("--git", tree, "--json")
    assert ktrial("series", "HEAD~3..HEAD", *command, *FORK, "--every", "3").status == 1
    assert ktrial("series", "HEAD~3..HEAD", *command, *FORK, "--thorough").status == 2
    thorough = json.loads(
        ktrial("series", "HEAD~3..HEAD", *command, *FORK, "--every", "3", "--thorough").output
    )
    assert ("--thorough" in thorough["command"], len(thorough["patches"])) == (True, 3)
    history = ("history", "fork", "--commits", "HEAD~3..HEAD", "--git", tree)
    result = ktrial(*history, "--html", "page.html")
    assert result.status == 0, result
    assert "slower 1100" in result.output
    assert "4 of 4 commits have a number" in result.output
    assert "slower 1100" in Path("page.html").read_text()
    printed = json.loads(ktrial(*history, "--json").output)
    assert (printed["commits"], printed["measured"], len(printed["lines"][0]["changes"])) == (4, 4, 1)
    nothing = ktrial(*history, "--config", "defconfig")
    assert (nothing.status, "--config defconfig" in nothing.messages) == (1, True), nothing


def test_the_machine_and_its_model_are_those_that_are_asked_for(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "cost-fork-20")
    command = ("series", "--quilt", "q", *ONTO, *FORK)
    parallel = ktrial(*command, "--machine", "exact-parallel", "--cpus", "1", "-v")
    assert "nanoseconds of guest time per operation, in QEMU;" in " ".join(parallel.output.split())
    assert "--cpus 1 --machine exact-parallel" in " ".join(parallel.output.split())
    assert "by guest time, simulated, not real" in " ".join(parallel.output.split())
    result = json.loads(ktrial(*command, "--model", "small", "--json").output)
    assert (result["machine"]["kind"], result["machine"]["model"]["name"]) == ("exact", "small")
    assert result["command"].endswith("--model small --workload fork")
    both = json.loads(ktrial(*command, "--route", "--json").output)
    (cell,) = both["patches"][0]["cells"]
    assert cell["on_several"]["cpus"] == 4
    assert (cell["metrics"], both["decision"]) == (cell["on_several"]["metrics"], "beyond")
    assert both["command"].endswith("--workload fork --route")
    for words in (("--machine", "exact-parallel"), ("--cpus", "2")):
        refused = ktrial(*command, *words, "--model", "default")
        assert (refused.status, "--model" in refused.messages) == (2, True), refused
    unknown = ktrial(*command, "--model", "nowhere.toml")
    assert (unknown.status, "nowhere.toml" in unknown.messages) == (2, True), unknown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--git", "."), "it goes with --commits"),
        (("--commits", "a..b", "--kernels", "6.1..6.2"), "in their own order"),
        (("--commits", "a..b", "--by-time"), "in their own order"),
    ],
)
def test_options_of_history_that_contradict_each_other(
    words: tuple[str, ...], message: str, ktrial: CommandLine
) -> None:
    result = ktrial("history", "fork", *words)
    assert (result.status, message in " ".join(result.messages.split())) == (2, True), result


def test_the_terminal_has_25_lines_and_the_answer_last(ktrial: CommandLine, tmp_path: Path) -> None:
    a_series(tmp_path / "q", "doc", "cost-fork-20", "cost-fork-2")
    lines = ktrial("series", "--quilt", "q", *ONTO, *FORK).output.splitlines()
    assert len(lines) <= 25
    assert next(line for line in lines if "cost-fork-20" in line).split()[-1] == "+2.00%"
    assert "Beyond the limit: patch 2 in fork +2.00%" in " ".join(lines[-2:])
