"""Which tests a worker of pytest-xdist takes next: `--dist loadfile`, in the order of the command line.

pytest-xdist itself begins with the file that has most tests. Here the files with guests come first, which
have few tests that take long, and small files come last, so that no worker is idle long before the others.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

EACH_ALONE = (
    "tests/docs/test_docs.py",
    "tests/guest/kernels/test_must_hold",
    "tests/guest/experiment/test_io.py",
)
"""How the names of files begin whose tests take long and share no fixture: each goes to any worker."""


class InOrder(LoadScopeScheduling):
    """The tests of a file go to one worker together, since they share its guests."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(EACH_ALONE) else nodeid.partition("::")[0]
