"""Commits that are measured: taken back on the newer side, then on the way through the range."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.commit_trees import a_tree, commit
from tests.support.costly_commits import CostBuilder, answer
from tests.support.fake_builds import git
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.bisect.commits import CommitGround, CommitSearch, most_kernels
from ktrial.bisect.errors import BadBisection
from ktrial.errors import Interrupted
from ktrial.experiment.single_kernel import Runs
from ktrial.model.commits import CommitList, CommitProof, MeasuredHow, RankedCommit, Relation, Touch
from ktrial.model.kernel import Build
from ktrial.model.machine import Boot
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.report.commits import proof_answer
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult


class Range:
    """A tree with these commits on a base, ranked as a test says."""

    def __init__(self, place: Path, *subjects: str, ranked: tuple[int, ...] = ()) -> None:
        self.place = place
        self.tree = a_tree(place / "linux", "Linux 6.1", *subjects)
        self.names = git(self.tree, "rev-list", "--reverse", "HEAD").split()
        self.subjects = ("Linux 6.1", *subjects)
        self.builder = CostBuilder(self.tree)
        self.commits = self.listed(ranked)

    def listed(self, ranked: tuple[int, ...]) -> CommitList:
        touch = Touch(function="pipe_write", through="pipe_write", relation=Relation.OWN, share=1.0)
        rows = tuple(
            RankedCommit(
                place=at,
                commit=self.names[at],
                parent=self.names[at - 1],
                subject=self.subjects[at],
                author="",
                date="",
                share=1.0,
                touches=(touch,),
                files=(f"mm/{at}.c",),
            )
            for at in ranked
        )
        return CommitList(
            directory=str(self.tree),
            range="v6.1..tip",
            before=self.names[0],
            after=self.names[-1],
            commits=len(self.names) - 1,
            looked_at=len(rows),
            functions=1,
            ranked=rows,
        )

    def ground(self) -> CommitGround:
        plain = Build(source=f"git:{self.tree}@{self.names[0]}")
        return CommitGround(self.commits, plain, self.builder.builder)

    def proof(self, machine: ScriptedMachine | None = None, **more: object) -> CommitProof:
        with open_store(str(self.place / "x.db")) as store:
            resources = scripted_resources(builder=self.builder.builder)
            runs = Runs(store, machine=machine or ScriptedMachine(answer), resources=resources)
            measurement = Measurement((WorkloadUse(name="fork"),), perturbations=2)
            search = CommitSearch(self.ground(), measurement, runs)
            return replace(search, **more).run()  # type: ignore[arg-type]

    def measured(self, proof: CommitProof) -> list[tuple[int, str, float | None]]:
        return [(self.names.index(row.commit), row.how.value, row.effect) for row in proof.measured]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def ordinary(count: int, **costs: int) -> list[str]:
    """`c7=40`: the seventh costs that much."""
    return [f"mm: costs {costs.get(f'c{number}', 0)} ({number})" for number in range(1, count + 1)]


def test_the_first_that_explains_all_ends_it(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(6, c4=200), ranked=(4, 2, 5))
    proof = commits.proof()
    assert commits.measured(proof) == [(4, "taken back", 200.0)]
    assert (proof.difference, proof.unexplained, proof.kernels, proof.builds) == (200.0, 0.0, 3, 3)
    assert proof_answer(proof) == (
        f"Of +200 instructions per operation makes: {proof.causes[0].short} mm: costs 200 (4) +200 "
        "(100.0 %). Not explained: 0 (0.0 %)."
    )


def test_two_that_have_a_part_are_measured_together(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(6, c2=60, c4=140), ranked=(4, 1, 2))
    proof = commits.proof()
    assert [row[0] for row in commits.measured(proof)] == [4, 2, 1]
    assert [row.subject for row in proof.causes] == ["mm: costs 140 (4)", "mm: costs 60 (2)"]
    assert (proof.together, proof.unexplained, proof.kernels) == (200.0, 0.0, 6)


def test_where_those_leave_much_the_range_is_searched(tmp_path: Path) -> None:
    subjects = ordinary(40, c29=300)
    commits = Range(tmp_path, *subjects, ranked=(5, 9, 30, *range(10, 29), 29, *range(31, 38)))
    proof = commits.proof()
    assert commits.measured(proof)[0] == (29, "step", 300.0)
    assert proof.causes[0].how is MeasuredHow.STEP
    first, more = most_kernels(commits.ground())
    assert proof.kernels <= first + more
    assert not proof.stopped


def test_a_commit_that_nothing_ranks_is_found_between_those_that_are(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(20, c13=300), ranked=(3, 8, 16))
    proof = commits.proof()
    assert commits.measured(proof)[0] == (13, "step", 300.0)


def test_what_does_not_come_off_alone_is_told_and_searched_for(tmp_path: Path) -> None:
    commits = Range(tmp_path, "mm: a", "mm: stuck costs 100", "mm: b", ranked=(2,))
    proof = commits.proof()
    assert {row.problem for row in proof.measured} == {
        "",
        "later commits build upon it: it does not come off alone",
    }
    assert [(row.subject, row.effect) for row in proof.causes] == [("mm: stuck costs 100", 100.0)]


def test_lines_that_moved_since_come_off_and_lines_that_changed_do_not(tmp_path: Path) -> None:
    commits = Range(tmp_path, "mm: a")
    lines = [f"int a{number};" for number in range(20)]
    revisions = []
    for subject, at, text in (
        ("start", 0, "int a0;"),
        ("fs: costs 30", 9, "int b;"),
        ("beside", 7, "int c;"),
        ("fs: costs 50", 15, "int d;"),
        ("over it", 15, "int e;"),
    ):
        lines[at] = text
        (commits.tree / "fs.c").write_text("\n".join(lines) + "\n")
        git(commits.tree, "add", ".")
        git(commits.tree, "commit", "--quiet", "--allow-empty", "--message", subject)
        revisions.append(git(commits.tree, "rev-parse", "HEAD"))
    commits.names = git(commits.tree, "rev-list", "--reverse", "HEAD").split()
    commits.subjects = tuple(git(commits.tree, "log", "--reverse", "--format=%s").splitlines())
    commits.commits = commits.listed(tuple(commits.names.index(revisions[at]) for at in (1, 3)))
    count = git(commits.tree, "count-objects")
    ground = commits.ground()
    assert ground.refusal(ground.without({revisions[1]})) == ""
    assert "does not come off alone" in ground.refusal(ground.without({revisions[3]}))
    (patch,) = ground.build_of(ground.without({revisions[1]})).patches
    assert "-int b;\n+int a9;" in Path(patch.path).read_text()
    assert git(commits.tree, "count-objects") == count


def test_chosen_commits_alone_are_taken_back(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(6, c4=200), ranked=(1, 4, 2))
    proof = commits.proof(chosen=(commits.names[2],))
    assert commits.measured(proof) == [(2, "taken back", 0.0)]
    assert "No commit was found that makes the difference of +200" in proof_answer(proof)


def test_a_range_whose_ends_do_not_differ_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadBisection, match="do not differ in fork instructions"):
        Range(tmp_path, *ordinary(3), ranked=(1,)).proof()


def test_branches_that_part_are_not_searched(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(3, c3=90), ranked=(1,))
    commits.commits = commits.commits.model_copy(update={"is_line": False})
    proof = commits.proof()
    assert "branches that part" in proof.stopped
    assert proof.kernels == 3


def test_a_budget_ends_it_after_the_two_ends(tmp_path: Path) -> None:
    proof = Range(tmp_path, *ordinary(6, c4=200), ranked=(4,)).proof(budget=0.0)
    assert (proof.kernels, proof.stopped) == (2, "the budget is used up")


def test_what_is_known_is_told_where_it_is_interrupted(tmp_path: Path) -> None:
    commits = Range(tmp_path, *ordinary(6, c4=100, c5=100), ranked=(4, 5))
    seen: list[CommitProof] = []

    def interrupted(boot: Boot, run: Run) -> StepResult:
        patches = boot.kernel.origin.build.patches if boot.kernel.origin.build else ()
        if any(Path(patch.path).name.startswith("0005-undo") for patch in patches):
            raise KeyboardInterrupt
        return answer(boot, run)

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        commits.proof(ScriptedMachine(interrupted), on_interruption=seen.append)
    assert [row.effect for row in seen[0].measured] == [100.0]
    assert seen[0].stopped == "it was interrupted"


def test_a_merge_is_a_step_that_holds_all_that_it_brings(tmp_path: Path) -> None:
    commits = Range(tmp_path, "mm: a", ranked=())
    git(commits.tree, "checkout", "--quiet", "-b", "side", commits.names[0])
    commit(commits.tree, "fs: costs 70", "fs/side.c")
    git(commits.tree, "checkout", "--quiet", "master")
    git(commits.tree, "merge", "--quiet", "--no-ff", "--message", "Merge: side", "side")
    commits.names = git(commits.tree, "rev-list", "--reverse", "--first-parent", "HEAD").split()
    commits.subjects = ("Linux 6.1", "mm: a", "Merge: side")
    commits.commits = commits.listed((1,))
    proof = commits.proof()
    assert [(row.subject, row.merge, row.effect) for row in proof.causes] == [("Merge: side", True, 70.0)]
