"""A cause that is known, proved on real kernels: MGLRU's part in what mmap takes more on 6.12 than on 6.1."""

import json
import os
from pathlib import Path

import pytest
from tests.support.real_runs import ktrial

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

MGLRU = "/sys/kernel/mm/lru_gen/enabled"
KERNELS = ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "mmap")
BY_HAND = 1187 / 7975
"""The share that was found by hand, with other guest programs."""


def test_a_setting_s_share_is_measured_kept_and_shown(tmp_path: Path) -> None:
    environment = {**os.environ, "KTRIAL_STORE": str(tmp_path / "ktrial.db")}
    words = ("explain", *KERNELS, "--prove", "--candidates", MGLRU, "--perturbations", "1", "--json")
    ran = ktrial(words, environment, tmp_path)
    assert ran.returncode == 0, ran.stderr
    proof = json.loads(ran.stdout)["proof"]
    (cause,) = proof["causes"]
    assert (cause["target"], cause["status"], cause["side"]) == (MGLRU, "measured", "to")
    assert cause["share"] == pytest.approx(BY_HAND, abs=0.02)
    assert proof["unexplained"] == pytest.approx(proof["difference"] - cause["effect"])
    assert 0 <= proof["control"] < cause["effect"] / 5

    shown = ktrial(("show", "1", "--json"), environment, tmp_path)
    assert [one["proof"] for one in json.loads(shown.stdout)["why"]] == [proof]
    again = ktrial(words, environment, tmp_path)
    assert json.loads(again.stdout)["proof"]["causes"] == proof["causes"], "from the stored trials"
    assert json.loads(again.stdout)["proof"]["used"]["trials"] == 0
