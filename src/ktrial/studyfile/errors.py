"""Errors about study files and searches: where, which key, what stands there, and what is allowed."""

from collections.abc import Iterable
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


class OptionMistake(StudyMistake):
    """The same in the options of a command, whose help says what they mean."""

    hint = ""


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
    """The search cannot be done."""

    exit_code = 2


class SearchFailed(TuningError):
    """What was run, or is stored, ends the search."""

    exit_code = 1


class SpaceEmpty(TuningError):
    """Nothing is left to vary."""

    hint = (
        "name knobs (ktrial knob list), with values where they have no range: --knobs vm.nr_hugepages=0..64"
    )

    def __init__(self, *, hint: str = "") -> None:
        super().__init__("There is nothing to search: no named knob can be varied here.", hint=hint)


class NoValidConfiguration(TuningError):
    """The knobs' constraints leave nothing."""

    hint = "widen the ranges, or leave one of the knobs out"

    def __init__(self, constraints: Iterable[object]) -> None:
        texts = "; ".join(map(str, constraints))
        super().__init__(f"No configuration meets the constraints between the knobs: {texts}.")


class BadKnobSpace(TuningError):
    """What `--knobs` says cannot be searched."""

    hint = "write a subsystem (vm), names (vm.swappiness), a range (NAME=1..100) or values (NAME=a,b,c)"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"'{text}' cannot be searched: {problem}.")


class BadGoal(TuningError):
    """What is to be improved, or a limit, cannot be meant so."""

    hint = "write --maximise METRIC or --minimise METRIC, and --subject-to 'p99<=20ms'"

    def __init__(self, option: str, text: str, problem: str) -> None:
        super().__init__(f"{option} '{text}': {problem}.")


class BaselineFailed(SearchFailed):
    """The workload fails with the settings as they are."""

    hint = "make it run first: nothing can be compared with a baseline that fails"

    def __init__(self, problem: str) -> None:
        super().__init__(f"The workload fails with the settings as they are: {problem}")


class SearchMisled(SearchFailed):
    """The search went on from a run that is not to be believed."""

    hint = "that run and those after it were removed: ktrial tune --resume goes on from there, without it"


class NotTheSameSearch(SearchFailed):
    """What is stored of a search does not answer it."""

    hint = "another ktrial, or another version of the optimiser, made it; start anew with another --seed"

    def __init__(self, order: int) -> None:
        super().__init__(
            f"What is stored of this search does not answer it: its run {order} is of another configuration."
        )


class NothingTuned(SearchFailed):
    """A search has no answer."""

    def __init__(self, study: str, problem: str) -> None:
        super().__init__(
            f"The search {study} has no answer to measure again: {problem}.",
            hint=f"ktrial show {study} tells how it ended",
        )
