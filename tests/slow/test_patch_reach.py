"""A patch that brings an option, built for real: on by its own default, off by it, and whether it ran.

Two patches of ours change one line of getppid, by an option with a prompt: `default y` in one, `default n` in
the other. So the first must show in the system call, and the second must be the same image, to the last bit.
Kernels and trees are the user's own cache's, so that what was built once is not built again.
"""

import difflib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.real_runs import run_shown

from ktrial.kernels.build.debian_sources import debian_source

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(4 * 3600)]
SOURCE = "linux-source-5.10"
KTRIAL = Path(sys.executable).with_name("ktrial")
ASKED = "\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));\n"
"""In getppid. What is added stands on the same line: else the lines of warnings behind it would move."""
OPTION = """\
config KTRIAL_{name}
\tbool "Say it {times} times"
\tdefault {default}

"""
STUDY = """\
question = "What does the patch change?"
workloads = ["syscall", "nqueens"]
perturbations = 1
[machine]
kernel = "guest"
[kernels.guest]
source = "debian:{source}"
[factors.patch]
levels = ["", "{on}", "{off}"]
kind = "patch"
"""


def a_patch(directory: Path, name: str, default: str) -> Path:
    """Brings KTRIAL_NAME, which makes the null system call 100 instructions longer."""
    work = f'if (IS_ENABLED(CONFIG_KTRIAL_{name})) asm volatile(".rept 100; nop; .endr");'
    option = OPTION.format(name=name, times=100, default=default)
    changes = {
        "kernel/sys.c": (ASKED, f"{ASKED.rstrip()} {work}\n"),
        "init/Kconfig": ('menu "General setup"\n', f'menu "General setup"\n\n{option}'),
    }
    text = ""
    for path, (old, new) in changes.items():
        before = (debian_source(SOURCE) / path).read_text()
        assert before.count(old) == 1, path
        one, other = (each.splitlines(keepends=True) for each in (before, before.replace(old, new)))
        text += "".join(difflib.unified_diff(one, other, f"a/{path}", f"b/{path}"))
    patch = directory / f"{name.lower()}.patch"
    patch.write_text(text)
    return patch


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the study says, as JSON."""
    place = tmp_path_factory.mktemp("study")
    on, off = a_patch(place, "ON", "y"), a_patch(place, "OFF", "n")
    (place / "patch.toml").write_text(STUDY.format(source=SOURCE, on=on, off=off))
    command: list[str | Path] = [
        KTRIAL,
        "run",
        place / "patch.toml",
        "--store",
        place / "x.db",
        "--no-html",
        "--json",
    ]
    done = run_shown(command)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rows(told: dict[str, Any], treatment: str) -> dict[str, dict[str, Any]]:
    return {
        one["workload"]: one
        for one in told["comparisons"]
        if treatment in one["treatment"] and one["metric"] != "string-bytes"
    }


def warnings(told: dict[str, Any], kind: str) -> list[str]:
    return [one["text"] for one in told["warnings"] if one["kind"] == kind]


def test_an_option_with_a_prompt_and_default_y_is_on_and_shows(told: dict[str, Any]) -> None:
    assert any("KTRIAL_ON=y" in text for text in warnings(told, "new-options"))
    changed = rows(told, "on.patch")
    assert changed["syscall"]["value"] - changed["syscall"]["baseline_value"] == pytest.approx(100, abs=5)
    assert changed["syscall"]["verdict"] == "worse"
    assert warnings(told, "change-not-run") == []


def test_the_null_control_is_told_as_what_the_patch_does_not_reach(told: dict[str, Any]) -> None:
    (text,) = warnings(told, "change-partly-run")
    # Two: the system call has an entry for 64 bits, and one for 32.
    assert "no function that the patch changes (2 of them) ran in nqueens" in text


def test_an_option_that_is_off_by_default_leaves_the_same_image_and_that_is_said(
    told: dict[str, Any],
) -> None:
    (text,) = warnings(told, "same-image")
    assert "off.patch" in text
    assert "KTRIAL_OFF=n" in text
    assert {one["verdict"] for one in rows(told, "off.patch").values()} == {"identical"}
