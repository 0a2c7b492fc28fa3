"""What is to be explained: which workload and which two treatments, by what the user says of them."""

import pytest
from tests.support.making import a_study

from ktrial.analysis.attribution.question import question
from ktrial.analysis.errors import AnalysisUsageError, ExplanationError
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import Study
from ktrial.model.workload import WorkloadUse

KERNELS = ("debian:6.1", "debian:6.6", "debian:6.12")
TWO = a_study(workloads=("fork",))
THREE = a_study(kernels=KERNELS, workloads=("fork",))
SWAPPINESS = Factor(
    name="x", kind=FactorKind.SETTING, target="vm.swappiness", levels=("60", "0"), baseline="60"
)
FOUR = a_study(workloads=("fork",), factors=(SWAPPINESS,))
FILES = a_study(workloads=()).model_copy(
    update={
        "workloads": (
            WorkloadUse(name="fork"),
            WorkloadUse(name="seq-read", parameters={"path": "/a", "size": 8}),
            WorkloadUse(name="seq-read", parameters={"path": "/b", "size": 8}),
        )
    }
)


@pytest.mark.parametrize(
    ("study", "before", "after", "expected"),
    [
        (TWO, None, None, ("debian:6.1", "debian:6.12")),
        (TWO, "debian:6.12", None, ("debian:6.12", "debian:6.1")),
        (TWO, None, "debian:6.12", ("debian:6.1", "debian:6.12")),
        (THREE, None, "debian:6.6", ("debian:6.1", "debian:6.6")),
        (THREE, "debian:6.6", None, ("debian:6.6", "debian:6.1")),
        (THREE, "debian:6.6", "debian:6.12", ("debian:6.6", "debian:6.12")),
        (
            FOUR,
            None,
            "debian:6.12 · x=60",
            ("debian:6.1 · x=60", "debian:6.12 · x=60"),
        ),
        # As tables print them: without what the baseline has too, and a long one without its middle.
        (FOUR, None, "debian:6.12", ("debian:6.1 · x=60", "debian:6.12 · x=60")),
        (FOUR, None, "x=0", ("debian:6.1 · x=60", "debian:6.1 · x=0")),
        (FOUR, "debian:6.…2 · x=0", None, ("debian:6.12 · x=0", "debian:6.1 · x=60")),
    ],
)
def test_which_two_treatments_are_meant(
    study: Study, before: str | None, after: str | None, expected: tuple[str, str]
) -> None:
    seen = question(study, None, before, after)
    assert (seen.before.label, seen.after.label) == expected
    assert (seen.study, seen.workload, seen.labels) == (study, "fork", None)


@pytest.mark.parametrize(
    ("study", "expected", "text", "advice"),
    [
        (
            THREE,
            {},
            "quick has 3 treatments; --to has to say which one is explained.",
            "its treatments are debian:6.1, debian:6.6, debian:6.12",
        ),
        (
            THREE,
            {"before": "debian:6.13"},
            "quick has no treatment debian:6.13 (did you mean debian:6.1, debian:6.12 or debian:6.6?).",
            "its treatments are debian:6.1, debian:6.6, debian:6.12",
        ),
        (
            FOUR,
            {"after": "x=60"},
            "quick has several treatments x=60: debian:6.1 · x=60, debian:6.12 · x=60.",
            "give the whole name, as ktrial show prints it",
        ),
        (
            THREE,
            {"before": "debian:6.6", "after": "debian:6.6"},
            "--from and --to are both debian:6.6: there is no difference to explain.",
            "other treatments are debian:6.1, debian:6.12",
        ),
        (
            a_study(kernels=("debian:6.1",), workloads=("fork",)),
            {"after": "debian:6.1"},
            "--from and --to are both debian:6.1: there is no difference to explain.",
            "give another one",
        ),
        (
            a_study(),
            {},
            "quick has 2 workloads; --workload has to say which one is explained.",
            "its workloads are fork, pipe",
        ),
        (
            FILES,
            {"workload": "seq-reed"},
            "quick has no workload seq-reed (did you mean seq-read?).",
            "its workloads are fork; seq-read(path=/a, size=8); seq-read(path=/b, size=8)",
        ),
    ],
)
def test_what_is_not_there_or_could_be_several_is_an_error_that_names_what_is_there(
    study: Study, expected: dict[str, str], text: str, advice: str
) -> None:
    with pytest.raises(ExplanationError) as result:
        question(study, **expected)
    assert (str(result.value), result.value.advice) == (text, advice)


def test_a_workload_is_meant_by_its_label_or_by_a_name_that_only_one_has() -> None:
    assert question(FILES, "fork").use.label == "fork"
    assert question(FILES, "seq-read(path=/b, size=8)").use.parameters["path"] == "/b"
    with pytest.raises(AnalysisUsageError) as result:
        question(FILES, "seq-read")
    assert "2 workloads" in str(result.value) or "seq-read(path=/a, size=8); seq-read(path=/b" in str(
        result.value
    )
