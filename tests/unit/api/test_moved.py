"""What other packages imported before the modules were ordered anew works, or says where it is."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

import ktrial
from ktrial import importers, machines, monitors, program_outputs, workloads
from ktrial.kernels.providers import protocol as kernel_providers
from ktrial.knobs import catalogue
from ktrial.moved import MOVED
from ktrial.report import exports
from ktrial.workloads.errors import WorkloadError


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_module_that_was_moved_says_where_it_is(old: str, new: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"{old} is {new} now".replace(".", r"\.")):
        import_module(old)
    for name in new.split(", "):
        import_module(name)


@pytest.mark.parametrize(
    "line",
    ["from ktrial import runner", "from ktrial.runner.result import record", "import ktrial.runner.result"],
)
def test_however_it_is_imported(line: str) -> None:
    ended = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "ktrial.runner is ktrial.experiment, ktrial.analysis, ktrial.studyfile now" in ended.stderr


def test_a_module_that_never_was_is_not_there() -> None:
    assert find_spec("ktrial.nonsense") is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ktrial\.nonsense'"):
        import_module("ktrial.nonsense")


def test_errors_that_were_all_in_one_place_are_there_still() -> None:
    errors = import_module("ktrial.errors")
    with pytest.warns(DeprecationWarning, match=r"WorkloadError is ktrial\.workloads\.errors\.WorkloadError"):
        assert errors.WorkloadError is WorkloadError
    with pytest.raises(AttributeError, match="NoSuchError"):
        _ = errors.NoSuchError


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("ktrial.workloads", ("Workload", "CountsOperations", "RunsPrograms")),
        ("ktrial.machines", ("Machine", "BootedTarget", "CountingTarget", "SpeakingTarget")),
        ("ktrial.monitors", ("Monitor", "SampledMonitor")),
        ("ktrial.importers", ("Importer", "SourceFile", "Choices")),
        ("ktrial.target", ("Target", "Step", "StepResult", "Run", "Write")),
        ("ktrial.model.knob", ("Knob",)),
        ("ktrial.report.exports", ("ProfileExport",)),
        ("ktrial.machines.fake", ("FakeMachine",)),
        ("ktrial.store", ("open_store", "Store")),
    ],
)
def test_what_extensions_are_written_with_is_where_it_was(module: str, names: tuple[str, ...]) -> None:
    there = import_module(module)
    assert [name for name in names if not hasattr(there, name)] == []


def test_the_protocols_of_extensions_are_in_one_place() -> None:
    assert {name: getattr(ktrial.plugins, name) for name in dir(ktrial.plugins)} == {
        "Importer": importers.Importer,
        "KernelProvider": kernel_providers.KernelProvider,
        "Knob": import_module("ktrial.model.knob").Knob,
        "Machine": machines.Machine,
        "Monitor": monitors.Monitor,
        "OutputFormat": program_outputs.OutputFormat,
        "ProfileExport": exports.ProfileExport,
        "Workload": workloads.Workload,
    }


def test_entry_points_have_the_groups_that_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def groups(group: str) -> object:
        asked.append(group)
        return entry_points(group=group)

    monkeypatch.setattr("ktrial.plugin_discovery.entry_points", groups)
    for room in (program_outputs, workloads, machines, monitors, importers, catalogue):
        room.installed.cache_clear()
        room.installed()
    kernel_providers.all_providers()
    exports.exports()
    assert sorted(asked) == sorted(
        f"ktrial.{name}"
        for name in (
            *("workloads", "machines", "monitors", "importers", "knobs"),
            *("kernel_providers", "output_formats", "profile_exports"),
        )
    )
