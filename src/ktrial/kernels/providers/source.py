"""A kernel built from a source tree, in ktrial's own configuration for guests."""

from pathlib import Path

from ktrial.kernels.errors import BUBBLEWRAP, BadKernelName
from ktrial.kernels.providers import Parts, Request
from ktrial.system_tools import Tool


class FromSource:
    """Names like `source:/home/me/linux`: the kernel as it was last built from there."""

    prefix = "source"
    summary = "source:DIR, built from Linux's source in that directory"
    takes_files = False
    remembers = False

    def canonical(self, name: str, selector: str) -> str:
        """Make the path absolute."""
        if not selector:
            raise BadKernelName(name=name, problem="a directory is missing", allowed=self.summary)
        from ktrial.kernels.build.builds import name_of  # what builds takes its time to load

        return name_of(Path(selector))

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What builds it."""
        from ktrial.kernels.build.requests import requested, tools_of

        return (*tools_of(requested(selector, directory=Path.cwd())), BUBBLEWRAP)

    def fetch(self, request: Request) -> Parts:
        """Build what changed since the last time. Raises NotASource, BuildFailed and other BuildErrors."""
        from ktrial.kernels.build.builds import built
        from ktrial.kernels.build.requests import BuildRequest

        return built(BuildRequest(Path(request.selector)), request.workspace, request.progress)

    def forget(self, selector: str) -> int:
        """Delete the directory of its builds."""
        from ktrial.kernels.build.builds import forget

        return forget(Path(selector))


PROVIDER = FromSource()
