"""Errors about study files and searches: where, which key, what stands there, and what is allowed."""

from pathlib import Path

from ktrial.errors import KtrialError


class StudyError(KtrialError):
    """Something is wrong with a study or a file of it; the message says first where."""

    exit_code = 2


class StudyUnreadable(StudyError):
    """The file cannot be read, or is no text."""

    hint = "those that come with ktrial need no file: ktrial run --list"

    def __init__(self, place: object, problem: object) -> None:
        super().__init__(f"Study {place} cannot be read: {problem}.")


class StudySyntaxError(StudyError):
    """The file is not TOML."""

    hint = (
        "text stands in quotes, and a table in braces stays on one line; "
        "how a study file is written: ktrial help studies"
    )


class StudyMistake(StudyError):
    """One mistake in a study or several: where, which key, what stands there, and what is allowed."""

    hint = "what each key means and may be: ktrial help studies"


class PatchNotGiven(StudyError):
    """A level of a study is a patch that its user names."""

    def __init__(self, file: Path, factor: str, option: str) -> None:
        super().__init__(
            f'{file}: factors.{factor}.levels: the level "?" is a patch that you name.',
            hint=f"ktrial run {file} {option}",
        )


class PatchNotAwaited(StudyError):
    """A patch was named that has no place in the study."""

    hint = 'the study file says where it goes: levels = ["", "?"] in a factor of kind "patch"'

    def __init__(self, file: Path, patch: str, problem: str) -> None:
        super().__init__(f"{file}: the patch {patch} has no place in it: {problem}.")


class TuningError(KtrialError):
    text = "The search cannot be done: {problem}"
    exit_code = 2


class SpaceEmpty(TuningError):
    text = "There is nothing to search: no knob that was named can be varied here."
    hint = (
        "name knobs (ktrial knob list), with values where they have no range: --knobs vm.nr_hugepages=0..64"
    )


class NoValidConfiguration(TuningError):
    text = "No configuration meets the constraints between the knobs: {constraints}."
    hint = "widen the ranges, or leave one of the knobs out"


class BadKnobSpace(TuningError):
    """What `--knobs` says cannot be searched."""

    hint = "write a subsystem (vm), names (vm.swappiness), a range (NAME=1..100) or values (NAME=a,b,c)"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"'{text}' cannot be searched: {problem}.")


class KnobNotOnMachine(TuningError):
    text = "{knob} cannot be searched on the machine {machine}: {problem}."
    hint = "{advice}"


class BadGoal(TuningError):
    """What is to be improved, or a limit, cannot be meant so."""

    hint = "write --maximise METRIC or --minimise METRIC, and --subject-to 'p99<=20ms'"

    def __init__(self, option: str, text: str, problem: str) -> None:
        super().__init__(f"{option} '{text}': {problem}.")


class TuneBaselineFailed(TuningError):
    text = "The workload fails with the settings as they are: {problem}"
    hint = "make it run first: nothing can be compared with a baseline that fails"
    exit_code = 1


class MachineFailsSearch(TuningError):
    text = "The machine failed {attempts} times with {settings}, so that nothing is known of it: {problem}"
    hint = (
        "nothing is concluded from that, and what was measured is kept: ktrial tune --resume goes on with "
        "it; ktrial doctor says what this host lacks"
    )
    exit_code = 1


class SearchMisled(TuningError):
    text = "The search went on from a run that is not to be believed (run {first}): {reason}"
    hint = "that run and those after it were taken away: ktrial tune --resume goes on from there, without it"
    exit_code = 1


class MostRunsFailed(TuningError):
    text = (
        "Of {tried} runs with other settings {failed} failed, so that it is not known whether any of "
        "them is better. The first: {problem}"
    )
    hint = "search narrower ranges, or raise what they failed by (memory, limit_seconds), and search again"
    exit_code = 1


class NotPositive(TuningError):
    text = "The metric {metric} is {value}: what is to be improved has to be above zero."
    hint = "its changes are told as ratios: take another metric for the objective, or make it a guard"
    exit_code = 1


class GuardsNeverMet(TuningError):
    text = "None of the first {count} configurations meets {guard}: the nearest had {nearest}."
    hint = "relax it, or search other knobs; what was measured is kept"
    exit_code = 1


class NotTheSameSearch(TuningError):
    text = "What is stored of this search does not answer it: its run {order} is of another configuration."
    hint = "another ktrial, or another version of the optimiser, made it; start anew with another --seed"
    exit_code = 1


class NothingToResume(TuningError):
    text = "{store}: there is no search that was interrupted."
    hint = "start one: ktrial tune --knobs vm,sched -- ./bench.sh"
    exit_code = 1


class NothingTuned(TuningError):
    text = "The search {study} has no answer to measure again: {problem}."
    hint = "ktrial show {study} tells how it ended"
    exit_code = 1


class AnswerNotWritten(TuningError):
    text = "The answer cannot be written to {path}: {problem}."
    hint = "name another directory: --answer DIR"
    exit_code = 1
