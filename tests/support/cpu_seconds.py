"""What each test costs: a line of JSON each, with the seconds of CPU of it and of all that it waited for.

    pytest -p tests.support.cpu_seconds --cpu-seconds FILE

Other programs that run here do not change these figures by much, as they change those of the wall's clock. A
fixture's cost falls on the test that was the first to ask for it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.real_runs import cpu_seconds, cpu_seconds_of_commands


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-seconds", metavar="FILE", help="append a line a test to this file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _spent()
    finished = yield
    file = item.config.getoption("--cpu-seconds")
    if file:
        line = json.dumps({"test": item.nodeid, "cpu": round(_spent() - before, 3)})
        with Path(file).open("a") as out:
            out.write(f"{line}\n")
    return finished


def _spent() -> float:
    return cpu_seconds() + sum(cpu_seconds_of_commands)
