"""A kernel that ktrial built by content: its name leads to the recipe, by which it can be built again."""

from ktrial.kernels.build.recipes import recipe_of, whole_name
from ktrial.kernels.errors import BUBBLEWRAP, BadKernelName
from ktrial.kernels.providers import Parts, Request
from ktrial.system_tools import Tool


class ByRecipe:
    """Names like `build:linux-source-6.1+SLAB=y@0123456789ab`, their starts, keys, and the user's own."""

    prefix = "build"
    summary = "build:NAME, what `ktrial kernel build` made"
    takes_files = False
    remembers = True

    def canonical(self, name: str, selector: str) -> str:
        """The whole name, where a kept recipe tells it."""
        if not selector:
            raise BadKernelName(name=name, problem="a name is missing", allowed=self.summary)
        return whole_name(f"build:{selector}")

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What builds it again."""
        from ktrial.kernels.build.requests import tools_of  # what builds takes its time to load

        recipe = recipe_of(self.canonical(f"build:{selector}", selector))
        return (*tools_of(recipe.build), BUBBLEWRAP) if recipe else ()

    def fetch(self, request: Request) -> Parts:
        """Build it again, by its recipe. Raises KernelError, BuildFailed and other BuildErrors."""
        from ktrial.kernels.build.builds import built_again

        name = self.canonical(request.name, request.selector)
        return built_again(name, request.workspace, request.progress)


PROVIDER = ByRecipe()
