"""What is in a cache of kernels, and a provider as another package brings it."""

import os
import time
from pathlib import Path

import pytest
from tests.support import kernel_images as make

from ktrial.kernels import kernel_registry
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Origin


def left_over(cache: Path) -> list[str]:
    """Whatever is in the cache beside whole kernels, names and locks."""
    work = [path.name for path in (cache / "kernels" / "work").iterdir()]
    digests = {kernel.digest for kernel in kernel_registry.all_kernels()}
    return work + [
        path.name for path in (cache / "kernels" / "by-digest").iterdir() if path.name not in digests
    ]


def slow_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider of another package."""
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "fetches"))


# A provider of kernels as another package would bring it: `slow:VERSION`, which writes down each fetch.
#
# SLOW_LOG: where to. SLOW_SECONDS: how long it takes. SLOW_PACKAGES: what it says that kernels came in.


class Slow:
    prefix = "slow"
    summary = "slow:VERSION"
    takes_files = False
    remembers = True

    def canonical(self, name: str, wanted: str) -> str:
        return f"slow:{wanted}"

    def fetch(self, request: Request) -> Parts:
        with Path(os.environ["SLOW_LOG"]).open("a", encoding="utf-8") as log:
            log.write(f"{request.selector}\n")
        request.progress("fetching")
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0")))
        image = make.vmlinuz(request.workspace, version=f"6.1.0-{request.selector} (someone)")
        modules = make.module_tree(request.workspace, f"6.1.0-{request.selector}")
        packages = tuple(os.environ.get("SLOW_PACKAGES", "").split())
        origin = Origin(provider="slow", source=request.selector, packages=packages)
        return Parts(image=image, modules=modules, origin=origin)


PROVIDER = Slow()


def install(directory: Path) -> None:
    """Make it known the way pip does: by an entry point, in a directory on the module search path."""
    info = directory / "slow_kernels-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-kernels\nVersion: 1.0\n")
    points = "slow = tests.support.kernel_caches:PROVIDER\nbroken = tests.unit.no_such_module:PROVIDER\n"
    (info / "entry_points.txt").write_text(f"[ktrial.kernel_providers]\n{points}")
