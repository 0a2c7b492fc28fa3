"""What stands in the journal while knobs are changed, and who may read it."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.knob_tree import Kernel, Mind, Tree, made, refusal

from ktrial.knobs.apply import apply, changing
from ktrial.knobs.errors import BadKnob, JournalError, KnobForbidden
from ktrial.knobs.journal import Entry, Kind, Stage, own_identity
from ktrial.knobs.restore import RestoreOutcome, abandoned, restore

SWAPPINESS = "proc/sys/vm/swappiness"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path)


def the_entry(tree: Tree) -> Entry:
    """The only one, whole."""
    (entry,), damaged = tree.journal().entries()
    assert not damaged
    return entry


def test_an_entry_says_before_the_write_that_it_comes_and_afterwards_what_it_made(tree: Tree) -> None:
    seen: list[Entry] = []

    def look(value: str) -> str:
        seen.append(the_entry(tree))
        tree.write("proc/sys/vm/dirty_ratio", "0")
        return value

    with tree.changing(Kernel(tree, dirty_bytes=look), lasting=True) as changes:
        changes.apply(("vm.dirty_bytes", "4096000"))
    (writing,) = seen
    after = the_entry(tree)
    assert (writing.stage, writing.made, writing.beside_made) == (Stage.WRITING, "", {})
    assert (after.stage, after.made) == (Stage.MADE, "4096000")
    assert writing.beside["/proc/sys/vm/dirty_ratio"] == "20"
    assert after.beside_made["/proc/sys/vm/dirty_ratio"] == "0"
    assert (after.knob, after.path) == ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes")
    assert (after.old, after.new, after.purpose, after.lasting) == ("0", "4096000", "a study", True)
    assert (after.owner, after.kind, after.number) == (own_identity(), Kind.KNOB, 1)
    assert after.boot == tree.journal().boot


def test_an_entry_is_one_json_object_with_its_checksum_in_the_letters_of_its_text(tree: Tree) -> None:
    with changing(tree.target, "tägliche Messung", journal=tree.journal(), lasting=True) as changes:
        changes.apply(("swappiness", "10"))
    (path,) = tree.entries
    assert path.name == "00000001.json"
    written = path.read_text(encoding="utf-8")
    assert "tägliche Messung" in written
    assert json.loads(written).keys() == {"entry", "sha256"}


def test_only_the_owner_may_read_or_write_the_journal(tree: Tree) -> None:
    before = os.umask(0)
    try:
        tree.leave(("swappiness", "10"), ("swappiness", "20"))
        tree.entries[1].write_text("damaged")
        tree.restore()
        tree.leave(("swappiness", "10"))
    finally:
        os.umask(before)
    journal = tree.root / "journal"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (journal, *journal.iterdir())}
    assert (modes["journal"], modes["changes"], modes["damaged"]) == (0o700, 0o700, 0o700)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tree.entries} == {0o600}


def test_entries_come_oldest_first_and_the_next_number_is_above_all(tree: Tree) -> None:
    journal = tree.journal()
    assert journal.next_number() == 1
    tree.leave(*(("swappiness", str(value)) for value in range(10, 22)))
    entries, _ = journal.entries()
    assert [entry.number for entry in entries] == list(range(1, 13))
    assert [entry.new for entry in entries] == [str(value) for value in range(10, 22)]
    assert journal.next_number() == 13


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "it is empty"),
        ('{"entry"', "it is cut short, or no entry at all"),
        ("[1]", "it is cut short, or no entry at all"),
        ('{"entry": {}}', "it is cut short, or no entry at all"),
        ('{"entry": {}, "sha256": "0"}', "its checksum does not match"),
    ],
)
def test_a_damaged_entry_says_what_is_wrong_and_where_it_is_kept(
    tree: Tree, content: str, problem: str
) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    path.write_text(content)
    (_, damaged) = tree.journal().entries()
    assert [(one.path, one.problem) for one in damaged] == [(path, problem)]
    said = (
        f"a journal entry is damaged ({problem}): nothing was written for it, and one knob may not be as it "
        "was; the entry is kept in"
    )
    (dry,) = tree.restore(dry_run=True)
    assert (dry.ending, dry.text, dry.entry) == (RestoreOutcome.DAMAGED, f"{said} {path}", None)
    assert path.exists()
    (undone,) = tree.restore()
    (kept,) = (tree.root / "journal/damaged").iterdir()
    assert (undone.ending, undone.text) == (RestoreOutcome.DAMAGED, f"{said} {kept}")
    assert (kept.read_text(), kept.name.partition("-")[2]) == (content, path.name)


def test_an_entry_of_another_number_or_version_says_so(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    path.rename(path.with_name("00000007.json"))
    (_, (other_number,)) = tree.journal().entries()
    assert other_number.problem == "it is number 1, under another name"


@pytest.mark.parametrize(
    ("now", "written"),
    [
        ("0", {"/proc/sys/vm/dirty_bytes": "0", "/proc/sys/vm/dirty_ratio": "20"}),
        ("20", {"/proc/sys/vm/dirty_bytes": "0"}),  # as it was
        ("35", {"/proc/sys/vm/dirty_bytes": "0"}),  # somebody else has set it since
    ],
)
def test_of_coupled_knobs_those_come_back_that_the_kernel_has_changed_and_nobody_since(
    tree: Tree, now: str, written: dict[str, str]
) -> None:
    def clears_the_other(value: str) -> str:
        tree.write("proc/sys/vm/dirty_ratio", "0")
        return value

    with tree.changing(Kernel(tree, dirty_bytes=clears_the_other), lasting=True) as changes:
        changes.apply(("vm.dirty_bytes", "4096000"))
    tree.write("proc/sys/vm/dirty_ratio", now)
    kernel, journal = Kernel(tree), tree.journal()
    with journal.held():
        (undone,) = restore(journal, kernel)
    assert undone.ending is RestoreOutcome.RESTORED
    assert {write.path: write.value for write in kernel.writes} == written


def test_what_is_left_alone_is_told_once_and_stays(tree: Tree) -> None:
    tree.leave(("transparent_hugepage", "never"))
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    (first,) = tree.restore()
    assert first.text == (
        "transparent_hugepage/enabled was madvise, ktrial made it never, and somebody else has made it "
        "always since: it was left alone (ktrial host restore --force puts madvise back, --forget leaves it "
        "as it is)"
    )
    assert the_entry(tree).reported
    journal = tree.journal()
    with journal.held():
        assert abandoned(journal, tree.target) == ()


@pytest.mark.parametrize(
    ("lasting", "reported", "own", "is_put_back"),
    [
        (False, False, False, True),
        (True, False, False, False),  # until the user asks
        (False, True, False, False),  # the user knows of it
        (False, False, True, False),  # this process is at it
    ],
)
def test_what_a_killed_process_has_left_is_put_back_by_the_next(
    tree: Tree, lasting: bool, reported: bool, own: bool, is_put_back: bool
) -> None:
    tree.leave(("swappiness", "10"), lasting=lasting)
    owner = own_identity() if own else own_identity().model_copy(update={"started": 1})
    journal = tree.journal()
    with journal.held():
        journal.put(the_entry(tree).model_copy(update={"owner": owner, "reported": reported}), durable=True)
        undone = abandoned(journal, tree.target)
    assert [one.ending for one in undone] == [RestoreOutcome.RESTORED] * is_put_back
    assert tree.read(SWAPPINESS) == ("60" if is_put_back else "10")


@pytest.mark.parametrize(
    ("kernel_s_mind", "text"),
    [
        (lambda value: refusal("EBUSY"), "vm.swappiness could not be put back to 60: write: EBUSY"),
        (lambda value: "59", "vm.swappiness could not be put back to 60: the kernel made it 59"),
        (lambda value: "", "vm.swappiness could not be put back to 60: the kernel made it empty"),
        (lambda value: value, "vm.swappiness is 60 again"),
    ],
)
def test_what_the_kernel_makes_of_the_old_value_is_told(tree: Tree, kernel_s_mind: Mind, text: str) -> None:
    tree.leave(("swappiness", "10"))
    journal = tree.journal()
    with journal.held():
        (undone,) = restore(journal, Kernel(tree, swappiness=kernel_s_mind))
    assert undone.text == text
    assert undone.entry


def test_each_ending_is_told_in_one_sentence(tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    entry = the_entry(tree)
    cases: dict[str, dict[str, object]] = {
        "vm.swappiness was set in an earlier boot, and is gone with that": {"boot": "another"},
        "vm.swappiness had not been changed yet": {"stage": Stage.PLANNED},
        "vm.swappiness is there no more (/proc/sys/vm/gone)": {"path": "/proc/sys/vm/gone"},
        "vm.swappiness is 10 already": {"old": "10"},
    }
    for said, facts in cases.items():
        journal = tree.journal()
        with journal.held():
            journal.put(entry.model_copy(update=facts), durable=True)
            (undone,) = restore(journal, tree.target)
        assert undone.text == said
    tree.leave(("vm.stat_interval", "9"))
    (forgotten,) = tree.restore(forget=True)
    assert forgotten.text == "vm.stat_interval is left as it is"


def test_a_file_of_several_lines_cannot_be_put_back_and_is_not_changed(tree: Tree) -> None:
    tree.write("sys/devices/vda/queue/lines", "one\ntwo")
    with pytest.raises(KnobForbidden) as said, tree.changing() as changes:
        changes.apply(("/sys/devices/vda/queue/lines", "1"))
    assert str(said.value) == ("Knob /sys/devices/vda/queue/lines: changing it is forbidden (several lines).")
    assert said.value.advice == "ktrial cannot put back a file of several lines"
    assert tree.read("sys/devices/vda/queue/lines") == "one\ntwo"


def test_a_value_that_is_refused_is_refused_by_the_knob_s_name(tree: Tree) -> None:
    with pytest.raises(BadKnob, match=r"vm\.swappiness"):
        apply(tree.target, [("swappiness", "201")])


def test_the_journal_says_who_holds_it(tree: Tree) -> None:
    journal = tree.journal()
    assert journal.holder() == "unknown"
    with journal.held():
        assert journal.holder() == f"{own_identity().command}, process {os.getpid()}"
    (tree.root / "journal/holder.json").write_text("{}")
    assert journal.holder() == "unknown"


def test_a_process_is_known_by_its_number_and_its_start(tmp_path: Path) -> None:
    own = own_identity()
    ticks = float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK")
    assert own.pid == os.getpid()
    assert 0 < own.started <= ticks + 1
    assert own.command
    assert not own.command.startswith("/")


def test_a_journal_that_is_not_safe_says_what_to_do(tree: Tree) -> None:
    directory = tree.root / "journal"
    directory.mkdir()
    directory.chmod(0o720)
    with pytest.raises(JournalError) as said, tree.changing():
        pass
    assert str(said.value) == f"The journal in {directory} is not safe: others may write to it."
    assert said.value.advice.endswith(f": chmod go-w {directory}")


def test_a_journal_that_cannot_be_written_says_why(tree: Tree) -> None:
    (tree.root / "journal").write_text("a file")
    with pytest.raises(JournalError, match="cannot be written: File exists"), tree.changing():
        pass


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["/usr/bin/ktrial", "run", "study.toml", "--seed", "7"], "ktrial run study.toml --seed"),
        (["-X", "dev", "/opt/ktrial"], "ktrial"),
        (["one", "/two/three"], "three"),
    ],
)
def test_a_process_is_called_by_its_command_without_the_interpreter(words: list[str], command: str) -> None:
    code = "from ktrial.knobs.journal import own_identity; print(own_identity().command)"
    run = [sys.executable, "-", *words]
    said = subprocess.run(run, input=code, capture_output=True, text=True, check=True).stdout
    assert said == f"{command}\n"
