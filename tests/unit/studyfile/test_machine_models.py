"""Machine models: ktrial's own file, files of users, and what is wrong with one."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import KNOWN

from ktrial.model.machine import CacheSize, ModelledMachine
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.machine_model_files import OWN_FILE, machine_model, own_machines
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

MINE = """
[machines.mine]
like = "desktop"
l2 = { size = "2M", ways = 16, source = "my manual" }
[machines.mine.cycles]
memory = { value = 300.5, source = "my measurement" }
"""


def own(name: str = "default") -> ModelledMachine:
    machine = machine_model(name, Path())
    assert machine
    return machine


def read(tmp_path: Path, text: str, name: str = "") -> ModelledMachine:
    (tmp_path / "models.toml").write_text(text)
    machine = machine_model(f"models.toml{name}", tmp_path)
    assert machine
    return machine


def refused(tmp_path: Path, text: str, name: str = "") -> str:
    with pytest.raises(StudyError) as caught:
        read(tmp_path, text, name)
    return caught.value.message


def tables(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All tables that hold no other: the constants."""
    below = [value for value in data.values() if isinstance(value, dict)]
    for table in below:
        yield from tables(table)
    if not below and "like" not in data:
        yield data


def test_the_machines_that_come_with_ktrial() -> None:
    assert own_machines() == ("desktop", "desktop-sampled", "server", "zen4", "small")
    assert own() == own("desktop")
    assert machine_model("none", Path()) is None
    for name in own_machines():
        machine = own(name)
        assert (machine.name, machine.reference) == (name, name)
        assert machine.cycles.l2 <= machine.cycles.llc < machine.cycles.memory
        assert machine.cycles.stlb < machine.cycles.walk


def test_every_constant_of_theirs_names_its_source() -> None:
    machines = tomllib.loads(OWN_FILE.read_text(encoding="utf-8"))["machines"]
    constants = [table for machine in machines.values() for table in tables(machine)]
    assert len(constants) > 70
    assert [table for table in constants if len(table.get("source", "")) < 5] == []


def test_publications_that_sources_name_are_listed() -> None:
    text = OWN_FILE.read_text(encoding="utf-8")
    comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    for table in tables(tomllib.loads(text)["machines"]):
        publication = table["source"].split(":")[0].split(",")[0].partition(" (")[0]
        assert publication in comment or publication in {"chosen", "Arm's features of Cortex-A53"}, table


def test_a_machine_that_is_like_another_changes_what_it_names(tmp_path: Path) -> None:
    mine, desktop = read(tmp_path, MINE), own("desktop")
    assert mine.l2 == CacheSize(size=2 << 20, ways=16)
    assert mine.cycles == desktop.cycles.model_copy(update={"memory": 300.5})
    assert mine.model_copy(
        update={"name": "desktop", "file": "", "l2": desktop.l2, "cycles": desktop.cycles}
    ) == (desktop)


def test_a_sampled_machine_is_the_same_but_for_that() -> None:
    sampled = own("desktop-sampled")
    assert sampled.sample == 9
    assert sampled.model_copy(update={"name": "desktop", "sample": 1}) == own("desktop")
    assert "sample" not in own("desktop").model_dump()


def test_what_a_machine_may_leave_out(tmp_path: Path) -> None:
    """Keys that came later: a machine that does not have them is what it was, to its digest."""
    text = MINE.replace("ways = 16,", 'ways = 16, replacement = "tree-plru",')
    text += "[machines.mine.strides]\nvalue = 7\nsource = 'my own'\n"
    mine, small = read(tmp_path, text), own("small")
    assert (mine.l2.replacement, mine.strides, mine.cycles.ibpb) == ("tree-plru", 7, 4500)
    assert (small.l2.replacement, small.strides) == ("lru", 0)
    assert "strides" not in small.model_dump()
    assert "spec_ctrl" in small.model_dump()["cycles"]
    assert "replacement" not in small.model_dump()["l2"]
    assert ModelledMachine.model_validate(mine.model_dump()) == mine


def test_a_file_with_several_machines_is_asked_for_one(tmp_path: Path) -> None:
    two = MINE + '[machines.other]\nlike = "mine"\n'
    assert 'Write model = "models.toml#mine", "models.toml#other"' in refused(tmp_path, two)
    other = read(tmp_path, two, "#other")
    assert (other.name, other.l2.size) == ("other", 2 << 20)
    assert other.reference == f"{tmp_path}/models.toml#other"
    said = refused(tmp_path, two, "#othr")
    assert 'there is no machine "othr"; did you mean "other"?' in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no machine"),
        ("machines = 3", "there is no machine"),
        ("[machines]\nmine = 3", "found 3; allowed: a table [machines.NAME]"),
        ("[machine.mine]\n", 'there is no key "machine"; did you mean "machines"?'),
        ("[machines.mine]\nl1i = 3", "line 2: machines.mine.l1i: found 3; allowed: a table"),
        (MINE.replace("my manual", ""), "machines.mine.l2.source"),
        (MINE.replace(', source = "my manual"', ""), 'the key "source" is missing: where that is from'),
        (MINE.replace('"2M"', '"2X"'), "a size is a whole number with K, M, G or T"),
        (MINE.replace('"2M"', '"3M"'), "models.toml:4: machines.mine.l2: 3M in 16 ways: size / (ways"),
        (MINE.replace("300.5", "-1"), "models.toml:6: machines.mine.cycles.memory.value: found -1"),
        (MINE.replace("300.5", "inf"), "allowed: a number from 0 to 1000000"),
        (MINE.replace("memory", "memry"), 'there is no key "memry"; did you mean "memory"?'),
        (MINE.replace("desktop", "desktp"), 'there is no machine "desktp"; did you mean "desktop"?'),
        (MINE.replace("desktop", "mine"), "mine is like itself"),
        ('[machines.a]\nlike = "b"\n[machines.b]\nlike = "a"', "which of its 2 machines?"),
        (MINE + "[machines.mine.dtlb]\nentries = 60\nways = 4\nsource = 'x y'", "must be a power of two"),
        (
            MINE.replace("ways = 16,", 'ways = 16, replacement = "fifo",'),
            'there is no replacement "fifo". There are: lru, tree-plru',
        ),
        (
            MINE.replace('"2M", ways = 16,', '"3M", ways = 12, replacement = "tree-plru",'),
            "tree-plru with 12 ways: a tree has a power of two of ways",
        ),
        (MINE + "ibpb = { value = -1, source = 'my own' }\n", "machines.mine.cycles.ibpb.value: found -1"),
        (MINE + "[machines.mine.strides]\nvalue = 1\n", 'the key "source" is missing: where that is from'),
        (MINE.replace('"desktop"', '"desktop"\nsample = 8'), "found 8; allowed: one of 1, 3, 7, 9, 21, 63"),
        (
            MINE.replace('"desktop"', '"desktop"\nsample = 9').replace('"2M"', '"32K"'),
            "32 sets with lines of 64 bytes: sample needs 64 sets or more",
        ),
        ("[machines.mine", "this is not TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text)


def test_a_circle_of_likes_is_told(tmp_path: Path) -> None:
    circle = '[machines.a]\nlike = "b"\n[machines.b]\nlike = "a"\n'
    assert "a is like itself, by way of b" in refused(tmp_path, circle, "#a")


KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'
MACHINES = replace(KNOWN, machines=("exact", "exact-parallel", "kvm", "host"))


def study(tmp_path: Path, keys: str, kind: str = "exact", factors: str = KERNELS) -> ModelledMachine | None:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n[machine]\nkind = "{kind}"\n{keys}\n{factors}')
    loaded = load(path, MACHINES)
    again = tmp_path / "again.toml"
    again.write_text(study_toml(loaded))
    assert load(again, MACHINES).machine == loaded.machine
    return loaded.machine.model


def test_a_study_names_its_model(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    assert study(tmp_path, "") is None
    assert study(tmp_path, 'model = "none"') is None
    assert study(tmp_path, 'model = "default"') == own("desktop")
    assert study(tmp_path, 'model = "small"') == own("small")
    mine = study(tmp_path, 'model = "mine.toml"')
    assert mine
    assert mine.name == "mine"


@pytest.mark.parametrize(
    ("keys", "kind", "said"),
    [
        ('model = "defalt"', "exact", "defalt"),
        ('model = "default"\ncpus = 2', "exact", "cycles are modelled with one CPU, and cpus = 2"),
        ('model = "default"\ncount = "clock"', "exact", 'the plugin, and count = "clock"'),
        ('model = "default"', "exact-parallel", '"model" means nothing on the machine exact-parallel'),
        ('model = "default"', "kvm", '"model" means nothing on the machine kvm'),
    ],
)
def test_what_a_study_cannot_model(tmp_path: Path, keys: str, kind: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(tmp_path, keys, kind)
    assert said in caught.value.message


def test_cpus_as_a_factor_are_not_modelled(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the CPUs are a factor here"):
        study(tmp_path, 'model = "default"', factors=f"{KERNELS}[factors.cpus]\nlevels = [1, 2]\n")


def test_a_study_without_a_model_has_the_digest_that_it_always_had(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n{KERNELS}')
    assert "model" not in load(path, MACHINES).machine.model_dump()
