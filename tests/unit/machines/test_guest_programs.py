"""The guest's programs: those that are published, and others."""

import subprocess
from pathlib import Path

import pytest
from tests.support.places import ROOT
from tests.support.runs_of_tests import skip_outdated

from ktrial.experiment.provenance import machine_warnings
from ktrial.file_digests import digest_of_file
from ktrial.machines import guest_programs
from ktrial.model.machine import MachineIdentity
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Mode

DIGESTS = ROOT / "crates" / "SHA256SUMS"
HERE = guest_programs.directory()


def pinned() -> dict[str, str]:
    """With what the published programs are built."""
    lines = (line.removeprefix("# ").partition(": ") for line in DIGESTS.read_text().splitlines())
    return {step: version for step, _, version in lines if step in {"rustc", "libc6-dev", "gcc"}}


def said(*command: str) -> str:
    """What a program prints; nothing where it is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()
    except FileNotFoundError:
        return ""


def test_the_programs_that_are_used_are_the_published_ones() -> None:
    """Whatever compiler is here: they are kept. One of others made others, where the sources have changed."""
    local = {
        "rustc": said("rustc", "--version"),
        "libc6-dev": said("dpkg-query", "--show", "--showformat=${Version}", "libc6-dev"),
        "gcc": said("gcc", "-dumpfullversion"),
    }
    assert (HERE / guest_programs.PUBLISHED).read_text() == DIGESTS.read_text()
    differing = guest_programs.unpublished(HERE)
    if differing and local != pinned():
        step = f"the published guest programs are built with {told(pinned())}; here is {told(local)}"
        skip_outdated(step, record="crates/record-digests && python -m tests.support.record_guests")
    assert differing == (), "crates/ has changed: crates/record-digests"


def told(versions: dict[str, str]) -> str:
    """For a line that people read."""
    return ", ".join(f"{name} {version or 'none'}" for name, version in versions.items())


def test_the_compiler_that_is_pinned_is_the_one_of_the_published_programs() -> None:
    version = pinned()["rustc"].split()[1]
    assert f'channel = "{version}"' in (ROOT / "rust-toolchain.toml").read_text()


def test_a_program_that_is_another_one_is_told(tmp_path: Path) -> None:
    for name in ("agent", "work"):
        (tmp_path / name).write_text(name)
    rows = (f"{digest_of_file(tmp_path / name)}  {name}" for name in ("agent", "work"))
    (tmp_path / guest_programs.PUBLISHED).write_text("\n".join(["# a comment", *rows, ""]))
    assert guest_programs.unpublished(tmp_path) == ()
    (tmp_path / "work").write_text("compiled otherwise")
    assert guest_programs.unpublished(tmp_path) == ("work",)


def test_programs_of_which_no_digest_is_published_are_others(tmp_path: Path) -> None:
    (tmp_path / "agent").touch()
    assert guest_programs.unpublished(tmp_path) == ("agent",)


@pytest.mark.parametrize(
    "line", ["", "0123456789ab", "0123  work  more", "0123\xff  work", "\u2028", "0123\x00"]
)
def test_of_a_damaged_list_the_program_is_another(line: str, tmp_path: Path) -> None:
    (tmp_path / "work").touch()
    (tmp_path / guest_programs.PUBLISHED).write_text(f"# a comment\n{line}", encoding="utf-8")
    assert guest_programs.unpublished(tmp_path) == ("work",)


def identity(**executed: str) -> MachineIdentity:
    return MachineIdentity(machine="exact", mode=Mode.EXACT_PLUGIN, executed=executed)


def test_a_trial_with_other_programs_says_that_digits_may_differ() -> None:
    recorded = guest_programs.published(HERE)
    differing = identity(agent=recorded["agent"], workloads="0" * 64, image="1" * 64)
    (warning,) = machine_warnings(differing, None)
    assert warning.kind is WarningKind.GUEST_PROGRAMS
    assert warning.is_note
    assert "(workloads) are not the published ones" in warning.text


def test_a_trial_with_the_published_programs_says_nothing_of_them() -> None:
    recorded = guest_programs.published(HERE)
    usual = identity(agent=recorded["agent"], workloads=recorded["work"], plugin=recorded["insn-v1.so"])
    assert machine_warnings(usual, None) == ()
