"""Whatever stands in a file, it is a Study or a StudyError: never a traceback."""

import contextlib
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.command_line import KNOWN
from tests.support.runs_of_tests import examples

from ktrial.model.base import digest, keys_of
from ktrial.model.study import MachineSettings, Study, plan
from ktrial.model.workload import MetricRule
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.reader import load, study_from
from ktrial.studyfile.tables import FactorTable, StudyTable, WorkloadTable

_scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**63, 10**400]),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.dates(),
    st.sampled_from(
        ["debian:6.1", "debian:6.12", "512M", "1 %", "fork", "hackbench", "exact", "kernel", "", "'"]
    ),
)
_anything = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def _table(keys: list[str], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A table with some of its keys, each with a likely value or with anything."""
    values = {key: (known[key] | _anything) if key in known else _anything for key in keys}
    return st.fixed_dictionaries({}, optional=values) | _anything


_numbers = st.lists(st.integers(0, 64), min_size=2, max_size=3, unique=True)
_levels = _numbers | st.lists(_scalars, max_size=4)
_kinds = st.sampled_from(["boot", "setting", "parameter"])
_metrics = st.lists(_table(keys_of(MetricRule), name=st.just("m"), regex=st.just("(.)")), max_size=2)
_used = st.sampled_from(["fork", "hackbench", "mine"])
_workload = _used | _table(keys_of(WorkloadTable), name=_used, metrics=_metrics, command=st.just("x"))
_factor = st.fixed_dictionaries({"levels": _numbers, "kind": _kinds}) | _table(
    keys_of(FactorTable), levels=_levels, kind=_kinds
)
_names = st.sampled_from(["vm.x", "hackbench.groups", "b", "kernel", "memory"]) | st.text(max_size=6)
_factors = st.dictionaries(_names, _factor, min_size=1, max_size=2)
_machine = st.just({"kernel": "debian:6.1"}) | _table(
    keys_of(MachineSettings), kernel=st.just("debian:6.1"), memory=st.just("1G")
)
_others = {key: _anything for key in keys_of(StudyTable) if key not in {"factors", "workloads", "machine"}}
_workloads = st.lists(_workload, min_size=1, max_size=3)
_likely = st.fixed_dictionaries({"factors": _factors, "workloads": _workloads, "machine": _machine})
_studies = _likely | st.fixed_dictionaries(
    {"factors": _factors | _anything, "workloads": _workloads | _anything},
    optional={"machine": _machine, **_others},
)


def _is_usable(study: Study) -> None:
    """What is accepted can be stored, planned and resumed."""
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert digest(study)
    if len(study.factors) <= 2:
        assert plan(study).trials


@given(_studies)
@settings(max_examples=examples(300))
def test_any_table_is_a_study_or_a_study_error(data: dict[str, Any]) -> None:
    with contextlib.suppress(StudyError):
        _is_usable(study_from(data, StudySource("study.toml"), "study", Path("/nowhere"), KNOWN))


@given(_studies)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_a_study_or_a_study_error(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "study.toml"
    path.write_text(tomli_w.dumps(data), newline="")
    with contextlib.suppress(StudyError):
        _is_usable(load(path, KNOWN))


@given(st.binary(max_size=200))
@example(b"[[a]]\n[a.b]\n[[a.b.c]]\n[[a]]\n")
@example(b"a = 1\r[b]\n")
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_study_or_a_study_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with contextlib.suppress(StudyError):
        load(path, KNOWN)
