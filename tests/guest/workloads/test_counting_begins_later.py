"""Counting that begins later than a program, and the system call that failed last, in a real kernel."""

import json
import os
from pathlib import Path

import pytest
from tests.support.real_runs import ktrial

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

SERVER = """
echo preparing; i=0; while [ $i -lt {before} ]; do i=$((i + 1)); done
echo now listening; i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done
"""
STUDY = """
workloads = [
    {{ name = "short", command = ["sh", "-c", '''{short}'''], after = "listening", repeats = 1 }},
    {{ name = "long", command = ["sh", "-c", '''{long}'''], after = "listening", repeats = 1 }},
    {{ name = "second", command = ["sh", "-c", '''{long}'''], skip_start = "output 2", repeats = 1 }},
    {{ name = "never", command = ["sh", "-c", "echo bye"], after = "listening", repeats = 1 }},
    {{ name = "refused", command = ["sh", "-c", "cd /nowhere"], repeats = 1 }},
]
perturbations = 1
[factors.kernel]
levels = ["debian:6.1", "debian:6.12"]
"""


def test_set_up_is_left_out_and_failures_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "later.toml"
    short, long = (SERVER.format(before=before) for before in (10, 4000))
    file.write_text(STUDY.format(short=short, long=long))
    values = []
    for store in ("first.db", "second.db"):
        place = ["--store", str(tmp_path / store)]
        ktrial(["run", str(file), *place], dict(os.environ))
        told = json.loads(ktrial(["show", "1", *place, "--json"], dict(os.environ)).stdout)
        values.append(
            {(row["workload"], row["metric"]): row["value"] for row in told["comparisons"] if row["value"]}
        )
    first, second = values
    assert first == second
    assert {"short", "long", "second"} <= {workload for workload, metric in first if metric == "after set-up"}
    # The loop before is 400 times as long, and does not count.
    assert first["long", "after set-up"] == pytest.approx(first["short", "after set-up"], rel=0.02)
    assert first["second", "after set-up"] == pytest.approx(first["long", "after set-up"], rel=0.02)
    reasons = json.dumps(told)
    assert "the text 'listening' never appeared in what it printed" in reasons
    assert "last failed system call: chdir(" in reasons
    assert "of a run came before the text 'listening'" in reasons
