"""Commits of a tree, ranked by what they touch of a difference between two profiles; nothing is built."""

from pathlib import Path

import pytest
from tests.support.fake_builds import git
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel

from ktrial.analysis.attribution.behaviour import behaviours
from ktrial.analysis.attribution.decomposition import explain
from ktrial.bisect.commit_ranking import ranked_commits
from ktrial.kernels.commits import CommitRange, git_tree, named_range, range_between
from ktrial.kernels.errors import KernelUsageError
from ktrial.model.attribution import Attribution, Differences
from ktrial.model.commits import CommitList, Relation
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.profile import CallNode, FunctionFiles, Profile

PIPE = """\
#include <linux/pipe.h>

static int pipe_max = 16;

int pipe_read(struct pipe *pipe)
{
	return pipe->tail;
}

int pipe_write(struct pipe *pipe)
{
	return pipe_full(pipe) ? pipe_max : 0;
}
"""
HEADER = """\
struct pipe {
	int head, tail;
};
static inline int pipe_full(struct pipe *pipe)
{
	return pipe->head - pipe->tail == 16;
}
"""
FILES = {
    "fs/pipe.c": PIPE,
    "include/linux/pipe.h": HEADER,
    "mm/mmap.c": "int do_mmap(int a)\n{\n\treturn a;\n}\n",
}
FILES_OF = FunctionFiles(files={"do_mmap": "mm/mmap.c"})


class Tree:
    """A git tree, changed commit by commit."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        git(place, "init", "--quiet", "--initial-branch", "master")
        for path, text in FILES.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        self.commit("Linux 6.1")
        git(place, "tag", "v6.1")

    def commit(self, subject: str) -> str:
        git(self.place, "add", ".")
        git(self.place, "commit", "--quiet", "--allow-empty", "--message", subject)
        return git(self.place, "rev-parse", "HEAD")

    def change(self, subject: str, path: str, old: str, new: str) -> str:
        text = (self.place / path).read_text()
        assert text.count(old) >= 1
        (self.place / path).write_text(text.replace(old, new, 1))
        return self.commit(subject)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "linux")


def difference(before: Profile, after: Profile) -> Attribution:
    explanation = explain(before, after, FILES_OF, FILES_OF)
    return Attribution(before=before, after=after, explanation=explanation, differences=Differences())


def profiled(**functions: int) -> Profile:
    return a_profile({(name, ""): count for name, count in functions.items()})


BEFORE = profiled(pipe_write=1000, pipe_read=1000, do_mmap=1000)


def listed(tree: Tree, **functions: int) -> CommitList:
    return ranked_commits(difference(BEFORE, profiled(**functions)), named_range(tree.place, "v6.1..HEAD"))


def subjects(commits: CommitList) -> list[tuple[str, int]]:
    return [(row.subject, round(100 * row.share)) for row in commits.ranked]


def test_commits_are_ranked_by_the_share_of_what_they_touch(tree: Tree) -> None:
    tree.change("mmap: more", "mm/mmap.c", "return a", "return a + 1")
    tree.change("pipe: write", "fs/pipe.c", "pipe_max : 0", "pipe_max : 1")
    tree.change("pipe: read", "fs/pipe.c", "return pipe->tail", "return pipe->tail + 1")
    tree.change("pipe: a comment", "fs/pipe.c", "int pipe_write", "/* It waits. */\nint pipe_write")
    commits = listed(tree, pipe_write=1800, pipe_read=1000, do_mmap=1200)
    assert subjects(commits) == [("pipe: write", 80), ("mmap: more", 20)]
    assert (commits.commits, commits.functions, commits.unplaced) == (4, 2, ())


def test_what_is_inlined_and_data_count_and_structures_stand_behind(tree: Tree) -> None:
    tree.change("pipe: layout", "include/linux/pipe.h", "int head, tail", "long head, tail")
    tree.change("pipe: full", "include/linux/pipe.h", "== 16", ">= 16")
    tree.change("pipe: size", "fs/pipe.c", "pipe_max = 16", "pipe_max = 32")
    commits = listed(tree, pipe_write=1500, pipe_read=1000, do_mmap=1000)
    assert subjects(commits) == [("pipe: size", 100), ("pipe: full", 100), ("pipe: layout", 0)]
    assert [(row.touches[0].through, row.touches[0].relation) for row in commits.ranked] == [
        ("pipe_max", Relation.DATA),
        ("pipe_full", Relation.INLINED),
        ("struct pipe", Relation.STRUCTURE),
    ]
    assert commits.ranked[-1].by_structures == 1.0


def test_of_as_large_shares_the_larger_change_comes_first(tree: Tree) -> None:
    tree.change("pipe: many tokens", "fs/pipe.c", "pipe_max : 0", "pipe_max + 1 + 2 + 3 : 0")
    tree.change("pipe: few tokens", "fs/pipe.c", ": 0", ": 1")
    commits = listed(tree, pipe_write=1500, pipe_read=1000, do_mmap=1000)
    assert subjects(commits) == [("pipe: many tokens", 100), ("pipe: few tokens", 100)]


def a_chain(**functions: tuple[int, int]) -> Profile:
    """Each function called by the one before it: instructions in the region, and how often it is entered."""
    plain = profiled(**{name: count for name, (count, _) in functions.items()})
    root = CallNode(parent=0, function=-1, instructions=0, entered=0)
    nodes = [root, root]
    for place, (count, entered) in enumerate(functions.values()):
        parent = place + 1 if place else 0
        nodes.append(CallNode(parent=parent, function=place, instructions=count, entered=entered))
    counts = tuple(
        function.model_copy(update={"entered": functions[function.symbol][1]})
        for function in plain.region.functions
    )
    region = plain.region.model_copy(update={"nodes": tuple(nodes), "functions": counts})
    return plain.model_copy(update={"region": region})


def test_a_function_that_is_only_called_more_often_leads_to_its_caller() -> None:
    before = a_chain(ksys_write=(100, 10), pipe_write=(1000, 10))
    after = a_chain(ksys_write=(110, 10), pipe_write=(3000, 30))
    parts = {part.row.function: part for part in behaviours(difference(before, after))}
    assert (parts["pipe_write"].own, parts["pipe_write"].calls) == (0.0, 0.0)
    assert (parts["ksys_write"].own, parts["ksys_write"].calls) == (1.0, 200.0)


def test_a_function_that_the_tree_does_not_define_is_told(tree: Tree) -> None:
    tree.change("pipe: write", "fs/pipe.c", "pipe_max : 0", "pipe_max : 1")
    commits = listed(tree, pipe_write=1300, pipe_read=1000, do_mmap=1000, xfs_write=700)
    assert commits.unplaced == ("xfs_write",)
    assert commits.unplaced_share == pytest.approx(0.7)
    assert subjects(commits) == [("pipe: write", 30)]


def test_branches_that_part_leave_out_what_the_first_has_already(tree: Tree) -> None:
    there = tree.change("pipe: taken", "fs/pipe.c", "pipe_max : 0", "pipe_max : 1")
    tree.change("pipe: new", "fs/pipe.c", "return pipe_full", "return !pipe_full")
    git(tree.place, "tag", "v6.2")
    git(tree.place, "checkout", "--quiet", "-b", "stable", "v6.1")
    tree.change(f"pipe: taken\n\ncommit {there} upstream.", "fs/pipe.c", "pipe_max : 0", "pipe_max : 1")
    git(tree.place, "tag", "v6.1.1")
    commits = ranked_commits(
        difference(BEFORE, profiled(pipe_write=1500, pipe_read=1000, do_mmap=1000)),
        named_range(tree.place, "v6.1.1..v6.2"),
    )
    assert subjects(commits) == [("pipe: new", 100)]
    assert not commits.is_line
    assert "part at v6.1" in commits.notes[0]


# Which commits two kernels are.


def packaged(name: str, version: str) -> Kernel:
    return a_kernel(name, origin=Origin(provider="debian", source="linux-image", version=version))


def between(tree: Tree, first: str, second: str, **versions: str) -> CommitRange:
    def kernel(name: str) -> Kernel:
        return packaged(name, versions[name.partition(":")[2].replace(".", "_")])

    return range_between(tree.place, (first, second), kernel)


def test_kernels_are_found_by_their_commits_and_by_their_versions(tree: Tree) -> None:
    tip = tree.change("Linux 6.1.9", "fs/pipe.c", "16", "17")
    git_names = [f"git:{tree.place}@v6.1", f"git:{tree.place}@master"]
    assert between(tree, *git_names).text == "v6.1..master"
    by_version = between(tree, "debian:a", "debian:b", a="6.1.0-1", b="6.1.9-2")
    assert (by_version.after, by_version.text) == (tip, "v6.1..v6.1.9")
    assert "its own patches are in none of these commits" in by_version.notes[0]


def test_a_kernel_that_was_built_of_the_tree_is_its_commit(tree: Tree) -> None:
    tip = tree.change("pipe: write", "fs/pipe.c", "16", "17")

    def kernel(name: str) -> Kernel:
        build = Build(source=f"git:{tree.place}@master")
        origin = Origin(provider="build", source=build.source, version=tip[:12], build=build)
        return a_kernel(name, origin=origin)

    commits = range_between(tree.place, (f"git:{tree.place}@v6.1", "build:mine"), kernel)
    assert commits.after == tip


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("debian:a", "debian:b", "debian:b is 6.12.3, and the tree has neither a tag v6.12.3 nor a commit"),
        ("debian:b", "debian:a", "debian:b is 6.12.3"),
        ("debian:a", "debian:a", "Both kernels are the commit"),
        ("git:elsewhere@v7.0", "debian:a", "it has not the commit of git:elsewhere@v7.0"),
    ],
)
def test_kernels_that_the_tree_has_not_are_named(tree: Tree, first: str, second: str, problem: str) -> None:
    with pytest.raises(KernelUsageError, match=problem) as raised:
        between(tree, first, second, a="6.1-1", b="6.12.3-1")
    assert raised.value.exit_code == 2
    assert "--range A..B" in raised.value.advice


@pytest.mark.parametrize(
    ("text", "problem"),
    [("v6.1", "v6.1 is not A..B"), ("v6.1..v9", "it has no commit 'v9'"), ("HEAD..v6.1", "runs backwards")],
)
def test_a_range_that_is_none_is_refused(tree: Tree, text: str, problem: str) -> None:
    tree.commit("empty")
    with pytest.raises(KernelUsageError, match=problem):
        named_range(tree.place, text)


def test_a_directory_that_is_no_git_tree_is_refused(tmp_path: Path, tree: Tree) -> None:
    with pytest.raises(KernelUsageError, match="is no git tree"):
        git_tree(f"git:{tmp_path}")
    with pytest.raises(KernelUsageError, match="there is no directory"):
        git_tree("git:/nowhere/linux")
    with pytest.raises(KernelUsageError, match="it names a revision"):
        git_tree(f"git:{tree.place}@v6.1")
    assert git_tree(f"git:{tree.place}") == git_tree(str(tree.place)) == tree.place
