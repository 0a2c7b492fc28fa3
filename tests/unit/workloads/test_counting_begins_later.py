"""Where counting of a command begins: what may be said, how it is run, and what comes of it."""

import base64
import re

import pytest
from tests.support.places import ROOT

from ktrial.model.design import Perturbation
from ktrial.model.profile import Marking, OperationCounts, RegionCounts, StringCounts
from ktrial.model.system_calls import NAMES, NUMBERS, Occurrence, occurrence
from ktrial.model.workload import Command, MetricRule, Mode, WorkloadUse
from ktrial.target import Run, StepResult
from ktrial.target.watching import IN_GUEST, failed_calls, last_failure, telling_failure
from ktrial.workloads import check
from ktrial.workloads.command import WORKLOAD
from ktrial.workloads.errors import BadWorkload, WorkloadError

UNPERTURBED = Perturbation(number=0)
AFTER = Command(argv=("/bin/true",), after="listening", repeats=3)


def mine(command: Command) -> WorkloadUse:
    return WorkloadUse(name="mine", command=command)


def counted(instructions: int, regions: int, stdout: str = "now listening") -> StepResult:
    operations = OperationCounts(
        count=1, total=instructions, minimum=instructions, maximum=instructions, median=instructions
    )
    region = RegionCounts(
        whole=True,
        instructions=instructions,
        marks=2,
        strings=StringCounts(instructions=0, passes=0, bytes=0),
        functions=(),
        pages=(),
        operations=operations,
        marking=Marking(regions=regions),
    )
    return StepResult(step=0, do="run", exit=0, stdout=stdout, region=region)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("accept4 3", Occurrence("accept4", 3)),
        ("accept4", Occurrence("accept4")),
        ("SIGUSR1", Occurrence("SIGUSR1")),
        ("output  2", Occurrence("output", 2)),
    ],
)
def test_an_occurrence_is_a_name_and_which_time(text: str, meant: Occurrence) -> None:
    assert occurrence(text) == meant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acept4", "no system call or signal acept4 (did you mean accept4"),
        ("accept4 0", "times are counted from 1"),
        ("accept4 3 4", "give a system call, a signal or"),
        ("exit_group", "exit_group never returns"),
        ("SIGKILL", "SIGKILL is never delivered"),
        ("", "give a system call"),
    ],
)
def test_what_cannot_happen_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        occurrence(text)


def test_numbers_are_the_kernels() -> None:
    assert {name: NUMBERS[name] for name in ("read", "splice", "accept4", "rseq", "clone3", "mseal")} == {
        **{"read": 0, "splice": 275, "accept4": 288, "rseq": 334, "clone3": 435, "mseal": 462}
    }
    assert len(NAMES) == len(NUMBERS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"skip_start": "accept4"}, "after and skip_start both say where counting begins"),
        ({"metrics": (MetricRule(format="wrk"),)}, "metrics are read from what it prints"),
        ({"discarded": 0}, "discarded is 0, and the run that does not count tells how much is set-up"),
        ({"after": "", "skip_start": "acept"}, "skip_start is 'acept': there is no system call"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadWorkload) as caught:
        check(mine(AFTER.model_copy(update=change)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (AFTER, ("--text", "listening")),
        (AFTER.model_copy(update={"after": "", "skip_start": "accept4 3"}), ("--call", "288", "3")),
        (AFTER.model_copy(update={"after": "", "skip_start": "SIGUSR1"}), ("--signal", "10", "1")),
        (AFTER.model_copy(update={"after": "", "skip_start": "output 2"}), ("--outputs", "2")),
    ],
)
def test_runs_that_count_are_watched_and_the_one_before_is_not(
    command: Command, options: tuple[str, ...]
) -> None:
    steps = WORKLOAD.steps(mine(command), Mode.EXACT_PLUGIN, UNPERTURBED)
    words = [step.argv for step in steps if isinstance(step, Run)]
    assert words == [("/bin/true",), *[(IN_GUEST, *options, "--", "/bin/true")] * 3]
    assert IN_GUEST in [file.guest for file in WORKLOAD.files(mine(command))]


def test_a_command_from_its_start_brings_no_watcher() -> None:
    plain = mine(Command(argv=("/bin/true",)))
    assert IN_GUEST not in [file.guest for file in WORKLOAD.files(plain)]


def test_only_counted_instructions_begin_later() -> None:
    with pytest.raises(BadWorkload, match='need the machine exact, with count = "plugin"'):
        WORKLOAD.steps(mine(AFTER), Mode.TIMED, UNPERTURBED)


def test_the_value_is_what_came_after_and_a_note_says_what_came_before() -> None:
    results = (counted(1000, 0), counted(99, 1), counted(101, 1), counted(100, 1))
    value, moved = WORKLOAD.samples(mine(AFTER), Mode.EXACT_PLUGIN, results)
    assert (value.metric, value.unit, value.value) == ("after set-up", "instructions", 100)
    assert moved.metric == "string-bytes"
    (note,) = WORKLOAD.warnings(mine(AFTER), results)
    assert "of a run came before the text 'listening', and does not count" in note.text
    assert "(900 of 1,000 instructions)" in note.text
    assert note.text.startswith("mine: 90.0")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (AFTER, "the text 'listening' never appeared in what it printed"),
        (AFTER.model_copy(update={"after": "", "skip_start": "accept4 3"}), "accept4 number 3 never came"),
    ],
)
def test_what_never_comes_is_the_workloads_failure(command: Command, message: str) -> None:
    results = (counted(1000, 0), counted(99, 1), counted(1000, 0, "bye"), counted(100, 1))
    with pytest.raises(WorkloadError) as caught:
        WORKLOAD.samples(mine(command), Mode.EXACT_PLUGIN, results)
    assert message in str(caught.value)
    assert str(caught.value).endswith("its output ends with: bye")


# Which system call failed last

SPLICE = "275\t22\t4 fd /dev/zero\t0\t5 fd pipe:[7]\t0\t65536\t0\n"
LOCALE = "257\t2\t4294967196\t94322905900000 text /usr/lib/locale/C.UTF-8/LC_CTYPE\t524288\t0\t7\t0\n"
TERMINAL = "16\t25\t1 fd pipe:[9]\t21505\t140722000000000\t0\t0\t0\n"
ABSENT = "257\t2\t4294967196\t94322905900000 text /nowhere\t524288\t0\t7\t0\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            SPLICE + LOCALE + TERMINAL,
            "splice(4, 0, 5, 0, 65536, 0) = EINVAL (Invalid argument); 4 is /dev/zero; 5 is pipe:[7]",
        ),
        (ABSENT + LOCALE, 'openat(AT_FDCWD, "/nowhere", 524288) = ENOENT (No such file or directory)'),
        ("999\t38\t0\t0\t0\t0\t0\t0\n", "system call 999(…) = ENOSYS (Function not implemented)"),
    ],
)
def test_the_last_call_that_says_something_is_told(text: str, told: str) -> None:
    call = telling_failure(failed_calls(text))
    assert call is not None
    assert call.text == told


@pytest.mark.parametrize("text", ["", LOCALE, TERMINAL])
def test_of_usual_failures_nothing_is_told(text: str) -> None:
    content = base64.b64encode(text.encode()).decode()
    assert last_failure((StepResult(step=0, do="collect", content=content),)) is None


def test_calls_and_what_they_are_called_in_the_crate_agree() -> None:
    order = (ROOT / "crates/watch/src/order.rs").read_text(encoding="utf-8")
    assert all(
        f'"{option}"' in order for option in ("--text", "--outputs", "--call", "--signal", "--failures")
    )
