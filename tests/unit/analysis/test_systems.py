"""`ktrial matrix systems`: machine by machine, with the interaction of machine and version tested."""

import re
from pathlib import Path

import html5lib
import numpy as np
import pytest
from tests.support.command_line import CommandLine
from tests.support.report_records import FIVE, a_record
from tests.support.runs_of_tests import by_night
from tests.support.stored_results import a_store
from tests.unit.analysis.test_history import timed, with_qemu

from ktrial.analysis.history.machine_agreement import across, on_machines
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.experiment.single_kernel import study_on
from ktrial.model.history import Across, Agreement
from ktrial.model.study import MachineSettings, Stopping, StudyRecord, Timing
from ktrial.report.site.site import build
from ktrial.stats.interactions import exact_agreement, interaction_p
from ktrial.store.store import open_store

OLD, NEW = "debian:6.1", "debian:6.12"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def on(cpu: str, factor: float, seed: int, spread: float = 0.01, **provenance: object) -> StudyRecord:
    record = timed(a_record((OLD, NEW), ("fork",), perturbations=12), spread, {NEW: factor}, seed)
    return with_qemu(record, "", cpu_model=cpu, **provenance)


def rows_of(directory: Path, *records: StudyRecord) -> tuple[Across, ...]:
    with open_store(str(a_store(directory, *records))) as store:
        return across(stored_numbers(store), ["fork"], OLD, NEW, 0.03)


def test_a_change_of_41_and_28_percent_depends_on_the_machine(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, on("Xeon", 1.41, 1), on("EPYC", 1.28, 2))
    assert row.agreement is Agreement.DIFFERS
    assert row.p is not None
    assert row.p < 1e-3
    ratios = sorted(system.ratio for system in row.systems)
    assert ratios == pytest.approx([1.28, 1.41], rel=0.02)
    assert {system.system.cpu_model for system in row.systems} == {"Xeon", "EPYC"}


def test_the_same_change_is_general(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, on("Xeon", 1.41, 3, 0.003), on("EPYC", 1.41, 4, 0.003))
    assert row.agreement is Agreement.SAME


def test_what_is_not_significant_is_not_yet_the_same(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, on("Xeon", 1.41, 3, 0.05), on("EPYC", 1.41, 4, 0.05))
    assert row.agreement is Agreement.UNDECIDED


def test_in_real_time_the_change_over_such_machines_is_told(tmp_path: Path) -> None:
    records = (on("Xeon", 1.30, 1), on("EPYC", 1.34, 2), on("Atom", 1.32, 3), on("Core", 1.36, 4))
    (row,) = rows_of(tmp_path, *records)
    over = row.over_machines
    assert over is not None
    assert over.low < 1.33 < over.high
    assert over.low > 1.25
    (alone,) = rows_of(tmp_path / "two", *records[:2])
    assert alone.over_machines is not None
    assert alone.over_machines.high / alone.over_machines.low > over.high / over.low, "two say little"


def test_exact_numbers_are_not_averaged_over_machines(tmp_path: Path) -> None:
    exact = a_record((OLD, NEW), ("fork",))
    (row,) = rows_of(tmp_path, exact, with_qemu(exact, "10"))
    assert row.over_machines is None


def test_other_systems_with_one_processor_are_told_apart_by_their_names(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, at("root@lab1", 1.3, 1), at("lab2", 1.3, 2))
    assert {system.system.machine for system in row.systems} == {"ssh lab1", "ssh lab2"}


def at(host: str, factor: float, seed: int, **provenance: object) -> StudyRecord:
    """As if the study had been run there, as its file says."""
    record = on("Xeon", factor, seed, 0.003, machine="ssh", machine_arguments=(f"host={host}",), **provenance)
    timing = Timing(blocks=12, stopping=Stopping.FIXED)
    machine = MachineSettings(kind="ssh", host=host, boots=True)
    study = study_on(record.study.model_copy(update={"machine": machine, "timing": timing}), host)
    return record.model_copy(update={"study": study})


def test_one_study_on_several_machines_is_compared_treatment_by_treatment() -> None:
    records = [at(host, 1.3, seed) for seed, host in enumerate(("lab1", "root@lab2", "lab3"), 3)]
    (row,) = on_machines(records)
    assert (row.workload, row.before, row.after) == ("fork", OLD, NEW)
    assert row.agreement is Agreement.SAME
    assert {system.system.machine for system in row.systems} == {"ssh lab1", "ssh lab2", "ssh lab3"}
    assert row.over_machines is not None
    assert row.over_machines.low < 1.3 < row.over_machines.high
    (row,) = on_machines([*records[:2], at("lab3", 1.5, 7)])
    assert row.agreement is Agreement.DIFFERS
    assert on_machines(records[:1]) == ()


def test_blocks_are_paired_though_one_machine_has_lost_a_trial() -> None:
    complete, second = at("lab1", 1.3, 1), at("lab2", 1.3, 2)
    lost = complete.model_copy(update={"trials": complete.trials[1:]})
    (row,) = on_machines([lost, second])
    ratios = [system.ratio for system in row.systems]
    assert ratios == pytest.approx([1.3, 1.3], rel=0.01)
    assert [system.blocks for system in row.systems] == [11, 12]


def test_each_machine_s_own_kernel_is_a_part_of_it_and_another_kernel_of_one_name_is_told() -> None:
    def own(record: StudyRecord, digest: str) -> StudyRecord:
        return with_qemu(record, "", kernel_digest=digest * 64)

    records = [own(at("lab1", 1.3, 3), "a"), own(at("lab2", 1.3, 4), "b")]
    (row,) = on_machines(records)
    assert row.agreement is Agreement.SAME, "the same kernel before and after, on each"
    (row,) = on_machines([at("lab1", 1.3, 1), records[1]])
    assert "another kernel on each machine" in row.reason


def test_a_study_is_called_after_its_machine() -> None:
    study = a_record((OLD, NEW), ("fork",)).study
    assert study_on(study, "me@lab1.example").name == f"{study.name}-lab1.example"
    long = study_on(study.model_copy(update={"name": "x" * 64}), "lab1").name
    assert (len(long), long[-6:]) == (64, "x-lab1")


def test_noise_alone_seldom_looks_like_an_interaction() -> None:
    rng = np.random.default_rng(1)
    p = [interaction_p(rng.normal(0, 0.02, (2, 8)).tolist()) for _ in range(by_night(1000, 400))]
    assert np.mean([p_value is not None and p_value <= 0.05 for p_value in p]) == pytest.approx(
        0.05, abs=by_night(0.02, 0.035)
    )
    assert interaction_p([[0.1, 0.2], [0.1, 0.2]]) is None
    assert interaction_p([[0.1, 0.1, 0.1], [0.1, 0.2, 0.3]]) is None


def test_exact_machines_are_judged_by_margin_and_spread(tmp_path: Path) -> None:
    assert exact_agreement([(1.10, 1.101), (1.105, 1.106)], 0.01) is Agreement.SAME
    assert exact_agreement([(1.10, 1.11), (1.20, 1.21)], 0.01) is Agreement.DIFFERS
    assert exact_agreement([(1.10, 1.13), (1.12, 1.15)], 0.01) is Agreement.UNDECIDED
    (row,) = rows_of(
        tmp_path, a_record((OLD, NEW), ("fork",)), with_qemu(a_record((OLD, NEW), ("fork",)), "10")
    )
    assert (row.agreement, row.p) == (Agreement.SAME, None)


def test_other_kernels_of_one_name_are_told(tmp_path: Path) -> None:
    moved = a_record((OLD, NEW), ("fork",))
    trials = tuple(
        trial.model_copy(
            update={
                "provenance": trial.provenance.model_copy(update={"kernel_digest": "f" * 64, "qemu": "10"})
            }
        )
        for trial in moved.trials
    )
    (row,) = rows_of(tmp_path, a_record((OLD, NEW), ("fork",)), moved.model_copy(update={"trials": trials}))
    assert row.agreement is Agreement.UNDECIDED
    assert "another kernel on each machine" in row.reason


def test_the_site_shows_each_machine_and_averages_nothing(tmp_path: Path) -> None:
    with open_store(str(a_store(tmp_path, on("Xeon", 1.41, 1), on("EPYC", 1.28, 2)))) as store:
        build(store, tmp_path / "site", notes=tmp_path / "cache")
    page = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    parser = html5lib.HTMLParser()
    parser.parse(page)
    assert parser.errors == []
    assert 'id="machines"' in page
    assert "it depends on the machine" in page
    for cpu, change in (("Xeon", r"\+4[0-2]\."), ("EPYC", r"\+2[6-9]\.")):
        assert cpu in page
        assert re.search(change, page)


def test_one_machine_has_nothing_to_compare_with(tmp_path: Path) -> None:
    with open_store(str(a_store(tmp_path, on("Xeon", 1.41, 1)))) as store:
        build(store, tmp_path / "site", notes=tmp_path / "cache")
    assert 'id="machines"' not in (tmp_path / "site/index.html").read_text(encoding="utf-8")


def test_systems_prints_each_machine(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path, on("Xeon", 1.41, 1), on("EPYC", 1.28, 2))
    result = cli("matrix", "systems", OLD, NEW, "--store", store)
    assert result.status == 0
    assert "it depends on the machine" in result.output
    assert "Xeon" in result.output
    assert cli("matrix", "systems", OLD, FIVE[0], "--store", store).status == 1
