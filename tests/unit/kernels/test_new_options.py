"""Options that a patch brings have their own defaults in every configuration, and are listed."""

import difflib
import shutil
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import FILES, a_resolving_source, git

from ktrial.experiment.provenance import patch_warnings
from ktrial.experiment.resources import Builder
from ktrial.kernels import silent
from ktrial.kernels.build.builds import (
    add,
    build,
    cached,
    check_applies,
    configured,
    job_of,
)
from ktrial.kernels.build.requests import BuildRequest, requested
from ktrial.kernels.patch_series import series_in_git, series_in_mailbox, series_in_quilt
from ktrial.model.kernel import Build, PatchSeries
from ktrial.model.series_result import OptionStep, Step, StepState
from ktrial.model.warnings import WarningKind
from ktrial.series.building import Forward

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
    directory = a_resolving_source(tmp_path / "linux", _BEFORE)
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


# A branch of six commits as people write them, as commits, as a mailbox and as a quilt.

_STATISTICS = """
config PIPE_STATISTICS
\tbool "Count writes to pipes"
\tdefault y
"""
_COMMITS: dict[str, tuple[str, str]] = {
    "mm: count what nobody asked for": ("Kconfig", _BEFORE + _STATISTICS),
    "fork: work for it": ("kernel/fork.c", "int fork;\nint counted;\n"),
    "fork: a comment": ("kernel/fork.c", "/* Why. */\nint fork;\nint counted;\n"),
    "sched: a longer slice": ("kernel/sched.c", "int sched;\nint slice = 4;\nint end;\n"),
    "docs: a word": ("Documentation/pipe.rst", "A word.\n"),
    "Revert sched: a longer slice": ("kernel/sched.c", FILES["sched"]),
}


@pytest.fixture
def branch(source: Path) -> Path:
    """The source in git: its release, then those commits."""
    git(source, "init", "--quiet", "--initial-branch", "main")
    committed(source, "Linux 6.1.7")
    git(source, "tag", "base")
    for subject, (path, text) in _COMMITS.items():
        place = source / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        committed(source, subject)
    return source


def committed(tree: Path, subject: str) -> None:
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", subject)


def series_of(kind: str, branch: Path) -> PatchSeries:
    """The branch as it reaches ktrial."""
    if kind == "git":
        return series_in_git(branch, "base..main")
    base = f"git:{branch}@{git(branch, 'rev-parse', 'base')}"
    if kind == "mailbox":
        mailbox = branch.with_suffix(".mbx")
        mailbox.write_text(git(branch, "format-patch", "--stdout", "base..main") + "\n")
        return series_in_mailbox(mailbox, base)
    quilt = branch.with_suffix(".patches")
    names = git(branch, "format-patch", "-o", str(quilt), "base..main").split("\n")
    (quilt / "series").write_text("".join(f"{Path(name).name}\n" for name in names))
    return series_in_quilt(quilt, base)


def steps_of(series: PatchSeries) -> list[Step]:
    """Built forward, as `ktrial series` does; every kernel boots."""
    builder = Builder(
        build=build,
        configured=configured,
        cached=cached,
        applies=check_applies,
    )
    plain = requested(series.base, directory=Path("/"))
    return Forward(series, plain, builder, lambda _kernel: "", silent, lambda _text: None).steps()


def test_the_same_commits_by_git_mailbox_and_quilt_are_the_same_steps(branch: Path) -> None:
    """Of each step the source, the configuration, the options that it brings, what became of it, and its
    kernel's bytes.
    """
    answers = {}
    for kind in ("git", "mailbox", "quilt"):
        series = series_of(kind, branch)
        plain = requested(series.base, directory=Path("/"))
        jobs = [job_of(series.source(plain, number), silent) for number in range(len(_COMMITS) + 1)]
        answers[kind] = (
            [(job.source.manifest.digest, job.config) for job in jobs],
            [(step.state, step.options, step.kernel and step.kernel.digest) for step in steps_of(series)],
        )
    assert answers["git"] == answers["mailbox"] == answers["quilt"]
    sources, steps = answers["git"]
    assert [("CONFIG_PIPE_STATISTICS=y" in config) for _, config in sources] == [False] + [True] * 6
    assert [[str(option) for option in options] for _, options, _ in steps[:3]] == [
        [],
        [str(OptionStep("PIPE_STATISTICS", None, "y", True))],
        [],
    ]
    assert len({digest for digest, _ in sources}) == len(_COMMITS) + 1
    assert [number for number, step in enumerate(steps) if step[0] is StepState.NOT_COMPILED] == [5]


def test_what_commits_bring_beyond_the_release_is_on_wherever_a_source_is_named(branch: Path) -> None:
    """A commit, a work tree with something not committed, a directory that is kept for its tree."""
    (branch / "Kconfig").write_text(_BEFORE + _STATISTICS + _STATISTICS.replace("PIPE", "POLL"))
    ways = {
        f"git:{branch}@main": {"PIPE"},
        f"git:{branch}@base": set(),
        f"git:{branch}@main~5": {"PIPE"},
        str(branch): {"PIPE", "POLL"},
    }
    for place, names in ways.items():
        options = dict(configured(requested(place, directory=Path("/"))))
        assert options.keys() & {"CONFIG_PIPE_STATISTICS", "CONFIG_POLL_STATISTICS"} == {
            f"CONFIG_{name}_STATISTICS" for name in names
        }, place
    kernel = add(BuildRequest(branch))
    assert [str(option) for option in kernel.origin.new_options] == ["PIPE_STATISTICS=y", "POLL_STATISTICS=y"]
    (note,) = patch_warnings(build(requested(f"git:{branch}@main", directory=Path("/"))))
    since = git(branch, "rev-parse", "base")[:12]
    assert f"options that its commits since {since} bring: PIPE_STATISTICS=y" in note.text


def test_the_next_release_makes_them_old_but_not_for_who_counts_from_the_one_before(branch: Path) -> None:
    makefile = branch / "Makefile"
    makefile.write_text(makefile.read_text().replace("SUBLEVEL = 7", "SUBLEVEL = 8"))
    committed(branch, "Linux 6.1.8")
    plain = requested(f"git:{branch}@main", directory=Path("/"))
    assert plain.since == ""
    assert "CONFIG_PIPE_STATISTICS" not in configured(plain)
    counted = plain.model_copy(update={"since": git(branch, "rev-parse", "base")})
    assert configured(counted)["CONFIG_PIPE_STATISTICS"] == "y"
    assert counted.key != plain.key


def test_a_source_without_git_or_a_release_in_it_has_none(branch: Path, source: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(source, tmp_path / "copy", ignore=shutil.ignore_patterns(".git"))
    for place in (str(copy), f"git:{branch}@base"):
        assert requested(place, directory=Path("/")).since == ""
