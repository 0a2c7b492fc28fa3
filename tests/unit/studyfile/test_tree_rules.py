"""`.ktrial.toml` of a tree: workloads and limits by path. The tree may be a stranger's: hostile files."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.fake_builds import git

from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.tree_rules import LARGEST, NAME, TreeRules, rules_in

NAMES = ("fork", "mmap", "page-fault", "pipe")
RULES = """\
[paths."mm/"]
workloads = ["fork", "mmap"]
max = "+0.5%"

[paths."mm/slub.c"]
workloads = ["pipe"]

[paths."fs"]
max = "2 %"
"""


def a_tree(directory: Path, text: str | bytes) -> Path:
    directory.mkdir(exist_ok=True)
    content = text.encode() if isinstance(text, str) else text
    (directory / NAME).write_bytes(content)
    return directory


def committed(directory: Path) -> str:
    """The tree as a commit; what stands for it."""
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=a")
    head = subprocess.run(
        ["git", "-C", directory, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return f"git:{directory}@{head.stdout.strip()}"


def rules(place: Path, text: str = RULES) -> TreeRules:
    return rules_in(str(a_tree(place / "linux", text)), NAMES)


@pytest.mark.parametrize(
    ("paths", "workloads"),
    [
        (["mm/memory.c"], ("fork", "mmap")),
        (["mm/slub.c"], ("pipe",)),
        (["mm/slub.c", "mm/kasan/init.c"], ("fork", "mmap", "pipe")),
        (["mmap/memory.c", "kernel/mm/a.c", "mm"], ("fork", "mmap")),
        (["mmap/memory.c", "kernel/mm/a.c"], ()),
        (["fs/pipe.c"], ()),
        ([], ()),
    ],
    ids=str,
)
def test_of_each_file_the_longest_path_counts(
    paths: list[str], workloads: tuple[str, ...], tmp_path: Path
) -> None:
    assert rules(tmp_path).of(paths).workloads == workloads


def test_a_limit_is_that_of_the_rules_workloads_and_of_all_where_it_names_none(tmp_path: Path) -> None:
    usual = dict.fromkeys(NAMES, 0.01)
    of_mm, of_both = (rules(tmp_path).of(paths) for paths in (["mm/a.c"], ["mm/a.c", "fs/a.c"]))
    assert of_mm.limits(usual) == usual | {"fork": 0.005, "mmap": 0.005}
    assert of_both.limits(usual) == {"fork": 0.005, "mmap": 0.005, "page-fault": 0.02, "pipe": 0.02}
    assert of_both.options(["fork", "pipe"]) == ["fork=+0.5%", "pipe=+2%"]
    assert of_mm.options(["pipe"]) == []


def test_they_are_told_in_a_line(tmp_path: Path) -> None:
    told = str(rules(tmp_path).of(["mm/slub.c", "fs/a.c"])).replace("\u00a0", " ")
    assert told == "by .ktrial.toml of the base: mm/slub.c: pipe; fs: +2 %"
    assert str(TreeRules()) == ""


def test_a_commits_own_file_is_read_and_not_that_of_the_work_tree(tmp_path: Path) -> None:
    commit = committed(a_tree(tmp_path / "linux", RULES))
    a_tree(tmp_path / "linux", "no TOML")
    read = rules_in(commit, NAMES)
    assert read.workloads == ("fork", "mmap", "pipe")
    assert read.file == f"{commit.rpartition('@')[2][:12]}:{NAME}"


@pytest.mark.parametrize("source", ["debian:linux-source-6.1", "linux.tar.xz", "nowhere"])
def test_a_source_without_the_file_has_no_rules(source: str, tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(b"")
    assert rules_in(source if ":" in source else str(tmp_path / source), NAMES) == TreeRules()
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux" / "Makefile").touch()
    assert rules_in(committed(tmp_path / "linux"), NAMES) == TreeRules()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[paths."mm/"]\nworkloads = ["forc"]', ':2: paths."mm/".workloads[0]: there is no workload "forc"'),
        ('[paths."mm/"]\nworkloads = ["./x.toml"]', ':2: paths."mm/".workloads[0]: there is no workload'),
        (
            '[paths."mm/"]\nworkloads = [["rm"]]',
            ':2: paths."mm/".workloads[0]: found a list; allowed: a list',
        ),
        ('[paths."mm/"]\ncommand = ["rm"]', ':2: paths."mm/".command: there is no key "command"'),
        ('[paths."mm/"]\nmax = "-1%"', ':2: paths."mm/".max: found "-1%": a margin lies above 0 %'),
        ('[paths."mm/"]\nmax = "100%"', ':2: paths."mm/".max: found "100%": a margin lies above 0 %'),
        ('[paths."mm/"]\nmax = 0.5', ':2: paths."mm/".max: found 0.5; allowed: the largest change'),
        ('[paths."mm/"]\nmax = "soon"', ':2: paths."mm/".max: found "soon": '),
        ('[paths."mm/"]', ':1: paths."mm/": the table is empty'),
        ('[paths."/etc"]\nmax = "1%"', ':1: paths."/etc": a path leads down from the top of the tree'),
        ('[paths."../x"]\nmax = "1%"', ':1: paths."../x": a path leads down'),
        ('[paths."a/../x"]\nmax = "1%"', ':1: paths."a/../x": a path leads down'),
        ('[paths."a\\u0000"]\nmax = "1%"', ":1: paths."),
        (f'[paths."{"a" * 201}"]\nmax = "1%"', ": a path leads down"),
        ('[paths."mm"]\nmax = "1%"\n[paths."mm/"]\nmax = "2%"', ':3: paths."mm/": this path is here twice'),
        ("[path]\n", ':1: path: there is no key "path"; did you mean "paths"?'),
        ("paths = 3\n", ":1: paths: found 3; allowed: tables by path"),
        ('[paths."mm/"\n', ":1:"),
        ("".join(f'[paths."p{n}"]\nmax = "1%"\n' for n in range(101)), ": paths: "),
        ("a = " + "[" * 20_000, "this is not TOML"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"#" * (LARGEST + 1), "it has more than 64 KiB"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_may_not_stand_in_it_is_refused_with_its_line_and_what_may(
    text: str | bytes, problem: str, tmp_path: Path
) -> None:
    tree = a_tree(tmp_path / "linux", text)
    for source in (str(tree), committed(tree)):
        with pytest.raises(StudyError) as refused:
            rules_in(source, NAMES)
        message = refused.value.message.replace("\u00a0", " ")
        assert problem in message
        assert len(message) < 1000
        assert "ktrial help series" in refused.value.advice


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_a_file_that_is_none_is_not_followed_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    (tmp_path / "secret").write_text("secret = 1")
    match kind:
        case "link":
            (tree / NAME).symlink_to(tmp_path / "secret")
            sources = [str(tree), committed(tree)]
        case "pipe":
            os.mkfifo(tree / NAME)
            sources = [str(tree)]
        case _:
            (tree / NAME).mkdir()
            (tree / NAME / "a").touch()
            sources = [str(tree), committed(tree)]
    for source in sources:
        with pytest.raises(StudyError, match="it is no plain file") as refused:
            rules_in(source, NAMES)
        assert "secret" not in refused.value.message
