"""What was recorded with another kernel, compiler or QEMU than are here: no fault of ktrial's.

A test skips, and the end of the run says in one line what to record anew. At night it fails: somebody has to.
"""

from collections.abc import Iterable
from typing import NoReturn

import pytest
from tests.support.budgets import is_night

_MARK = "recorded before something here changed"
_COMMAND = "record anew: "


def skip_outdated(what: str, record: str) -> NoReturn:
    """End the test. `what`: which record, and what is another one here; `record`: what makes it anew."""
    reason = f"{_MARK}: {what}; {_COMMAND}{record}"
    if is_night():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def is_outdated(reason: str) -> bool:
    """Whether a test was skipped by `skip_outdated`."""
    return reason.startswith(_MARK)


def outdated_line(reasons: Iterable[str]) -> str:
    """One line of all of them; each command comes once."""
    whats: dict[str, None] = {}
    commands: dict[str, None] = {}
    for reason in reasons:
        what, _, command = reason.removeprefix(f"{_MARK}: ").partition(f"; {_COMMAND}")
        whats[what], commands[command] = None, None
    return f"outdated records: {'; '.join(whats)}. {_COMMAND.capitalize()}{' && '.join(commands)}"
