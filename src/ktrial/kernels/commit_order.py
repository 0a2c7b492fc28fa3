"""The order of kernels that are commits of one git tree: each behind those that it was made from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ktrial.kernels.build.source_git import git
from ktrial.kernels.build.sources import GIT_PREFIX, git_parts
from ktrial.kernels.errors import KernelError


def commit_places(names: Iterable[str]) -> dict[str, int]:
    """`git:DIRECTORY@REVISION` → its place among those of its tree, from 0.

    Names of other kinds have none, nor has what its tree does not know any more, or what is alone in it.
    """
    trees: dict[Path, dict[str, str]] = defaultdict(dict)
    for name in names:
        if name.startswith(GIT_PREFIX):
            directory, revision = git_parts(name)
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


def _in_order(directory: Path, commits: Collection[str]) -> Iterator[str]:
    """Those of the commits that git lists, parents first. Raises SourceUnusable, ToolMissing."""
    wanted = tuple(dict.fromkeys(commits))
    limits: tuple[str, ...] = ()
    with suppress(KernelError):  # they have nothing in common
        base = git(directory, wanted[0], "merge-base", "--octopus", *wanted).strip()
        limits = ("--not", f"{base}^@")
    listed = git(directory, wanted[0], "rev-list", "--topo-order", "--reverse", *wanted, *limits)
    return (commit for commit in listed.split() if commit in wanted)
