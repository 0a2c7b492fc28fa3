"""`--user`: as whom own commands run where ktrial is root, and the warning where nobody said it."""

import os
from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.real_runs import ktrial

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.common import with_user
from ktrial.model.study import MachineSettings
from ktrial.model.workload import Command, WorkloadUse

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as somebody else")


def a_command(name: str, user: str = "") -> WorkloadUse:
    return WorkloadUse(name=name, command=Command(argv=("/usr/bin/id",), user=user))


def test_commands_that_name_no_user_get_it_and_nothing_else_does() -> None:
    study = a_study(machine=MachineSettings(kind="host"))
    uses = (a_command("mine"), a_command("its", "daemon"), *study.workloads)
    changed = with_user(study.model_copy(update={"workloads": uses}), "nobody")
    assert [use.command and use.command.user for use in changed.workloads] == ["nobody", "daemon", None, None]


@pytest.mark.parametrize(("kind", "problem"), [("exact", "machine host"), ("host", "a command of your own")])
def test_where_it_can_have_no_effect_it_is_refused(kind: str, problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        with_user(a_study(machine=MachineSettings(kind=kind)), "nobody")


def tuned(tmp_path: Path, *more: str) -> str:
    process = ktrial(
        (
            "tune", "--dry-run", "--knobs", "vm.stat_interval=1..9", "--maximise", "id",
            "--store", str(tmp_path / "trials.db"), *more, "--", "/usr/bin/id",
        ),
        os.environ | {"COLUMNS": "400"},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return str(process.stdout + process.stderr)


@ROOT_ONLY
def test_tune_warns_before_it_runs_a_command_as_root_and_not_where_a_user_is_named(tmp_path: Path) -> None:
    warned = tuned(tmp_path)
    assert "warning: id runs as root" in warned
    assert "--user nobody" in warned
    assert "warning" not in tuned(tmp_path, "--user", "nobody")
    assert "warning" not in tuned(tmp_path, "--user", "root")
