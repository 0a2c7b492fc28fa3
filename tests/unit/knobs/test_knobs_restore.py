"""What was changed comes back, and what cannot come back is told; a damaged journal writes nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.knob_tree import BOOT, Kernel, Tree, made, refusal

from ktrial.knobs.apply import Changes
from ktrial.knobs.journal import Stage
from ktrial.knobs.restore import abandoned, restore

SWAPPINESS = "proc/sys/vm/swappiness"
OTHER_BOOT = "99999999-2222-3333-4444-555555555555"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path)


def endings(undone: tuple[object, ...]) -> list[str]:
    return [str(getattr(one, "ending", "")) for one in undone]


def test_changes_are_undone_latest_first(tree: Tree) -> None:
    tree.leave(("swappiness", "10"), ("swappiness", "20"), ("swappiness", "30"))
    kernel = Kernel(tree)
    journal = tree.journal()
    with journal.held():
        undone = restore(journal, kernel)
    assert [write.value for write in kernel.writes] == ["20", "10", "60"]
    assert endings(undone) == ["restored"] * 3
    assert not (tree.root / "journal/changes").exists()


def test_somebody_elses_later_change_is_told_and_left_alone(tree: Tree) -> None:
    tree.leave(("swappiness", "10"), ("vm.stat_interval", "9"))
    tree.write(SWAPPINESS, "33")
    first, again = tree.restore(), tree.restore()
    assert endings(first) == ["restored", "somebody-else"]
    assert endings(again) == ["somebody-else"]
    assert "was 60, ktrial made it 10, and somebody else has made it 33" in first[1].text
    assert tree.read(SWAPPINESS) == "33"
    assert endings(tree.restore(force=True)) == ["restored"]
    assert tree.read(SWAPPINESS) == "60"
    assert tree.restore() == ()


def test_what_is_forgotten_stays_as_it_is(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    assert endings(tree.restore(forget=True)) == ["forgotten"]
    assert tree.read(SWAPPINESS) == "10"
    assert tree.restore() == ()


def test_a_dry_run_changes_neither_knobs_nor_journal(tree: Tree) -> None:
    tree.leave(("swappiness", "10"), ("vm.stat_interval", "9"))
    tree.write("proc/sys/vm/stat_interval", "5")
    before = [path.read_bytes() for path in tree.entries]
    assert endings(tree.restore(dry_run=True)) == ["somebody-else", "restored"]
    assert [path.read_bytes() for path in tree.entries] == before
    assert tree.read(SWAPPINESS) == "10"


def test_after_another_boot_nothing_is_written_and_the_entries_are_closed(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    tree.write(SWAPPINESS, "10")
    assert endings(tree.restore(boot=OTHER_BOOT)) == ["other-boot"]
    assert tree.read(SWAPPINESS) == "10"
    assert not (tree.root / "journal/changes").exists()


def test_the_next_command_closes_what_is_of_another_boot_even_what_was_to_last(tree: Tree) -> None:
    tree.leave(("swappiness", "10"), lasting=True)
    journal = tree.journal(OTHER_BOOT)
    with journal.held():
        assert endings(abandoned(journal, tree.target)) == ["other-boot"]
    assert not (tree.root / "journal/changes").exists()


def test_what_was_planned_but_not_written_is_closed(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    tree.write(SWAPPINESS, "77")
    change_entry(tree, stage="planned")
    assert endings(tree.restore()) == ["never-made"]
    assert tree.read(SWAPPINESS) == "77"


def test_what_the_kernel_rounded_while_ktrial_was_killed_is_put_back(tree: Tree) -> None:
    tree.leave(("swappiness", "17"))
    tree.write(SWAPPINESS, "16")
    change_entry(tree, stage="writing", made="")
    assert endings(tree.restore()) == ["restored"]
    assert tree.read(SWAPPINESS) == "60"


def test_a_device_that_is_gone_is_told(tree: Tree) -> None:
    tree.leave(("queue/read_ahead_kb@vdb", "256"))
    (tree.root / "system/sys/block/vdb").unlink()
    assert endings(tree.restore()) == ["absent"]


def test_a_kernel_that_refuses_the_old_value_leaves_the_entry(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    journal = tree.journal()
    with journal.held():
        undone = restore(journal, Kernel(tree, swappiness=lambda value: refusal("EBUSY")))
    assert endings(undone) == ["refused"]
    assert endings(tree.restore()) == ["restored"]


def test_a_part_is_undone_below_a_later_change(tree: Tree) -> None:
    """`quiesce --undo` while `knob set` has changed the same knob since."""
    journal = tree.journal()
    with journal.held():
        for purpose, value in (("quiesce", "10"), ("knob set", "20")):
            Changes(tree.target, journal, purpose, lasting=True).apply(("swappiness", value))
        (undone,) = restore(journal, tree.target, which=lambda entry: entry.purpose == "quiesce")
    assert "goes back to 60 with a later change (knob set)" in undone.text
    assert tree.read(SWAPPINESS) == "20"
    assert endings(tree.restore()) == ["restored"]
    assert tree.read(SWAPPINESS) == "60"


def change_entry(tree: Tree, **facts: str) -> None:
    """Change the newest entry as ktrial itself would."""
    journal = tree.journal()
    entries, _ = journal.entries()
    if "stage" in facts:
        facts["stage"] = Stage(facts["stage"])
    with journal.held():
        journal.put(entries[-1].model_copy(update=dict(facts)), durable=True)


DAMAGES: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "cut short": lambda text: text[: len(text) // 2],
    "one letter less": lambda text: text[:-1],
    "another old value": lambda text: text.replace('"old": "60"', '"old": "99"'),
    "another path": lambda text: text.replace("vm/swappiness", "kernel/core_pattern"),
    "no entry": lambda text: "[1, 2]",
    "another shape": lambda text: json.dumps({"entry": {"path": "/proc/sys/vm/swappiness"}, "sha256": "0"}),
    "not text": lambda text: "\x00\x01\x02",
    "nested": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_told_and_nothing_wrong_is_written(tree: Tree, damage: str) -> None:
    tree.leave(("vm.stat_interval", "9"), ("swappiness", "10"))
    (_, newest) = tree.entries
    newest.write_text(DAMAGES[damage](newest.read_text()))
    kernel = Kernel(tree)
    journal = tree.journal()
    with journal.held():
        undone = restore(journal, kernel)
    assert [(write.path, write.value) for write in kernel.writes] == [("/proc/sys/vm/stat_interval", "1")]
    assert endings(undone) == ["restored", "damaged"]
    assert tree.read(SWAPPINESS) == "10"
    assert len(list((tree.root / "journal/damaged").iterdir())) == 1
    assert tree.restore() == ()


@pytest.mark.parametrize("damage", ["cut short", "empty"])
def test_a_damaged_entry_in_a_chain_keeps_the_knob_from_being_set_wrong(tree: Tree, damage: str) -> None:
    tree.leave(("swappiness", "10"), ("swappiness", "20"))
    (_, newest) = tree.entries
    newest.write_text(DAMAGES[damage](newest.read_text()))
    assert endings(tree.restore()) == ["somebody-else", "damaged"]
    assert tree.read(SWAPPINESS) == "20"


def test_every_way_to_cut_the_journal_is_found_out(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(whole[:length])
        assert endings(tree.restore()) == ["damaged"], length
    assert tree.read(SWAPPINESS) == "10"


def test_an_entry_under_another_number_is_damaged(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    path.rename(path.with_name("00000007.json"))
    assert endings(tree.restore()) == ["damaged"]


def test_what_was_being_written_when_ktrial_was_killed_is_swept_away(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    path.with_name("00000002.new").write_text('{"entry"')
    assert endings(tree.restore()) == ["restored"]
    assert not path.parent.exists()


def test_an_entry_whose_path_leads_elsewhere_is_not_followed(tree: Tree) -> None:
    """Even one with a right checksum."""
    tree.leave(("swappiness", "10"))
    victim = tree.root / "victim"
    victim.write_text("safe")
    for path in (str(victim), "/sys/../../victim", "/etc/passwd"):
        change_entry(tree, path=path, old="broken")
        assert endings(tree.restore()) == ["refused"]
    assert victim.read_text() == "safe"


def test_the_boot_id_of_the_tests_is_not_this_systems() -> None:
    from ktrial.knobs.journal import Journal

    assert Journal(Path("/nowhere")).boot != BOOT
