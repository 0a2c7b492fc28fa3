"""Options that a patch brings have their own defaults in every configuration, and are listed."""

import difflib
import sys
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import a_buildable_source

from ktrial.experiment.provenance import patch_warnings
from ktrial.kernels.build.builds import build, configured
from ktrial.kernels.build.requests import requested
from ktrial.model.kernel import Build
from ktrial.model.warnings import WarningKind

_BEFORE = """\
config MODULES
\tbool "Modules"
\toption modules

config 64BIT
\tdef_bool y

config SMP
\tbool "Several CPUs"
\tdefault y

config OLD_EXTRA
\tbool "There before, and offered only beside the new scheduler"
\tdepends on NEW_SCHED
\tdefault y

config FAIR
\tbool "The old scheduler's groups"
\tdepends on !NEW_SCHED
\tdefault y

source "mm/Kconfig"
"""
_SCHEDULER = """\
menu "Another scheduler"

config NEW_SCHED
\tbool "The new scheduler"
\tdefault y

config NEW_SMP
\tbool "Its part for several CPUs"
\tdepends on NEW_SCHED && SMP
\tdefault y

config NEW_DEBUG
\tbool "Its checks"
\tdepends on NEW_SCHED

config NEW_NUMA
\tbool "Its part for several nodes"
\tdepends on NEW_SCHED && NUMA
\tdefault y

choice
\tprompt "Its queues"
\tdepends on NEW_SCHED
\tdefault NEW_SHARED if SMP
\tdefault NEW_ALONE

config NEW_ALONE
\tbool "One a CPU"

config NEW_SHARED
\tbool "One for all"
\tdepends on NEW_SMP

endchoice

config NEW_SLICE
\tint "Its slice"
\tdepends on NEW_SCHED
\tdefault 6 if NEW_SHARED
\tdefault 3

endmenu
"""
_MM = """\
config MOVED
\tbool "Only moved by the patch"
\tdefault y
"""
_DRAWN = [("NEW_SCHED", "y"), ("NEW_SMP", "y"), ("NEW_SHARED", "y"), ("NEW_SLICE", "6")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    # This source's make runs the tests' own Python, which no sandbox holds.
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "not wanted here")
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Whose make resolves configurations as the kernel's does: dependencies, choices, defaults."""
    directory = a_buildable_source(tmp_path / "linux")
    makefile = directory / "Makefile"
    text = makefile.read_text()
    for target in ("allnoconfig", "olddefconfig"):
        old = text[
            text.index(f"\n{target}:") : text.index(
                "\n", text.index("\t@$(resolve)", text.index(f"\n{target}:"))
            )
        ]
        resolve = (
            f"KCONFIG_CONFIG=$(O)/.config srctree=. {sys.executable} -m {target} Kconfig >/dev/null 2>&1"
        )
        export = "KCONFIG_ALLCONFIG=$(KCONFIG_ALLCONFIG) " if target == "allnoconfig" else ""
        text = text.replace(old, f"\n{target}:\n\t@mkdir -p $(O)\n\t@{export}{resolve}")
    makefile.write_text(text)
    (directory / "Kconfig").write_text(_BEFORE)
    (directory / "mm").mkdir()
    (directory / "mm/Kconfig").write_text(_MM)
    return directory


def diff(path: str, before: str, after: str) -> str:
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(old, new, f"a/{path}" if before else "/dev/null", f"b/{path}"))


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    """Brings a scheduler, and moves an option from one file to another."""
    moved = _BEFORE.replace('source "mm/Kconfig"', f'source "kernel/Kconfig.sched"\n{_MM}')
    path = tmp_path / "sched.patch"
    path.write_text(diff("Kconfig", _BEFORE, moved) + diff("kernel/Kconfig.sched", "", _SCHEDULER))
    with path.open("a") as more:
        more.write(diff("mm/Kconfig", _MM, "# empty\n"))
    return path


def asked(source: Path, patch: Path, *options: str, config: str = "guest") -> Build:
    return requested(str(source), patches=[str(patch)], options=options, config=config, directory=Path("/"))


def of_patch(options: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("CONFIG_NEW_"): value for name, value in options.items() if "_NEW_" in name}


def test_what_a_patch_brings_has_its_own_defaults_in_the_smallest_configuration(
    source: Path, patch: Path
) -> None:
    options = dict(configured(asked(source, patch)))
    assert of_patch(options) == {"SCHED": "y", "SMP": "y", "SHARED": "y", "SLICE": "6"}
    assert "CONFIG_OLD_EXTRA" not in options, "what was there before is off, as all else"
    assert "CONFIG_MOVED" not in options, "an option that the patch only moves is none of its own"
    assert "CONFIG_FAIR" not in options


def test_what_the_user_sets_stays_and_the_rest_follows(source: Path, patch: Path) -> None:
    off = dict(configured(asked(source, patch, "NEW_SCHED=n")))
    assert of_patch(off) == {}
    alone = dict(configured(asked(source, patch, "NEW_ALONE=y", "NEW_DEBUG=y")))
    assert of_patch(alone) == {"SCHED": "y", "SMP": "y", "ALONE": "y", "DEBUG": "y", "SLICE": "3"}
    single = dict(configured(asked(source, patch, "SMP=n")))
    assert of_patch(single) == {"SCHED": "y", "ALONE": "y", "SLICE": "3"}


@pytest.mark.parametrize("config", ["own.config", "defconfig"])
def test_other_configurations_say_nothing_about_it_and_leave_it_its_defaults(
    config: str, source: Path, patch: Path, tmp_path: Path
) -> None:
    own_value = tmp_path / "own.config"
    own_value.write_text("CONFIG_SMP=y\n# CONFIG_FAIR is not set\n")
    kernel = build(asked(source, patch, config=config if config == "defconfig" else str(own_value)))
    message = {
        new_option.option.removeprefix("CONFIG_"): new_option.value
        for new_option in kernel.origin.new_options
    }
    assert message.items() >= set(_DRAWN)


def test_what_became_of_them_is_kept_with_the_kernel_and_told(
    source: Path, patch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = build(asked(source, patch))
    options = kernel.origin.new_options
    values = "NEW_ALONE=n NEW_DEBUG=n NEW_NUMA=n NEW_SCHED=y NEW_SHARED=y NEW_SLICE=6 NEW_SMP=y"
    assert " ".join(map(str, options)) == values
    assert [option.option for option in options if not option.value] == ["CONFIG_NEW_NUMA"]
    (note,) = patch_warnings(kernel)
    assert (note.kind, note.is_note) == (WarningKind.NEW_OPTIONS, True)
    shown = "NEW_SCHED=y, NEW_SHARED=y, NEW_SLICE=6, NEW_SMP=y; off: NEW_ALONE, NEW_DEBUG, NEW_NUMA"
    assert shown in note.text
    ktrial = CommandLine(monkeypatch, capsys)
    listed = ktrial("kernel", "show", kernel.name).output
    assert shown in " ".join(listed.split())
    built = ktrial("kernel", "build", source, "--patch", patch)
    assert f"ktrial: note: {note.text}" in built.messages


def test_a_kernel_without_patches_has_none(source: Path) -> None:
    plain = build(requested(str(source), directory=Path("/")))
    assert plain.origin.new_options == ()
    assert patch_warnings(plain) == ()
