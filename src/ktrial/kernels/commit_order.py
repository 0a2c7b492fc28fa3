"""The order of kernels that are commits of one git tree: each behind those that it was made from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ktrial.kernels.build.recipes import PREFIX as BUILD_PREFIX
from ktrial.kernels.build.source_git import git
from ktrial.kernels.build.sources import GIT_PREFIX, git_parts
from ktrial.kernels.errors import KernelError
from ktrial.kernels.registry import record
from ktrial.model.kernel import measured_order


def commit_places(names: Iterable[str]) -> dict[str, int]:
    """A kernel that is a commit → its place among those of its tree, from 0.

    That is `git:DIRECTORY@REVISION`, and `build:NAME` where the cache knows that it was built from one. Names
    of other kinds have none, nor has what its tree does not know any more, or what is alone in it.
    """
    trees: dict[Path, dict[str, str]] = defaultdict(dict)
    for name in names:
        if commit := _commit(name):
            directory, revision = commit
            with suppress(KernelError):
                asked = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
                trees[directory][name] = git(directory, revision, *asked).strip()
    places: dict[str, int] = {}
    for directory, commits in trees.items():
        if len(set(commits.values())) > 1:
            with suppress(KernelError):
                order = {commit: place for place, commit in enumerate(_in_order(directory, commits.values()))}
                places |= {name: order[commit] for name, commit in commits.items()}
    return places


def unordered_trees(releases: Mapping[str, str], places: Mapping[str, int]) -> tuple[Path, ...]:
    """Trees that no longer tell the order of all of their commits among these kernels.

    `releases`: kernel → its release; kernels of several versions need no tree. `places`: what it told.
    """
    commits: dict[tuple[Path, object], dict[str, str]] = defaultdict(dict)
    for name, release in releases.items():
        if commit := _commit(name):
            directory, revision = commit
            commits[directory, measured_order(name, release)][name] = revision
    several = {at: names for at, names in commits.items() if len(set(names.values())) > 1}
    return tuple(sorted({at[0] for at, names in several.items() if not places.keys() >= names.keys()}))


def _commit(name: str) -> tuple[Path, str] | None:
    """Directory and revision. A build's is what its revision was then: a branch has moved since, maybe."""
    if name.startswith(GIT_PREFIX):
        return git_parts(name)
    if name.startswith(BUILD_PREFIX):
        with suppress(KernelError):
            origin = record(name).origin
            if origin.build and origin.build.source.startswith(GIT_PREFIX):
                return git_parts(origin.build.source)[0], origin.version
    return None


def _in_order(directory: Path, commits: Collection[str]) -> Iterator[str]:
    """Those of the commits that git lists, parents first. Raises SourceUnusable, ToolMissing."""
    wanted = tuple(dict.fromkeys(commits))
    limits: tuple[str, ...] = ()
    with suppress(KernelError):  # they have nothing in common
        base = git(directory, wanted[0], "merge-base", "--octopus", *wanted).strip()
        limits = ("--not", f"{base}^@")
    listed = git(directory, wanted[0], "rev-list", "--topo-order", "--reverse", *wanted, *limits)
    return (commit for commit in listed.split() if commit in wanted)
