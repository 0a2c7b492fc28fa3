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

OF_ONE_MACHINE = (
    "tests/unit/cli/test_cli_hosts.py",
    "tests/unit/machines/test_machines_ssh.py",
    "tests/unit/machines/test_ssh_other_systems.py",
    "tests/unit/machines/test_ssh_sudo.py",
)
"""They measure on this system by ssh, where one trial at a time is let in: all go to one worker."""


class InOrder(LoadScopeScheduling):
    """The tests of a file go to one worker together, since they share its guests."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(EACH_ALONE):
            return nodeid
        return "one machine" if nodeid.startswith(OF_ONE_MACHINE) else nodeid.partition("::")[0]
