"""A kernel built from a commit, in ktrial's own configuration for guests."""

from pathlib import Path

from ktrial.kernels.build import build, cached, requested
from ktrial.kernels.build.build_tools import tools_of
from ktrial.kernels.build.errors import BUBBLEWRAP, SourceUnusable
from ktrial.kernels.build.source_git import described
from ktrial.kernels.build.sources import GIT_PREFIX, git_parts
from ktrial.kernels.cache.manifest import SYSTEM_MAP
from ktrial.kernels.errors import BadKernelName
from ktrial.kernels.providers.protocol import Parts, Request
from ktrial.model.kernel import Build, Kernel
from ktrial.system_tools import Tool


class FromGit:
    """Names like `git:/home/me/linux@v6.1`: what `ktrial kernel build` makes of that commit."""

    prefix = "git"
    summary = "git:DIRECTORY@REVISION, built from that commit"
    takes_files = False
    remembers = False

    def canonical(self, name: str, wanted: str) -> str:
        """Make the directory's path absolute."""
        try:
            directory, revision = git_parts(f"{GIT_PREFIX}{wanted}")
        except SourceUnusable as error:
            problem = str(error.facts["problem"])
            raise BadKernelName(name=name, problem=problem, allowed=self.summary) from None
        return f"{GIT_PREFIX}{directory.expanduser().absolute().resolve()}@{revision}"

    def tools(self, wanted: str) -> tuple[Tool, ...]:
        """What builds it."""
        return (*tools_of(_wanted(wanted)), BUBBLEWRAP)

    def fetch(self, request: Request) -> Parts:
        """Build it, or find it in the cache. Raises SourceUnusable, NotASource and other BuildErrors."""
        kernel = build(_wanted(request.wanted), request.progress)
        system_map = kernel.image.with_name(SYSTEM_MAP)
        return Parts(
            image=kernel.image,
            config=kernel.config,
            modules=kernel.modules,
            system_map=system_map if system_map.exists() else None,
            origin=kernel.origin,
        )

    def outdated(self, wanted: str, kernel: Kernel) -> bool:
        """Whether the revision is another commit now. Raises SourceUnusable."""
        now = cached(_wanted(wanted))
        return now is None or now.digest != kernel.digest


def pinned(name: str) -> str:
    """The kernel's name with what its revision is now, as git describes it.

    `git:linux@main` becomes `git:linux@v6.1-14-g0123456789ab`: what is stored under it stays true when the
    branch moves on. Other names stay. Raises SourceUnusable.
    """
    if not name.startswith(GIT_PREFIX):
        return name
    directory, revision = git_parts(name)
    return f"{GIT_PREFIX}{directory}@{described(directory.expanduser(), revision)}"


def _wanted(wanted: str) -> Build:
    return requested(f"{GIT_PREFIX}{wanted}", directory=Path.cwd())


PROVIDER = FromGit()
