"""How a study is timed, its disk, and treatments that are listed: read from its file."""

import re
from pathlib import Path

import pytest
from tests.support.program_texts import KERNELS, load_text

from ktrial.model.design import Design
from ktrial.model.study import Disk, Stopping, Timing, treatments
from ktrial.studyfile.errors import (
    StudyMistake,
)
from ktrial.studyfile.writer import study_toml

TIMED = f'workloads = ["syscall", "hackbench"]\nmachine = "fake"\n{KERNELS}'


def test_a_study_in_real_time_has_blocks_until_all_is_decided(tmp_path: Path) -> None:
    timing = load_text(tmp_path, TIMED).timing
    assert timing == Timing(blocks=60, stopping=Stopping.SEQUENTIAL, alpha=0.05)
    table = '[timed]\nblocks = 100\nstopping = "open-ended"\nalpha = 0.01\n'
    table += 'budget = "1.5 h"\nprimary = ["syscall"]\n'
    study = load_text(tmp_path, TIMED + table)
    assert study.timing == Timing(
        blocks=100, stopping=Stopping.OPEN_ENDED, alpha=0.01, budget_seconds=5400, primary=("syscall",)
    )
    assert load_text(tmp_path, study_toml(study)) == study


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("blocks = 2", "a whole number from 3 to 10000"),
        ('stopping = "sequental"', 'did you mean "sequential"?'),
        ('budget = "2"', "a time is a number above 0 with its unit"),
        ("alpha = 0.5", "a probability above 0 and below 0.5"),
        ('primary = ["syscal"]', 'did you mean "syscall"?'),
        ('primary = ["syscal: rate"]', 'did you mean "syscall"?'),
        ("block = 9", 'there is no key "block"; did you mean "blocks"?'),
    ],
)
def test_a_mistake_in_how_it_is_timed_is_named(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        load_text(tmp_path, f"{TIMED}[timed]\n{table}\n")


def test_the_exact_machine_has_no_blocks(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake) as caught:
        load_text(tmp_path, TIMED.replace('machine = "fake"\n', "") + "[timed]\nblocks = 10\n")
    assert str(caught.value).endswith(
        'timed: the machine "exact" has no noise, and needs no blocks: take the table out, name a machine '
        'in real time, machine = "host", or let seeds be the blocks, perturbations = "auto"'
    )


DISK = f'workloads = ["syscall"]\n{KERNELS}[machine.disk]\n'


def test_a_guest_may_have_a_disk(tmp_path: Path) -> None:
    assert load_text(tmp_path, DISK).machine.disk == Disk()
    keys = 'size = "1G"\npath = "/data"\nfilesystem = "xfs"\nbandwidth = "80M"\nlatency_us = 100\n'
    study = load_text(tmp_path, DISK + keys)
    expected = Disk(size_mib=1024, path="/data", filesystem="xfs", bandwidth_mib=80, latency_us=100)
    assert study.machine.disk == expected
    assert load_text(tmp_path, study_toml(study)) == study


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('path = "mnt"', "a directory of the guest's, from its root"),
        ('path = "/mnt/../etc"', "a directory of the guest's, from its root"),
        ('filesystem = "ext5"', 'did you mean "ext4"?'),
        ('bandwidth = "0M"', "a memory size lies between"),
        ("latency_us = -1", "microseconds from 0"),
    ],
)
def test_a_mistake_in_the_disk_is_named(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        load_text(tmp_path, f"{DISK}{table}\n")


LISTED = """\
workloads = ["syscall"]
treatments = [{ "vm.swappiness" = 10 }, { "vm.swappiness" = 10, "vm.dirty_ratio" = 5 }]
[machine]
kernel = "debian:6.12"
[factors."vm.swappiness"]
levels = [60, 10]
[factors."vm.dirty_ratio"]
levels = [20, 5, 80]
"""


def test_treatments_may_be_listed(tmp_path: Path) -> None:
    study = load_text(tmp_path, LISTED)
    assert study.design is Design.LISTED
    assert [treatment.levels for treatment in treatments(study)] == [
        {"vm.swappiness": 60, "vm.dirty_ratio": 20},
        {"vm.swappiness": 10, "vm.dirty_ratio": 20},
        {"vm.swappiness": 10, "vm.dirty_ratio": 5},
    ]
    assert load_text(tmp_path, study_toml(study)) == study


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('[{ "vm.swapiness" = 10 }]', 'did you mean "vm.swappiness"?'),
        ('[{ "vm.swappiness" = 11 }]', "11 is no level of it; its levels are 60, 10"),
        ('[{ "vm.swappiness" = 60 }]', "this is the baseline"),
        ("[]", "the list is empty"),
        ('[{ "vm.swappiness" = [1] }]', "levels are numbers and text"),
    ],
)
def test_a_mistake_in_listed_treatments_is_named(tmp_path: Path, rows: str, said: str) -> None:
    text = re.sub(r"treatments = .*", f"treatments = {rows}", LISTED)
    with pytest.raises(StudyMistake, match=re.escape(said)):
        load_text(tmp_path, text)


def test_a_list_and_a_design_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake, match="the treatments are listed here"):
        load_text(tmp_path, 'design = "full-factorial"\n' + LISTED)
