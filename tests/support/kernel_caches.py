"""What is in a cache of kernels, and a provider that programs started here know as well."""

import os
from pathlib import Path

import pytest
from tests.support import kernel_provider
from tests.support.places import ROOT

from ktrial.kernels import kernel_registry


def left_over(cache: Path) -> list[str]:
    """Whatever is in the cache beside whole kernels, names and locks."""
    work = [path.name for path in (cache / "kernels" / "work").iterdir()]
    digests = {kernel.digest for kernel in kernel_registry.all_kernels()}
    return work + [
        path.name for path in (cache / "kernels" / "by-digest").iterdir() if path.name not in digests
    ]


def slow_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The provider of another package, known here and to programs that are started with this environment."""
    kernel_provider.install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "fetches"))
    path = os.pathsep.join((str(tmp_path / "site"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
