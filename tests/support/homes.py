"""A home directory of the tests' own: what ktrial keeps for a user, it keeps there while tests run."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ktrial.installation import CACHE, cache_directory

_XDG = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
_TOOLS = {
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "PIP_CACHE_DIR": ".cache/pip",
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
}
"""What compilers and pip have in a user's home, and tests that build go on using."""


class OwnHome:
    """HOME and the XDG directories below a temporary directory, for as long as the tests run.

    Kernels, sources and builds stay those of the user's cache, which KTRIAL_CACHE names from then on, since
    fetching takes minutes. Workers of pytest-xdist inherit the home of the process that started them.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ktrial-tests-home-"))
        self._before = dict(os.environ)
        os.environ |= variables(self.directory, Path.home(), os.environ)

    def pytest_unconfigure(self) -> None:
        """The end of the run."""
        for name in variables(self.directory, Path.home(), self._before):
            if name in self._before:
                os.environ[name] = self._before[name]
            else:
                os.environ.pop(name, None)
        shutil.rmtree(self.directory, ignore_errors=True)


def variables(home: Path, usual: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment of the tests has; `usual`: the user's own home."""
    tools = {
        name: str(usual / place)
        for name, place in _TOOLS.items()
        if name not in environment and (usual / place).exists()
    }
    directories = {name: str(home / place) for name, place in _XDG.items()}
    return {"HOME": str(home), CACHE: str(cache_directory()), **directories, **tools}
