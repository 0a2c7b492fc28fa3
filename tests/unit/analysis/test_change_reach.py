"""Whether what a factor changes was there to be measured: in the image, and in what ran."""

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.support import making
from tests.support.kernel_images import a_kernel_of
from tests.support.making import planned
from tests.support.profiles import a_profile, with_calls

from ktrial.analysis.kernel_confounds import uncontended
from ktrial.analysis.kernel_diff import reach, remember
from ktrial.analysis.result import load_record
from ktrial.cli.render.study_result import print_result
from ktrial.model.comparison import Verdict
from ktrial.model.design import Factor, FactorKind, Treatment
from ktrial.model.kernel import Build, BuildChange, CodeDifference, Kernel, NewOption, Patch
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings, Study, StudyRecord, kernel_name
from ktrial.model.trial import Provenance
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.report import study_html, study_markdown
from ktrial.report.csv_and_json import record_as_json
from ktrial.store.store import open_store

PATCH = Patch(path="/sched.patch", digest="1" * 64)
OFF = (NewOption(option="CONFIG_SCHED_NEW", value="n"),)
OTHERS = frozenset({WarningKind.NO_SPREAD, WarningKind.CONFOUND})


def a_study() -> Study:
    """A patch against none."""
    scheduler = Factor(
        name="scheduler",
        kind=FactorKind.PATCH,
        levels=("", "sched.patch"),
        baseline="",
        changes={"sched.patch": BuildChange(patches=(PATCH,))},
    )
    plain = making.a_study().model_dump()
    more = {
        "factors": (scheduler,),
        "builds": {"base": Build(source="/linux")},
        "machine": MachineSettings(kernel="base"),
        "perturbations": 1,
    }
    return Study.model_validate(plain | more)


def measured(
    directory: Path,
    ran: dict[str, dict[str, int]],
    value: float = 700.0,
    same_content: bool = False,
    **after: Any,
) -> StudyRecord:
    """The patch's study: `ran` has the instructions of each workload's functions, `after` its image.

    `after` is handed to `a_kernel_of` as it is, whose parameters are of several types.
    """
    study = a_study()
    levels = [Treatment(levels={"scheduler": level}) for level in ("", "sched.patch")]
    builds = [Build(source="/linux"), Build(source="/linux", patches=(PATCH,))]
    assert [kernel_name(study, level) for level in levels] == [build.name for build in builds]
    kernels: list[Kernel] = [
        a_kernel_of(directory, "before", build=builds[0]),
        a_kernel_of(directory, "after", build=builds[1], **after),
    ]
    if same_content:
        kernels[1] = kernels[1].model_copy(update={"digest": kernels[0].digest})
    with open_store(directory / "x.db") as store:
        number = store.study(study)
        for order, (treatment, kernel) in enumerate(zip(levels, kernels, strict=True)):
            plan = planned(order=order).model_copy(update={"treatment": treatment})
            profiles = tuple(
                a_profile({(name, ""): count for name, count in functions.items()}).model_copy(
                    update={"workload": workload}
                )
                for workload, functions in ran.items()
            )
            provenance = Provenance(kernel_digest=kernel.digest, machine="exact")
            values = {"fork": value if order else 1000.0, "pipe": value if order else 1000.0}
            store.add_trial(number, making.a_trial(plan, values, provenance=provenance, profiles=profiles))
        remember(store, number, study, {kernel_.name: kernel_ for kernel_ in kernels})
        return load_record(store, number)


def warning_of(study_record: StudyRecord) -> DataWarning:
    warnings = [warning for warning in study_record.result.warnings if warning.kind not in OTHERS]
    assert len(warnings) == 1, warnings
    return warnings[0]


def on_the_terminal(study_record: StudyRecord) -> str:
    console = Console(width=100, file=io.StringIO())
    with console.capture() as capture:
        print_result(study_record, console)
    return " ".join(capture.get().split())


def test_a_patch_whose_code_ran_nowhere_is_told_loudly_with_its_options(tmp_path: Path) -> None:
    ran = {"fork": {"pick": 900, "wake": 100}, "pipe": {"pick": 100}}
    complete = measured(tmp_path, ran, inserted="int balance(int a) { return a; }", options=OFF)
    warning = warning_of(complete)
    assert (warning.kind, warning.is_note) == (WarningKind.CHANGE_NOT_RUN, False)
    result = "no function that the patch changes (1 of them) ran in fork and pipe; SCHED_NEW=n"
    assert result in warning.text
    assert "switch on what it brings" in warning.advice
    assert result in on_the_terminal(complete)
    assert result in json.dumps(record_as_json(complete, "x.db"), ensure_ascii=False)
    assert result.replace("_", r"\_") in study_markdown(complete)
    assert result in study_html(complete)


def test_a_workload_that_does_not_reach_the_change_is_a_control(tmp_path: Path) -> None:
    complete = measured(tmp_path, {"fork": {"pick": 900, "wake": 100}, "pipe": {"pick": 100}}, waking=2)
    warning = warning_of(complete)
    assert (warning.kind, warning.is_note) == (WarningKind.CHANGE_PARTLY_RUN, True)
    assert "no function that the patch changes (1 of them) ran in pipe" in warning.text
    assert "fork" not in warning.text


def test_code_that_ran_everywhere_needs_no_word(tmp_path: Path) -> None:
    complete = measured(tmp_path, {"fork": {"wake": 1}, "pipe": {"wake": 1}}, waking=2)
    assert [warning for warning in complete.result.warnings if warning.kind not in OTHERS] == []
    (difference,) = complete.kernels
    assert difference.reach is not None
    assert (difference.reach.functions, difference.reach.ran) == (1, ("fork", "pipe"))


def test_a_module_of_the_same_name_and_a_function_that_stands_still_did_not_run(tmp_path: Path) -> None:
    complete = measured(tmp_path, {"fork": {"wake": 0, "pick": 5}, "pipe": {"wake.cold": 3}}, waking=2)
    assert warning_of(complete).kind is WarningKind.CHANGE_NOT_RUN


def test_changed_data_is_told_as_what_no_profile_shows(tmp_path: Path) -> None:
    warning = warning_of(measured(tmp_path, {"fork": {"pick": 1}, "pipe": {"pick": 1}}, slice_=24))
    assert (warning.kind, warning.is_note) == (WarningKind.CHANGE_PARTLY_RUN, True)
    assert "changes data only (slice): no profile tells whether that is read" in warning.text


def test_a_patch_that_only_moves_what_is_there_is_told_as_placement(tmp_path: Path) -> None:
    """As f3856cd343b6 does in Linux 7.2: one variable of each CPU lies among others."""
    room = '__asm__(".text\\n.skip 4096\\n");'
    warning = warning_of(measured(tmp_path, {"fork": {"pick": 1}, "pipe": {"pick": 1}}, inserted=room))
    assert warning.kind is WarningKind.CHANGE_NOT_RUN
    assert "changes no function and no variable of the kernel, only where they lie" in warning.text
    assert "the verdicts tell of placement alone" in warning.advice


def test_a_patch_that_changes_nothing_in_the_image_is_the_same_image_and_not_equivalent(
    tmp_path: Path,
) -> None:
    ran = {"fork": {"pick": 1}, "pipe": {"pick": 1}}
    complete = measured(tmp_path, ran, value=1000.0, build_id="bb", options=OFF)
    warning = warning_of(complete)
    assert (warning.kind, warning.is_note) == (WarningKind.SAME_IMAGE, False)
    assert "the same image as the baseline's: the patch changes nothing in it; SCHED_NEW=n" in warning.text
    assert {comparison.verdict for comparison in complete.result.comparisons} == {Verdict.IDENTICAL}
    assert complete.result.answer.endswith("the kernels are the same image.")
    assert "equivalent" not in complete.result.answer
    for result in (on_the_terminal(complete), study_markdown(complete), study_html(complete)):
        assert "the same image" in result


def test_a_patch_that_changes_no_bit_of_image_and_configuration_is_told_too(tmp_path: Path) -> None:
    complete = measured(tmp_path, {"fork": {"pick": 1}}, value=1000.0, same_content=True)
    assert warning_of(complete).kind is WarningKind.SAME_IMAGE
    assert {comparison.verdict for comparison in complete.result.comparisons} == {Verdict.IDENTICAL}


def test_kernels_whose_images_cannot_be_compared_get_no_verdict_about_them(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ktrial.analysis.kernel_diff.code_difference", lambda *_: None)
        complete = measured(tmp_path, {"fork": {"pick": 1}}, waking=2)
    assert [warning for warning in complete.result.warnings if warning.kind not in OTHERS] == []


LOCKING = {"inc_count", "_raw_spin_lock", "free_pid"}
"""Functions with an instruction that locks memory."""


def that_calls(*functions: str) -> Profile:
    """Each of the functions calls the next one."""
    return with_calls({functions[: end + 1]: Fraction(10) for end in range(len(functions))})


@pytest.mark.parametrize(
    ("old", "new", "locking"),
    [
        (("write", "inc_count"), ("write", "inc_count"), ("inc_count",)),  # its own code locks memory
        (("change", "_raw_spin_lock"), ("change", "_raw_spin_lock"), ("change",)),  # it takes a lock
        (("change", "free_pid"), ("release", "free_pid"), ("change",)),  # what locks is called elsewhere
        (("change", "take", "_raw_spin_lock"), ("release", "take", "_raw_spin_lock"), ("change",)),
        (("change", "free_pid"), ("change", "free_pid"), ()),  # it calls what it called
        (("change", "plain"), ("change", "other"), ()),
    ],
    ids=["counts", "locks", "calls elsewhere", "takes it elsewhere", "calls as before", "nothing shared"],
)
def test_functions_that_differ_and_take_locks_are_told_of_each_workload(
    old: tuple[str, ...], new: tuple[str, ...], locking: tuple[str, ...]
) -> None:
    code = CodeDifference(functions=("change", "inc_count"), data=())
    known = reach(code, {"fork": ([that_calls(*old)], [that_calls(*new)])}, LOCKING)
    assert known.locking == ({"fork": locking} if locking else {})
    warnings = list(uncontended(known, ["fork", "pipe"]))
    assert [warning.text.partition(": no count")[0] for warning in warnings] == [
        f"fork: the change is in code that locks memory or takes locks ({name})" for name in locking
    ]
    assert all(warning.is_note for warning in warnings)
