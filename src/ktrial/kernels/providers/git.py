"""A kernel built from a commit, in ktrial's own configuration for guests."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ktrial.kernels.build.recipes import PREFIX as BUILD_PREFIX
from ktrial.kernels.build.sources import GIT, GIT_PREFIX, described, git, git_parts
from ktrial.kernels.errors import BUBBLEWRAP, BadKernelName, KernelError, SourceUnusable
from ktrial.kernels.kernel_cache import parts_of
from ktrial.kernels.kernel_registry import record
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Build, Kernel, measured_order
from ktrial.system_tools import Tool


class FromGit:
    """Names like `git:/home/me/linux@v6.1`: what `ktrial kernel build` makes of that commit."""

    prefix = "git"
    summary = "git:DIRECTORY@REVISION, built from that commit"
    takes_files = False
    remembers = False

    def canonical(self, name: str, selector: str) -> str:
        """Make the directory's path absolute."""
        try:
            directory, revision = git_parts(f"{GIT_PREFIX}{selector}")
        except SourceUnusable as error:
            raise BadKernelName(name=name, problem=error.problem, allowed=self.summary) from None
        return f"{GIT_PREFIX}{directory.expanduser().absolute().resolve()}@{revision}"

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What builds it."""
        from ktrial.kernels.build.requests import tools_of  # what builds takes its time to load

        return (*tools_of(_spec_of(selector)), BUBBLEWRAP)

    def fetch(self, request: Request) -> Parts:
        """Build it, or find it in the cache. Raises SourceUnusable, NotASource and other BuildErrors."""
        from ktrial.kernels.build.builds import build  # what builds takes its time to load

        return parts_of(build(_spec_of(request.selector), request.progress))

    def outdated(self, selector: str, kernel: Kernel) -> bool:
        """Whether the revision is another commit now. Raises SourceUnusable."""
        from ktrial.kernels.build.builds import cached

        current = cached(_spec_of(selector))
        return current is None or current.digest != kernel.digest


def pinned(name: str) -> str:
    """The kernel's name with what its revision is now, as git describes it.

    `git:linux@main` becomes `git:linux@v6.1-14-g0123456789ab`: what is stored under it stays true when the
    branch moves on. Other names stay, and all where git is not installed: the preflight names it beside
    what else is missing. Raises SourceUnusable.
    """
    if not name.startswith(GIT_PREFIX) or GIT.path() is None:
        return name
    directory, revision = git_parts(name)
    return f"{GIT_PREFIX}{directory}@{described(directory.expanduser(), revision)}"


def _spec_of(selector: str) -> Build:
    from ktrial.kernels.build.requests import requested

    return requested(f"{GIT_PREFIX}{selector}", directory=Path.cwd())


PROVIDER = FromGit()


# The order of kernels that are commits of one git tree: each behind those that it was made from.


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
                arguments = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
                trees[directory][name] = git(directory, revision, *arguments).strip()
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
    distinct = tuple(dict.fromkeys(commits))
    limits: tuple[str, ...] = ()
    with suppress(KernelError):  # they have nothing in common
        base = git(directory, distinct[0], "merge-base", "--octopus", *distinct).strip()
        limits = ("--not", f"{base}^@")
    listed = git(directory, distinct[0], "rev-list", "--topo-order", "--reverse", *distinct, *limits)
    return (commit for commit in listed.split() if commit in distinct)
