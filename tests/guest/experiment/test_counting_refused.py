"""Where the plugin cannot count, or names would be wrong: a clear error, or an honest lesser answer.

Run as a user runs it. In QEMU's place stands a script that does one thing otherwise.
"""

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests import boot_of, work
from tests.support.real_runs import environment, ktrial

from ktrial.experiment.profile import KernelSymbols
from ktrial.file_digests import sealed
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu import plugin
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu.plugin import PluginBuild
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.guest

KERNEL = "debian:6.1"
KASLR_STEP = 2 << 20
"""CONFIG_PHYSICAL_ALIGN: by how much, at the least, a kernel moves itself."""

WITHOUT_PLUGINS = """\
for given; do
    [ "$given" = -plugin ] && { echo "$0: -plugin: invalid option" >&2; exit 1; }
done
"""
"""As a QEMU that was configured with --disable-plugins."""
OTHER_PLUGIN = """\
for given; do
    shift
    set -- "$@" "$(printf %s "$given" | sed 's,{ours},{other},')"
done
"""
"""Loads the build for another version of QEMU's plugin API."""
FULL_DISK = """\
for given; do
    shift
    set -- "$@" "$(printf %s "$given" | sed 's,out=/proc[^\\,]*,out=/dev/full,')"
done
"""


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class User:
    """Runs `ktrial` with a cache and a store of their own."""

    cache: Path
    place: Path
    program: Path | None = None
    """In QEMU's place."""

    def __call__(self, *arguments: str | Path) -> Said:
        variables = environment(self.cache) | {"KTRIAL_STORE": str(self.place / "store.db")}
        variables |= {"KTRIAL_QEMU": str(self.program)} if self.program else {}
        done = ktrial(tuple(map(str, arguments)), variables, self.place)
        assert "Traceback" not in done.stderr
        return Said(done.returncode, done.stdout, re.sub(r"\s+", " ", done.stderr))

    def with_qemu(self, does: str) -> "User":
        """The same, with a QEMU that does something before it is QEMU."""
        path = shutil.which(qemu.PROGRAM)
        assert path
        program = self.place / "qemu-of-a-test"
        program.write_text(f'#!/bin/sh\nqemu={path}\n{does}exec "$qemu" "$@"\n')
        program.chmod(0o755)
        return User(self.cache, self.place, program)


@pytest.fixture
def user(run_cache: Path, tmp_path: Path) -> User:
    return User(run_cache, tmp_path)


def a_study(place: Path, machine: str = "", workload: str = '"syscall"') -> Path:
    path = place / "study.toml"
    path.write_text(
        f'perturbations = 1\nworkloads = [{workload}]\n[machine]\nkernel = "{KERNEL}"\n{machine}\n'
        '[factors.overcommit]\nkind = "setting"\ntarget = "vm.overcommit_memory"\nlevels = [0, 1]\n'
    )
    return path


PROFILE = ("profile", "--kernel", KERNEL, "--workload", "syscall")
EXPLAIN = ("explain", "--kernel", KERNEL, "--kernel", "debian:6.12", "--workload", "syscall")


@pytest.mark.parametrize(
    "command",
    [PROFILE, pytest.param(EXPLAIN, marks=pytest.mark.nightly)],
    ids=["profile", "explain"],
)
def test_without_plugins_nothing_is_counted_by_function(user: User, command: tuple[str, ...]) -> None:
    said = user.with_qemu(WITHOUT_PLUGINS)(*command)
    assert said.status == 1
    assert "cannot count by function with" in said.errors
    assert "-plugin: invalid option" in said.errors
    assert "hint: QEMU has to be built with plugins (Debian's is)" in said.errors
    assert said.output == ""


@pytest.mark.nightly
def test_without_plugins_a_study_is_counted_by_the_clock_and_says_so(user: User) -> None:
    old = user.with_qemu(WITHOUT_PLUGINS)
    said = old("run", a_study(user.place), "--no-html")
    assert said.status == 0, said.errors
    assert "the plugin does not load" in re.sub(r"\s+", " ", said.output)
    told = json.loads(old("run", a_study(user.place), "--no-html", "--json").output)
    assert {sample["mode"] for trial in told["trials"] for sample in trial["samples"]} == {"exact-clock"}
    refused = old("run", a_study(user.place), "--no-html", "--count", "plugin")
    assert refused.status == 1
    assert "cannot count by function with" in refused.errors
    said = old("doctor")
    assert "instructions are counted by the guest's clock instead" in re.sub(r"\s+", " ", said.output)


@pytest.mark.nightly
def test_a_plugin_for_another_version_of_qemus_api_is_refused(user: User) -> None:
    ours = plugin.find(qemu.find().version)
    assert isinstance(ours, PluginBuild)
    # QEMU takes older versions, but not its own future.
    other = 4 if ours.api < 4 else 1
    foreign = OTHER_PLUGIN.format(ours=ours.path, other=ours.path.with_name(f"insn-v{other}.so"))
    said = user.with_qemu(foreign)(*PROFILE)
    assert said.status == 1
    assert "does not load the plugin" in said.errors
    said = user.with_qemu(foreign)("run", a_study(user.place), "--no-html")
    assert said.status == 0, said.errors
    assert "the plugin does not load" in re.sub(r"\s+", " ", said.output)


@pytest.mark.nightly
def test_counts_that_cannot_be_written_are_no_counts(user: User) -> None:
    full = user.with_qemu(FULL_DISK)
    said = full(*PROFILE)
    assert said.status == 1
    assert "cannot write out=/dev/full" in said.errors
    said = full("run", a_study(user.place), "--no-html")
    assert said.status != 0
    assert "cannot write out=/dev/full" in re.sub(r"\s+", " ", said.output + said.errors)


@pytest.mark.nightly
def test_a_disk_that_becomes_full_ends_the_guest() -> None:
    """Better nothing than a part of the counts."""
    reading, writing = os.pipe()
    os.fchmod(writing, 0o666)  # root's QEMU is another user

    def read_the_first_line_only() -> None:
        with os.fdopen(reading) as counts:
            assert counts.readline().startswith('{"insn"')

    reader = threading.Thread(target=read_the_first_line_only)
    with ExactMachine().instrumented(boot_of(kernel_registry.add(KERNEL))) as target:
        reader.start()
        with (
            os.fdopen(writing, "wb") as file,
            pytest.raises(GuestEnded, match="the disk is full, or the file is gone") as caught,
        ):
            target.counted_into(file.fileno(), (work("syscall"),), None)
    reader.join()
    assert caught.value.outcome == Outcome.MACHINE_FAILED.value


def test_more_than_one_cpu_is_refused_where_qemu_would_hang(user: User) -> None:
    if qemu.find().version >= (10, 0, 0):
        said = user("run", a_study(user.place, "cpus = 2"), "--no-html")
        assert said.status == 0, said.errors
        return
    said = user("run", a_study(user.place, "cpus = 2"), "--no-html")
    assert said.status == 1
    assert "runs 2 CPUs only with QEMU 10.0 or later" in said.errors
    assert "hint:" in said.errors


def moved_by(distance: int) -> Callable[[str], str]:
    """The table of a kernel that runs elsewhere than it says."""

    def moved(line: re.Match[str]) -> str:
        return f"{(int(line[0], 16) + distance) % 2**64:016x}"

    return lambda text: re.sub(r"^ffffffff[0-9a-f]{8}", moved, text, flags=re.MULTILINE)


def hidden(text: str) -> str:
    """The table of a kernel that hides its addresses."""
    return re.sub(r"^[0-9a-f]{16}", "0" * 16, text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def table() -> str:
    """The functions in /proc/kallsyms of the kernel."""
    boot = boot_of(kernel_registry.add(KERNEL))
    with ExactMachine().instrumented(boot) as target:
        return KernelSymbols().of(target, boot).text


@pytest.fixture
def told_otherwise(
    user: User, table: str, snapshots: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[str], str]], str]:
    """The same kernel's image, of which another table is known. Returns its name."""
    image = kernel_registry.add(KERNEL).image
    own_cache = user.place / "cache"
    own_cache.mkdir()
    (own_cache / "snapshots").symlink_to(snapshots)
    monkeypatch.setenv("KTRIAL_CACHE", str(own_cache))

    def other(change: Callable[[str], str]) -> str:
        own: Kernel = kernel_registry.add(f"path:{image}")
        (own.image.parent / "kallsyms").write_bytes(sealed(change(table).encode()))
        return own.name

    return other


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (moved_by(KASLR_STEP), "does not run where /proc/kallsyms says that it is"),
        pytest.param(
            moved_by(-KASLR_STEP),
            "does not run where /proc/kallsyms says that it is",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            moved_by(8 * KASLR_STEP),
            "does not run where /proc/kallsyms says that it is",
            marks=pytest.mark.nightly,
        ),
        (hidden, "does not tell its functions' names"),
        pytest.param(lambda _text: "", "does not tell its functions' names", marks=pytest.mark.nightly),
    ],
    ids=["moved up", "moved down", "moved far", "hidden", "none"],
)
def test_wrong_names_are_not_given(
    user: User,
    told_otherwise: Callable[[Callable[[str], str]], str],
    change: Callable[[str], str],
    problem: str,
) -> None:
    """A kernel with KASLR, or without symbols."""
    name = told_otherwise(change)
    own = User(user.place / "cache", user.place)
    said = own("profile", "--kernel", name, "--workload", "syscall")
    assert said.status == 1
    assert problem in said.errors
    assert "hint:" in said.errors
    assert said.output == ""
    study = a_study(user.place)
    study.write_text(study.read_text().replace(KERNEL, name))
    said = own("run", study, "--no-html")
    assert said.status == 0, "the sum does not need names"
    assert problem in re.sub(r"\s+", " ", said.output)


MARKING = """\
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define MARK(number) __asm__ volatile (".byte 0x0f,0x1f,0x80; .long " #number)
static void work(void) { for (volatile int n = 0; n < 1000000; n++); }
int main(int count, char **words) {
    for (char *does = words[1]; *does; does++)
        switch (*does) {
            case 'b': MARK(0x4b540001); break;
            case 'e': MARK(0x4b540002); break;
            case 'n': MARK(0x4b540001); MARK(0x4b540002); break;
            case 'o': MARK(0x4b540003); break;
            case 'p': puts("printed"), fflush(stdout); break;
            case 'm': for (int n = 0; n < 5000000; n++) MARK(0x4b540003); break;
            case 'c': if (fork()) wait(0); else { MARK(0x4b540003); exit(0); } break;
            case 'w': work(); break;
        }
    return 0;
}
"""
BEGIN, END, OPERATION, WORK = "b", "e", "o", "w"
NOTHING, PRINT, MANY_OPERATIONS, CHILD_MARKS = "n", "p", "m", "c"
"""crates/wire/src/marks.rs"""
ONE_WORK = 6_000_000
"""Instructions in the loop."""


@pytest.fixture(scope="module")
def marking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that works and marks as the letters of its argument say: one file, and one boot for all."""
    place = tmp_path_factory.mktemp("marking")
    source, program = place / "marking.c", place / "marking"
    source.write_text(MARKING)
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    return program


MARKED = {
    "no-mark": (WORK + WORK, 2, 1),
    "region": (WORK + BEGIN + WORK + END, 1, 1),
    "regions": (BEGIN + WORK + END + WORK + BEGIN + WORK + END, 1, 2),
    "operations": (BEGIN + WORK + OPERATION + WORK + WORK + OPERATION + WORK + OPERATION + END + WORK, 1, 3),
}
"""What a program does, how many of its works its median operation has, and how many operations it marks."""


def studied(user: User, marking: Path, programs: dict[str, str]) -> dict[str, Any]:
    """A study of these programs, each run twice."""
    commands = (
        f'{{ name = "{name}", command = "{marking} {does}", repeats = 2 }}' for name, does in programs.items()
    )
    study = a_study(user.place, workload=", ".join(commands))
    told: dict[str, Any] = json.loads(user("run", study, "--no-html", "--json").output)
    return told


@pytest.mark.nightly
def test_a_commands_value_is_the_median_of_the_operations_that_it_marks(user: User, marking: Path) -> None:
    """The agent marks the start and the end of each program: one that marks nothing is counted as a whole."""
    trials = studied(user, marking, {name: does for name, (does, *_) in MARKED.items()})["trials"]
    assert [trial["reason"] for trial in trials] == ["", ""]
    for trial in trials:
        counted = [sample for sample in trial["samples"] if sample["unit"] == "instructions"]
        samples = {sample["workload"]: sample for sample in counted}
        assert set(samples) == set(MARKED)
        for name, (_, works, operations) in MARKED.items():
            assert works * ONE_WORK <= samples[name]["value"] < (works + 0.4) * ONE_WORK, name
            assert samples[name]["operations"] == 2 * operations, name
        metrics = {name: sample["metric"] for name, sample in samples.items()}
        assert metrics == dict.fromkeys(MARKED, "operation") | {"no-mark": "wall time"}
    why = json.loads(user("explain", "--no-values", "--json", "--workload", "operations").output)
    assert why["unexplained"] == 0


WRONGLY_MARKED = {
    "nested": (BEGIN + BEGIN + WORK + END + END, "several threads or processes): 1"),
    "no-end": (WORK + BEGIN + WORK, "regions that have not ended when the program does: 1"),
    "no-begin": (WORK + END + WORK, "ends of regions that have not begun: 1"),
    "no-region": (WORK + OPERATION, "operations without a region: 1"),
    "nothing": (NOTHING + WORK, "a region with nothing in it"),
    "too-many": (BEGIN + MANY_OPERATIONS + END, "a run): 805,696"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "no-end" else pytest.mark.nightly) for name in WRONGLY_MARKED],
)
def test_marks_that_cannot_be_counted_are_an_error(user: User, marking: Path, name: str) -> None:
    does, problem = WRONGLY_MARKED[name]
    trials = studied(user, marking, {name: does})["trials"]
    assert all(problem in trial["reason"] for trial in trials), trials[0]["reason"]


def test_what_else_stands_in_a_region_is_told(user: User, marking: Path) -> None:
    """Operations outside of it, another process's marks, and the agent, which reads what is printed."""
    programs = {
        "outside": OPERATION + BEGIN + WORK + OPERATION + END,
        "child": BEGIN + WORK + CHILD_MARKS + END,
        "printing": BEGIN + PRINT + WORK + WORK + WORK + OPERATION + END,
        "quiet": PRINT + BEGIN + WORK + OPERATION + END,
    }
    study = studied(user, marking, programs)
    assert [trial["reason"] for trial in study["trials"]] == ["", ""]
    told = {warning["text"] for warning in study["warnings"] if warning["kind"] == "marks"}
    assert {text.partition(":")[0] for text in told} == {"outside", "child", "printing"}
    assert any("2 operations that it marks outside" in text for text in told)
    assert any("marks came from another thread or process" in text for text in told)
    assert any("ktrial's agent executed" in text for text in told)


def test_a_workload_that_is_not_there_cannot_be_profiled(user: User) -> None:
    said = user("profile", "--kernel", KERNEL, "--workload", "/bin/true")
    assert said.status == 2
    assert "There is no workload /bin/true" in said.errors
