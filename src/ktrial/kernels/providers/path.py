"""A kernel image in a file: one's own build."""

from pathlib import Path

from ktrial.kernels.errors import BadKernelName
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Origin


class FromPath:
    """Names like `path:/some/vmlinuz`, with modules and a configuration beside them."""

    prefix = "path"
    summary = "path:FILE, an x86-64 bzImage (vmlinuz) or ELF vmlinux"
    takes_files = True
    remembers = False

    def canonical(self, name: str, selector: str) -> str:
        """Make the path absolute."""
        if not selector:
            raise BadKernelName(name=name, problem="a file is missing", allowed=self.summary)
        return f"path:{Path(selector).expanduser().absolute()}"

    def fetch(self, request: Request) -> Parts:
        """Name the files; whether they are good is seen when they are read."""
        image = Path(request.selector).expanduser().absolute()
        return Parts(
            image=image,
            modules=request.modules,
            config=request.config,
            origin=Origin(provider="path", source=str(image)),
        )


PROVIDER = FromPath()
