"""Workloads beside each other: what an operation of each is counted at, and how long it takes."""

import math

import numpy as np
import pytest
from tests.support.making import a_sample
from tests.support.report_records import a_record

from ktrial.analysis.fidelity import cross_sections, fidelity, workload_costs
from ktrial.analysis.result import result
from ktrial.model.fidelity import CrossSection
from ktrial.model.profile import CycleModel
from ktrial.model.study import StudyRecord, Timing
from ktrial.model.workload import STRING_BYTES, Command, Mode, WorkloadUse
from ktrial.report.fidelity import fidelity_page, lines

KERNELS = ("debian:6.1", "debian:6.12")
COUNTED = {"stat": 1000.0, "epoll": 2000.0, "pipe": 4000.0, "mmap": 9000.0, "fork": 90000.0}


def measured(kind: str, costs: dict[str, float], string_bytes: float = 0.0) -> StudyRecord:
    """Two treatments, of which the second costs a tenth more; `costs` are the baseline's, per operation."""
    record = a_record(KERNELS, tuple(costs), perturbations=6)
    timed, rng = kind == "host", np.random.default_rng(4)
    mode = Mode.TIMED if timed else Mode.EXACT_CLOCK
    trials = []
    for trial in record.trials:
        factor = 1.1 if trial.planned.treatment.label == "debian:6.12" else 1.0
        samples = []
        for name, cost in costs.items():
            value = cost * factor * math.exp(rng.normal(0, 0.001 * timed))
            unit = "ns" if timed else "instructions"
            samples.append(a_sample(name, value, mode=mode, metric=name, unit=unit))
            if string_bytes:
                more = {"metric": STRING_BYTES.name, "unit": STRING_BYTES.unit}
                samples.append(a_sample(name, string_bytes, mode=mode, **more))
        trials.append(trial.model_copy(update={"samples": tuple(samples), "counters": ()}))
    machine = record.study.machine.model_copy(update={"kind": kind})
    study = record.study.model_copy(
        update={"machine": machine, "timing": Timing(blocks=6) if timed else None}
    )
    answer = result(study, trials)
    return record.model_copy(update={"study": study, "trials": tuple(trials), "result": answer})


def in_time(nanoseconds: float, scatter: float = 1.0) -> dict[str, float]:
    """The same workloads at so many nanoseconds an instruction, every second one dearer by `scatter`."""
    return {
        name: cost * nanoseconds * scatter ** (place % 2)
        for place, (name, cost) in enumerate(COUNTED.items())
    }


def only(exact: StudyRecord, timed: StudyRecord) -> CrossSection:
    return next(section for section in fidelity([(exact, timed)]).across if section.count == "instructions")


def test_time_in_proportion_scatters_by_nothing() -> None:
    section = only(measured("exact", COUNTED), measured("host", in_time(0.3)))
    assert section.workloads == 5
    assert section.spearman.value == pytest.approx(1.0)
    assert section.scatter == pytest.approx(1.0, abs=0.01)


def test_the_scatter_is_the_geometric_standard_deviation_of_time_for_an_instruction() -> None:
    section = only(measured("exact", COUNTED), measured("host", in_time(0.3, 1.5)))
    logs = [math.log(1.5) * (place % 2) for place in range(5)]
    assert section.scatter == pytest.approx(math.exp(np.std(logs, ddof=1)), rel=0.01)
    assert "5 workloads" in section.sentence
    assert f"{section.scatter:.2f}-fold" in section.sentence


def test_string_bytes_count_as_a_part_of_an_instruction() -> None:
    costs = workload_costs([(measured("exact", COUNTED, 3200.0), measured("host", in_time(0.3)))])
    stat = next(cost for cost in costs if cost.workload == "stat")
    assert stat.exact["instructions"] == pytest.approx(1000)
    assert stat.exact["instructions and bytes"] == pytest.approx(1000 + 3200 * CycleModel().string_byte)


def test_a_workload_of_two_studies_counts_once() -> None:
    both = (measured("exact", COUNTED), measured("host", in_time(0.3)))
    assert len(workload_costs([both, both])) == 5


def test_a_command_has_operations_of_its_own_and_is_left_out() -> None:
    exact, timed = measured("exact", COUNTED), measured("host", in_time(0.3))
    without_fork = tuple(workload for workload in timed.study.workloads if workload.name != "fork")
    command = WorkloadUse(name="fork", command=Command(argv=("./own",)))
    changed = timed.study.model_copy(update={"workloads": (*without_fork, command)})
    costs = workload_costs([(exact, timed.model_copy(update={"study": changed}))])
    assert {cost.workload for cost in costs} == set(COUNTED) - {"fork"}


def test_one_workload_is_too_few() -> None:
    costs = workload_costs([(measured("exact", {"stat": 1000.0}), measured("host", {"stat": 300.0}))])
    (section, *_) = cross_sections(costs, seed=1)
    assert (section.workloads, section.scatter, section.spearman.value) == (1, None, None)
    assert "too few" in section.sentence


def test_it_is_told_in_the_text_and_on_the_page() -> None:
    reported = fidelity([(measured("exact", COUNTED), measured("host", in_time(0.3, 1.5)))])
    text = "\n".join(lines(reported))
    assert "Workloads beside each other" in text
    assert reported.across[0].sentence in text
    html = fidelity_page(reported, "across")
    assert "Workloads beside each other" in html
    assert "90,000" in html or "90\u202f000" in html
