"""Errors about study files and searches: where, which key, what stands there, and what is allowed."""

from ktrial.errors import KtrialError


class StudyError(KtrialError):
    """{where}: {problem}"""

    exit_code = 2


class StudyUnreadable(StudyError):
    """Study {where} cannot be read: {problem}."""

    hint = "those that come with ktrial need no file: ktrial run --list"


class StudySyntaxError(StudyError):
    """{where}: this is not TOML: {problem}"""

    hint = (
        "text stands in quotes, and a table in braces stays on one line; "
        "how a study file is written: ktrial help studies"
    )


class StudyIsYaml(StudySyntaxError):
    """{where}: this looks like YAML; a study is TOML: {problem}"""

    hint = (
        'what is question: … in YAML is question = "…" here, a list is workloads = ["fork", "pipe"], and a '
        "table begins with [factors.kernel]; ktrial help studies has a whole study"
    )


class StudyEmpty(StudyError):
    """{where}: the study is empty."""

    hint = (
        'the smallest study: workloads = ["syscall"] and, below it, [factors.kernel] with '
        'levels = ["debian:6.1", "debian:6.12"]'
    )


class StudyMistake(StudyError):
    """{where}: {problem}"""

    hint = "what each key means and may be: ktrial help studies"


class StudyMistakes(StudyError):
    """{where}: {count} mistakes:{problem}"""

    hint = "what each key means and may be: ktrial help studies"


class PatchNotGiven(StudyError):
    """{where}: factors.{factor}.levels: the level "?" is a patch that you name."""

    hint = "ktrial run {where} {option}"


class PatchNotAwaited(StudyError):
    """{where}: the patch {patch} has no place in it: {problem}."""

    hint = 'the study file says where it goes: levels = ["", "?"] in a factor of kind "patch"'


class TuningError(KtrialError):
    """The search cannot be done: {problem}"""

    exit_code = 2


class SpaceEmpty(TuningError):
    """There is nothing to search: no knob that was named can be varied here."""

    hint = (
        "name knobs (ktrial knob list), with values where they have no range: --knobs vm.nr_hugepages=0..64"
    )


class NoValidConfiguration(TuningError):
    """No configuration meets the constraints between the knobs: {constraints}."""

    hint = "widen the ranges, or leave one of the knobs out"


class BadKnobSpace(TuningError):
    """'{text}' cannot be searched: {problem}."""

    hint = "write a subsystem (vm), names (vm.swappiness), a range (NAME=1..100) or values (NAME=a,b,c)"


class KnobNotOnMachine(TuningError):
    """{knob} cannot be searched on the machine {machine}: {problem}."""

    hint = "{advice}"


class BadGoal(TuningError):
    """{option} '{text}': {problem}."""

    hint = "write --maximise METRIC or --minimise METRIC, and --subject-to 'p99<=20ms'"


class GoalContradicts(TuningError):
    """No value of {metric} meets both {first} and {second}."""

    hint = "leave one of them out"


class BadBudget(TuningError):
    """The budget {budget} cannot be used: {problem}."""

    hint = "a number of runs, --budget 65, or a time, --time 30min"


class BudgetTooSmall(TuningError):
    """A budget of {runs} runs is too small for a search."""

    hint = "give at least {fewest}: --budget {fewest}"


class ObjectiveMissing(TuningError):
    """The workload does not measure '{metric}'."""

    hint = "it measures {printed}; of a command's output: --metric 'NAME=REGEX' or --metric NAME=json:PATH"


class TuneBaselineFailed(TuningError):
    """The workload fails with the settings as they are: {problem}"""

    hint = "make it run first: nothing can be compared with a baseline that fails"
    exit_code = 1


class MachineFailsSearch(TuningError):
    """The machine failed {attempts} times with {settings}, so that nothing is known of it: {problem}"""

    hint = (
        "nothing is concluded from that, and what was measured is kept: ktrial tune --resume goes on with "
        "it; ktrial doctor says what this host lacks"
    )
    exit_code = 1


class SearchMisled(TuningError):
    """The search went on from a run that is not to be believed (run {first}): {reason}"""

    hint = "that run and those after it were taken away: ktrial tune --resume goes on from there, without it"
    exit_code = 1


class MostRunsFailed(TuningError):
    """Of {tried} runs with other settings {failed} failed, so that it is not known whether any of them is
    better. The first: {problem}
    """

    hint = "search narrower ranges, or raise what they failed by (memory, limit_seconds), and search again"
    exit_code = 1


class NotPositive(TuningError):
    """The metric {metric} is {value}: what is to be improved has to be above zero."""

    hint = "its changes are told as ratios: take another metric for the objective, or make it a guard"
    exit_code = 1


class GuardsNeverMet(TuningError):
    """None of the first {count} configurations meets {guard}: the nearest had {nearest}."""

    hint = "relax it, or search other knobs; what was measured is kept"
    exit_code = 1


class UnknownOptimiser(TuningError):
    """There is no optimiser {name}."""

    hint = "there are {known}"


class NotTheSameSearch(TuningError):
    """What is stored of this search does not answer it: its run {order} is of another configuration."""

    hint = "another ktrial, or another version of the optimiser, made it; start anew with another --seed"
    exit_code = 1


class NothingToResume(TuningError):
    """{store}: there is no search that was interrupted."""

    hint = "start one: ktrial tune --knobs vm,sched -- ./bench.sh"
    exit_code = 1


class NothingTuned(TuningError):
    """The search {study} has no answer to measure again: {problem}."""

    hint = "ktrial show {study} tells how it ended"
    exit_code = 1


class NotATune(TuningError):
    """The study {study} is no search: it compares the treatments that it names."""

    hint = "ktrial run runs it; ktrial tune needs --knobs, or a section [search]"


class SearchNotRun(TuningError):
    """The study {study} has a section [search]: its configurations are chosen as it goes."""

    hint = "ktrial tune {study}"


class AnswerNotWritten(TuningError):
    """The answer cannot be written to {path}: {problem}."""

    hint = "name another directory: --answer DIR"
    exit_code = 1
